/** The shape of a row of the flag table, and sets of verbs for the rows. */
import * as parse from './parsers.js';
import type { Parse } from './parsers.js';
import type { RetryPreset } from '../source/facts.js';

export const VERBS = [
  'vision',
  'metrics',
  'run',
  'retry',
  'verify',
  'repair',
  'schedule',
  'list',
  'schema',
  'audit',
  'sql',
  'coverage',
  'serve',
  'doctor',
  'completion',
] as const;
export type Verb = (typeof VERBS)[number];

export const GROUPS = ['What', 'When', 'Output', 'Safety', 'Network', 'Messages', 'Options'] as const;

/** The values that defaults depend on. */
export interface DefaultSources {
  /** The preset of --retry-preset. */
  readonly preset: RetryPreset;
  /** The value of --archive-url. */
  readonly archiveUrl: string;
  /** Addresses of the exchange. */
  readonly hosts: Readonly<Record<'archive' | 'origin' | 'listing', string>>;
}

/** A row of the flag table. */
export interface FlagSpec {
  readonly group: (typeof GROUPS)[number];
  readonly verbs: readonly Verb[];
  /** The help text, without the default. */
  readonly doc: string;
  /** Other texts for the help of single verbs, instead of `doc`. */
  readonly docOf?: Readonly<Partial<Record<Verb, string>>>;
  /** The name of the value in help, for example `N`; switches have none. */
  readonly value?: string;
  /**
   * Takes several values, separated by commas or in repeated flags. `comma`: each value is parsed on its own; `joined`: all values
   * are parsed as one text with commas.
   */
  readonly list?: 'comma' | 'joined';
  readonly parse: Parse<unknown>;
  /** The unit of the parsed number. The name of the option ends with it. */
  readonly unit?: 'Ms' | 'Minutes' | 'Hours' | 'Day' | 'Bytes' | 'BytesPerSecond' | 'Percent';
  /** A config file may hold a map: `limits: { archive: 100/s }` is `archive=100/s`. */
  readonly isMap?: boolean;
  /** All valid values, for completion and documents, if they are a fixed list. */
  readonly choices?: readonly string[];
  /** A valid value for messages and documents, for flags without a default. */
  readonly example?: string;
  /** Names of this flag in other tools, only for hints. */
  readonly aka?: readonly string[];
  /** The default as text for `parse`, so that help and value cannot differ. */
  readonly default?: string;
  /** The default in words, if it depends on other options or on the environment. */
  readonly unset?: string;
  /** The default, if other options and the exchange decide it. An option with a value, but with neither `default` nor `derive`, may be undefined. */
  readonly derive?: (from: DefaultSources) => unknown;
  /** Verbs that select everything without the flag. Their help shows no default. */
  readonly narrows?: readonly Verb[];
  /** Defaults of single verbs, instead of `default`. */
  readonly defaultOf?: Readonly<Partial<Record<Verb, string>>>;
}

export type FlagRows = Readonly<Record<string, FlagSpec>>;

/** Two fields of a row for a flag with a fixed list of values: the parser and the list. */
export const oneOf = <const T extends string>(choices: readonly T[]) => ({
  parse: parse.choice(choices),
  choices,
});

export const DOWNLOADS: readonly Verb[] = ['vision', 'metrics', 'retry', 'repair'];
/** Verbs that send requests, except for `run` and `doctor`: the sets below add them. */
export const ONLINE: readonly Verb[] = [...DOWNLOADS, 'verify', 'list', 'audit'];
/** The downloads and `run`, for flags that `run` accepts for all its jobs. */
export const DOWNLOADS_AND_JOBS: readonly Verb[] = [...DOWNLOADS, 'run'];
export const ONLINE_AND_JOBS: readonly Verb[] = [...ONLINE, 'run'];
/** `doctor` takes the flags whose settings it checks for the other verbs. */
export const EXAMINED: readonly Verb[] = [...ONLINE_AND_JOBS, 'doctor'];
/** Verbs with flags for markets, datasets and days. */
export const CHOOSING: readonly Verb[] = ['vision', 'metrics', 'list', 'coverage', 'audit'];
/** Verbs that choose the settings of new files. The other downloads keep the settings of the lake or of the report. */
export const WRITING: readonly Verb[] = ['vision', 'metrics'];
/** Verbs that select among the series of a lake. */
export const HELD: readonly Verb[] = ['verify', 'repair'];
