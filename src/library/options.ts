/** The options of the library: the flags of each verb in camelCase, with types, and their conversion to the texts of flags. */
import { usage } from '../model/errors.js';
import { camelCase, flagSpec } from '../plan/options/flags.js';
import type { CamelCase, FlagName, FlagNameIn, FlagNameOf, FlagValue } from '../plan/options/flags.js';
import { flagsOf } from '../plan/options/verb-spec.js';
import type { RawValues } from '../plan/options/resolve.js';
import type { ALL, MarketAlias, MARKETS } from '../exchange/names.js';
import { didYouMean } from '../text/did-you-mean.js';
import { isRecord } from '../text/json.js';
import { auditVerb } from '../verbs/audit/command.js';
import { coverageVerb } from '../verbs/coverage/command.js';
import { listVerb } from '../verbs/list/command.js';
import { metricsVerb } from '../verbs/metrics/command.js';
import { repairVerb } from '../verbs/repair/command.js';
import { sqlVerb } from '../verbs/sql/command.js';
import { verifyVerb } from '../verbs/verify/command.js';
import { visionVerb } from '../verbs/vision/command.js';
import { SILENT_OBSERVER, type Announcement, type Observer } from '../model/observer.js';
import { withAddresses } from '../text/mirror-roots.js';
import type { S3Credentials } from '../model/lake-address.js';

export const LIBRARY_VERBS = {
  vision: visionVerb,
  metrics: metricsVerb,
  repair: repairVerb,
  list: listVerb,
  coverage: coverageVerb,
  verify: verifyVerb,
  audit: auditVerb,
  sql: sqlVerb,
} as const;

export type LibraryVerb = keyof typeof LIBRARY_VERBS;

/** Flags about printing, config files and other matters of a command line: those of two groups, and further ones. */
const COMMAND_LINE_GROUPS = ['Messages', 'Options'] as const;
const COMMAND_LINE = ['all', 'csv', 'dry-run', 'summary', 'views'] as const satisfies readonly FlagName[];
type CommandLine = FlagNameIn<(typeof COMMAND_LINE_GROUPS)[number]> | (typeof COMMAND_LINE)[number];

/** Durations are milliseconds or text with a unit (`30s`), sizes bytes or text (`2GiB`). */
type ValueOf<T> = T extends boolean
  ? boolean
  : T extends string
    ? T
    : T extends readonly (infer Item)[]
      ? ValueOf<Item> | readonly ValueOf<Item>[]
      : number | string | Date;

/** The type that the caller gives: for markets, symbols and maps, it is not the type of the parsed value. */
type GivenValue<Name extends FlagName> = Name extends 'market'
  ? ValueOf<readonly MarketWord[]>
  : Name extends 'symbols'
    ? ValueOf<readonly string[]>
    : Name extends 'limits'
      ? ValueOf<readonly string[]> | Readonly<Record<string, string | number>>
      : ValueOf<FlagValue<Name>>;

type MarketWord = (typeof MARKETS)[number] | MarketAlias | typeof ALL;

/** The flags of a verb in camelCase; dates are UTC days (`2024-01-31` or a Date). */
export type OptionsOf<V extends LibraryVerb> = {
  readonly [Name in Exclude<FlagNameOf<(typeof LIBRARY_VERBS)[V]>, CommandLine> as CamelCase<Name>]?:
    GivenValue<Name> | undefined;
};

/** The texts of the options. Throws usage errors for unknown names, and for values that are not text, numbers and the like. */
export function rawValues(verb: LibraryVerb, options: unknown): RawValues {
  if (!isRecord(options)) throw usage(`${verb} takes an object of options`, callOf(verb));
  const values: RawValues = {};
  const known = flagsOf(LIBRARY_VERBS[verb]).filter(
    (name) =>
      !COMMAND_LINE.some((other) => other === name) &&
      !COMMAND_LINE_GROUPS.some((group) => group === flagSpec(name).group),
  );
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const name = known.find((flag) => camelCase(flag) === key);
    if (name === undefined)
      throw usage(
        `${verb} has no option "${key}"`,
        didYouMean(key, known.map(camelCase)) ?? 'docs/library.md describes the options',
      );
    const items = itemsOf(name, value);
    if (items.length === 0) throw usage(`${key} is empty`, `give ${key} a value or leave it out`);
    values[name] = items;
  }
  return values;
}

/** The arguments of a verb, for messages. */
export function callOf(verb: LibraryVerb): string {
  const first = verb === 'list' ? 'what, ' : verb === 'sql' ? 'query, ' : '';
  return `for example ${verb}(${first}{ out: 'data' }, { signal })`;
}

function itemsOf(name: FlagName, value: unknown): readonly string[] {
  if (flagSpec(name).isMap === true && isRecord(value))
    return Object.entries(value).map(([key, item]) => `${key}=${textOf(name, item)}`);
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  return items.map((item) => textOf(name, item));
}

function textOf(name: FlagName, value: unknown): string {
  const { value: kind } = flagSpec(name);
  if (value instanceof Date && Number.isNaN(value.getTime()))
    throw usage(`${camelCase(name)} is not a valid Date`, "for example new Date('2024-01-31')");
  if (value instanceof Date) return kind === 'DATE' ? value.toISOString().slice(0, 10) : value.toISOString();
  if (typeof value === 'number') return kind === 'TIME' || kind === 'UNTIL' ? `${value}ms` : String(value);
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  throw usage(`${camelCase(name)} is not a text, a number, a Date, true or false`, 'see docs/library.md');
}

export interface Hooks {
  /** Ends the call. Committed data stays, and the call rejects with the code `interrupted`. */
  readonly signal?: AbortSignal | undefined;
  readonly onWarning?: ((message: string) => void) | undefined;
  /** For a lake in a bucket, or a function that gives them. Default: the places in which the tools of AWS look. */
  readonly s3Credentials?: S3Credentials | undefined;
}

/** The hooks of `vision`, `metrics` and `repair`. */
export interface RunHooks extends Hooks {
  /** Called once, before the first request for an object. */
  readonly onPlan?: ((plan: Announcement) => void) | undefined;
}

const HOOKS: readonly (keyof RunHooks)[] = ['signal', 'onPlan', 'onWarning', 's3Credentials'];

/** Throws a usage error for unknown hooks. */
export function checkHooks(verb: LibraryVerb, hooks: unknown): void {
  const isRun = verb === 'vision' || verb === 'metrics' || verb === 'repair';
  const names: readonly string[] = HOOKS.filter((name) => isRun || name !== 'onPlan');
  const hint = `hooks are ${names.join(', ')}`;
  if (!isRecord(hooks) || hooks instanceof AbortSignal || hooks instanceof AbortController)
    throw usage(`the last argument of ${verb} must be an object of hooks`, hint);
  const unknown = Object.keys(hooks).find((key) => !names.includes(key));
  if (unknown !== undefined) throw usage(`${verb} has no hook "${unknown}"`, hint);
}

export function observerOf({ onPlan, onWarning }: RunHooks): Observer {
  return {
    ...SILENT_OBSERVER,
    announce: (plan) => onPlan?.(plan),
    warn: (message) => onWarning?.(withAddresses(message)),
  };
}
