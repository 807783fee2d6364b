/** The shape of a row of the flag table, and sets of verbs for the rows. */
import * as parse from './parsers.js';
import type { Parse } from './parsers.js';
import type { RetryPreset } from '../../exchange/facts.js';

export const VERBS = [
  'vision',
  'metrics',
  'run',
  'retry',
  'verify',
  'repair',
  'remove',
  'schedule',
  'list',
  'schema',
  'audit',
  'sql',
  'check',
  'coverage',
  'runs',
  'report',
  'plot',
  'bars',
  'export',
  'universe',
  'serve',
  'doctor',
  'enqueue',
  'worker',
  'status',
  'completion',
  'man',
] as const;
export type Verb = (typeof VERBS)[number];

/** The groups of flags in `--help-all`. `--help` shows the flags of the groups after How under How. */
export const GROUPS = ['What', 'When', 'Where', 'How', 'Safety', 'Network', 'Messages', 'Options'] as const;

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
  /** The verbs whose `--help` shows the flag; by default, all that have it. `--help-all` shows all flags. */
  readonly usual?: readonly Verb[];
  /** The letter of the short flag. */
  readonly short?: string;
  /** The help text, without the default. `--help` shows the part before the first semicolon. */
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
  /** The parsers of single verbs, instead of `parse`. Their values have its type. */
  readonly parseOf?: Readonly<Partial<Record<Verb, Parse<unknown>>>>;
  /** The unit of the parsed number. The name of the option ends with it. */
  readonly unit?: 'Ms' | 'Minutes' | 'Bytes' | 'BytesPerSecond' | 'Percent';
  /** A config file may hold a map: `limits: { archive: 100/s }` is `archive=100/s`. */
  readonly isMap?: boolean;
  /** All valid values, for completion and documents, if they are a fixed list. */
  readonly choices?: readonly string[];
  /** The valid values of single verbs, instead of `choices`. */
  readonly choicesOf?: Readonly<Partial<Record<Verb, readonly string[]>>>;
  /** Other names that work, mostly those of other tools. Help does not show them. */
  readonly aka?: readonly string[];
  /** The default as text for `parse`, so that help and value cannot differ. */
  readonly default?: string;
  /** The default in words, if it depends on other options or on the environment. */
  readonly unset?: string;
  /** Other texts for single verbs, instead of `unset`. */
  readonly unsetOf?: Readonly<Partial<Record<Verb, string>>>;
  /** The default, if other options and the exchange decide it. An option with a value, but with neither `default` nor `derive`, may be undefined. */
  readonly derive?: (from: DefaultSources) => unknown;
  /** `retry` takes the value of the run that it repeats. */
  readonly isCarried?: boolean;
  /** Verbs that select everything without the flag. Their help shows no default. */
  readonly narrows?: readonly Verb[];
  /** Defaults of single verbs, instead of `default`. */
  readonly defaultOf?: Readonly<Partial<Record<Verb, string>>>;
}

/** A flag without a value is a switch. */
const SWITCH = { parse: parse.flag } as const;

/** The fields that a row of a section may leave out: those of the section, and those of a switch. */
type Row<Common> = Omit<FlagSpec, 'value' | 'parse' | keyof Common> &
  Partial<Pick<FlagSpec, keyof Common & keyof FlagSpec>> &
  (
    | (Pick<FlagSpec, 'parse'> & { readonly value: string })
    | { readonly value?: never; readonly parse?: never }
  );

type Merged<Common, Own> = Omit<typeof SWITCH & Common, keyof Own> & Own;

/** Refuses a misspelt field. */
type OnlyFields<Own> = Readonly<Record<Exclude<keyof Own, keyof FlagSpec>, never>>;

/** Makes rows of the flag table. A field that a row leaves out is that of its section. */
export function section<const Common extends Partial<FlagSpec>>(common: Common) {
  return <const Rows extends Readonly<Record<string, Row<Common>>>>(
    rows: Rows & { readonly [Name in keyof Rows]: OnlyFields<Rows[Name]> },
  ) => {
    const merged: Readonly<Record<string, unknown>> = Object.fromEntries(
      Object.entries(rows).map(([name, row]) => [name, { ...SWITCH, ...common, ...row }]),
    );
    return merged as { readonly [Name in keyof Rows]: Merged<Common, Rows[Name]> };
  };
}

// Kinds of values: the fields of a row that belong together.

export const DURATION = { value: 'TIME', parse: parse.duration, unit: 'Ms' } as const;
export const TIMEOUT = { value: 'TIME', parse: parse.timeout, unit: 'Ms' } as const;
export const LIST = { value: 'LIST', list: 'comma' } as const;
export const COUNT = { value: 'N', parse: parse.integer(1) } as const;
export const FILE = { value: 'FILE', parse: parse.text } as const;
export const DIR = { value: 'DIR', parse: parse.text } as const;

/** A flag with a fixed list of values: the parser and the list. */
export const oneOf = <const T extends string>(choices: readonly T[]) => ({
  parse: parse.choice(choices),
  choices,
});

export const DOWNLOADS = ['vision', 'metrics', 'retry', 'repair'] as const satisfies readonly Verb[];
/** Verbs that send requests, except for `run` and `doctor`: the sets below add them. */
export const ONLINE = [...DOWNLOADS, 'verify', 'list', 'audit', 'enqueue', 'worker'] as const;
/** The downloads and `run`, for flags that `run` accepts for all its jobs. */
export const DOWNLOADS_AND_JOBS = [...DOWNLOADS, 'run'] as const satisfies readonly Verb[];
export const ONLINE_AND_JOBS = [...ONLINE, 'run'] as const satisfies readonly Verb[];
/** `doctor` takes the flags of requests, so that its requests are those of a run. */
export const EXAMINED = [...ONLINE_AND_JOBS, 'doctor'] as const satisfies readonly Verb[];
/** Verbs that choose the settings of new files. The other downloads keep the settings of the lake or of the report. */
export const WRITING = ['vision', 'metrics', 'enqueue'] as const satisfies readonly Verb[];
/** Verbs with flags for markets, datasets and days. */
const CHOOSING = [...WRITING, 'list', 'coverage', 'report', 'audit'] as const satisfies readonly Verb[];
/** `CHOOSING`, `export`, `bars`, which selects its sources, and `plot`, which takes one market and one dataset. */
export const PLOTTED = [...CHOOSING, 'sql', 'plot', 'bars', 'export'] as const satisfies readonly Verb[];
/** `CHOOSING`, and verbs that select series of the lake for other programs. */
export const QUOTED = [...CHOOSING, 'sql', 'bars', 'export', 'universe'] as const satisfies readonly Verb[];
/** Verbs that select among the series of a lake. */
export const HELD = ['verify', 'repair'] as const satisfies readonly Verb[];
/** Verbs whose selection of series can be one of several shards. */
export const SHARDED = [...WRITING, 'run', ...HELD, 'coverage', 'bars'] as const satisfies readonly Verb[];
/** `HELD`, and `remove`. */
export const SELECTING = [...HELD, 'remove'] as const satisfies readonly Verb[];
/** Verbs that read a lake and print what they found. */
export const TELLING = ['check', 'coverage', 'runs', 'export', 'universe', 'doctor'] as const;
const WITHOUT_LAKE: readonly Verb[] = ['schedule', 'list', 'schema', 'serve', 'status', 'completion', 'man'];
/** Verbs that use a lake. */
export const OF_LAKE = VERBS.filter((verb) => !WITHOUT_LAKE.includes(verb));
