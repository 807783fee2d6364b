/** The shape of a verb: its flags, and what help says about it. A command object (`run/verb/verb.ts`) has one. */
import type { ExitCode } from '../../model/exit-code.js';
import type { FlagSpec } from './flag-spec.js';
import { FLAG_NAMES, flagSpec, type FlagName } from './flags.js';

export type VerbName =
  | 'vision'
  | 'metrics'
  | 'run'
  | 'retry'
  | 'verify'
  | 'repair'
  | 'remove'
  | 'schedule'
  | 'list'
  | 'schema'
  | 'audit'
  | 'sql'
  | 'check'
  | 'coverage'
  | 'runs'
  | 'report'
  | 'plot'
  | 'bars'
  | 'export'
  | 'universe'
  | 'serve'
  | 'doctor'
  | 'enqueue'
  | 'worker'
  | 'status'
  | 'completion'
  | 'man';

export interface VerbSpec<Names extends FlagName = FlagName> {
  readonly name: VerbName;
  /** The operand as help shows it; in brackets if optional. */
  readonly operand?: string;
  /** The words after `--`, as help shows them. */
  readonly behind?: string;
  /** The accepted values of the operand, if they are a list. */
  readonly choices?: readonly string[];
  /** `--help` shows the part before the first semicolon. */
  readonly doc: string;
  /** The exit codes except for those of signals. `--help` shows the part before the first semicolon. */
  readonly exits: ExitTexts;
  readonly examples: readonly string[];
  /** Other names that work, of one word or two. Help does not show them. */
  readonly aka: readonly string[];
  /** The flags of `--help`. */
  readonly flags: readonly Names[];
  /** The flags that only `--help-all` shows. */
  readonly moreFlags?: readonly Names[];
  /** Flags whose meaning differs from that of the flag table. */
  readonly meanings?: FlagMeanings;
  readonly isReader?: boolean;
  /** A file may give it the options of all flags: those of the run that it repeats. */
  readonly repeatsRun?: boolean;
  /** The part of a lake in a bucket that the verb needs. Default: all of it. */
  readonly lakePart?: 'selected' | 'klines of the markets';
  /** The verb leaves --out as it was given, because its jobs open the lakes. */
  readonly isOfQueue?: boolean;
}

export type ExitTexts = Readonly<Partial<Record<Exclude<ExitCode, 130 | 143>, string>>>;

/** The fields that replace those of the flag table. A parser gives values of the same type. */
interface FlagMeaning extends Partial<Pick<FlagSpec, 'doc' | 'parse' | 'choices' | 'default' | 'unset'>> {
  /** Without the flag, the verb selects everything, so that help shows no default. */
  readonly narrows?: boolean;
}

export type FlagMeanings = Readonly<Partial<Record<FlagName, FlagMeaning>>>;

export type VerbSpecs = Readonly<Record<VerbName, VerbSpec>>;

/** The names of the flags of a verb, in the order of the flag table. */
export function flagsOf({ flags, moreFlags = [] }: Pick<VerbSpec, 'flags' | 'moreFlags'>): FlagName[] {
  const own = new Set([...flags, ...moreFlags]);
  return FLAG_NAMES.filter((name) => own.has(name));
}

/** The row of a flag, as the verb means it. */
export function flagFor(name: FlagName, { meanings }: Pick<VerbSpec, 'meanings'>): FlagSpec {
  return { ...flagSpec(name), ...meanings?.[name] };
}

/** The default of a flag in the help of a verb; undefined without one. */
export function shownDefault(name: FlagName, verb: VerbSpec): string | undefined {
  if (verb.meanings?.[name]?.narrows === true) return undefined;
  const { default: fixed, unset } = flagFor(name, verb);
  return fixed?.replaceAll(',', ', ') ?? unset;
}

export const BASE_EXITS = {
  0: 'done',
  1: 'fatal; for example a full disk',
  2: 'usage; a wrong flag, value or file',
} as const satisfies ExitTexts;
export const LIMIT_EXIT = 'limit; a ban or a rate limit lasts longer than --max-wait';
export const LOCK_EXIT = 'locked; another run holds the lock of the lake';
export const REDIS_EXIT = 'try later; no connection to the Redis server';
export const RUN_EXITS = {
  ...BASE_EXITS,
  3: 'try later; cryptodl retry requests the objects of the failure report again',
  4: 'failed; a retry does not help; with --strict also for series that lack data',
  5: 'nothing new; with --error-on-nothing',
  6: LOCK_EXIT,
  7: LIMIT_EXIT,
} as const satisfies ExitTexts;
