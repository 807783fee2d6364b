/** The one flag table: parsing, help, environment twins, config keys and --print-options come from it. */
import { loadRetryPresets } from '../venue/facts.js';
import { loadVenue, MARKETS } from '../venue/venue.js';
import * as parse from './parsers.js';
import type { Parse } from './parsers.js';

export type Verb = 'vision' | 'retry' | 'serve';

export const GROUPS = ['What', 'When', 'Output', 'Safety', 'Network', 'Messages', 'Options'] as const;

interface FlagSpec<T> {
  readonly group: (typeof GROUPS)[number];
  readonly verbs: readonly Verb[];
  readonly doc: string;
  /** Shown in help: `<N>`; absent for switches. */
  readonly value?: string;
  /** May be given several times; `comma` also splits each value at commas. */
  readonly list?: 'repeat' | 'comma';
  readonly parse: Parse<T>;
  /** Text that `parse` takes, so that help and code cannot differ. */
  readonly default?: string;
}

type Optional<T> = FlagSpec<T> & { readonly default?: never };
type Defaulted<T> = FlagSpec<T> & { readonly default: string };

type Listed = { readonly list: 'repeat' | 'comma' };

const optional = <T>(spec: Optional<T>): Optional<T> => spec;
const defaulted = <T>(spec: Defaulted<T>): Defaulted<T> => spec;
const optionalList = <T>(spec: Optional<T> & Listed): Optional<T> & Listed => spec;
const defaultedList = <T>(spec: Defaulted<T> & Listed): Defaulted<T> & Listed => spec;

const venue = loadVenue();
const preset = loadRetryPresets().vision;
const DOWNLOADS: readonly Verb[] = ['vision', 'retry'];

const FLAGS = {
  market: defaulted({
    group: 'What',
    verbs: ['vision'],
    value: 'MARKET',
    doc: 'spot, um, cm or option',
    parse: parse.choice(MARKETS),
    default: 'um',
  }),
  dataset: defaultedList({
    group: 'What',
    verbs: ['vision'],
    value: 'LIST',
    list: 'comma',
    doc: 'datasets, with commas',
    parse: parse.text,
    default: 'klines',
  }),
  interval: defaultedList({
    group: 'What',
    verbs: ['vision'],
    value: 'LIST',
    list: 'comma',
    doc: 'intervals of kline datasets, with commas',
    parse: parse.text,
    default: '1m',
  }),
  symbols: optionalList({
    group: 'What',
    verbs: ['vision'],
    value: 'LIST',
    list: 'repeat',
    doc: "names, globs ('*USDT'), exclusions ('!BUSD*'), @FILE, - (stdin) or all; without it the series that the lake holds are continued",
    parse: parse.text,
  }),
  quote: optionalList({
    group: 'What',
    verbs: ['vision'],
    value: 'LIST',
    list: 'comma',
    doc: 'keep symbols with one of these quote assets',
    parse: parse.text,
  }),

  days: optional({
    group: 'When',
    verbs: ['vision'],
    value: 'N',
    doc: 'the last N complete UTC days (1 when no range is given)',
    parse: parse.integer(1),
  }),
  months: optional({
    group: 'When',
    verbs: ['vision'],
    value: 'N',
    doc: 'the last N complete months',
    parse: parse.integer(1),
  }),
  from: optional({
    group: 'When',
    verbs: ['vision'],
    value: 'DATE',
    doc: 'first day; without it the range starts where the series starts',
    parse: parse.day,
  }),
  to: optional({
    group: 'When',
    verbs: ['vision'],
    value: 'DATE',
    doc: 'last day, included; without it the range ends yesterday',
    parse: parse.day,
  }),
  now: optional({
    group: 'When',
    verbs: DOWNLOADS,
    value: 'ISO',
    doc: 'what "today" means, for replays and tests',
    parse: parse.instant,
  }),

  out: defaulted({
    group: 'Output',
    verbs: DOWNLOADS,
    value: 'DIR',
    doc: 'the lake',
    parse: parse.text,
    default: './data',
  }),
  format: defaulted({
    group: 'Output',
    verbs: ['vision'],
    value: 'FORMAT',
    doc: "parquet, csv or zip (the archive's own files)",
    parse: parse.choice(['parquet', 'csv', 'zip']),
    default: 'parquet',
  }),
  partition: optional({
    group: 'Output',
    verbs: ['vision'],
    value: 'GRAIN',
    doc: 'day or month: what one file holds (default: by dataset)',
    parse: parse.choice(['day', 'month']),
  }),
  cadence: defaulted({
    group: 'Output',
    verbs: ['vision'],
    value: 'CADENCE',
    doc: 'auto, daily or monthly objects',
    parse: parse.choice(['auto', 'daily', 'monthly']),
    default: 'auto',
  }),
  numbers: defaulted({
    group: 'Output',
    verbs: ['vision'],
    value: 'KIND',
    doc: 'double, or string with every digit (Parquet)',
    parse: parse.choice(['double', 'string']),
    default: 'double',
  }),
  timestamps: defaulted({
    group: 'Output',
    verbs: ['vision'],
    value: 'UNIT',
    doc: 'us, ms or iso (CSV)',
    parse: parse.choice(['us', 'ms', 'iso']),
    default: 'us',
  }),
  'as-published': optional({
    group: 'Output',
    verbs: ['vision'],
    doc: 'keep rows in their published order, duplicates included',
    parse: parse.flag,
  }),
  force: optional({
    group: 'Output',
    verbs: ['vision'],
    doc: 'fetch again and rebuild, also with other settings than the series holds',
    parse: parse.flag,
  }),
  'dry-run': optional({
    group: 'Output',
    verbs: DOWNLOADS,
    doc: 'print fetch|skip|absent, bytes and key per object, and do nothing',
    parse: parse.flag,
  }),
  failures: optional({
    group: 'Output',
    verbs: DOWNLOADS,
    value: 'FILE',
    doc: 'failure report (default: one per run under OUT/failures; retry: the file itself)',
    parse: parse.text,
  }),
  'temp-dir': optional({
    group: 'Output',
    verbs: DOWNLOADS,
    value: 'DIR',
    doc: 'spool of bodies under way (default: OUT/.cryptodl/tmp)',
    parse: parse.text,
  }),

  verify: defaulted({
    group: 'Safety',
    verbs: ['vision', 'retry'],
    value: 'HOW',
    doc: 'sha256 (sidecar), etag (MD5 from the listing) or none',
    parse: parse.choice(['sha256', 'etag', 'none']),
    default: 'sha256',
  }),
  'max-bytes': optional({
    group: 'Safety',
    verbs: DOWNLOADS,
    value: 'SIZE',
    doc: 'refuse a plan that is larger, before the first byte',
    parse: parse.bytes,
  }),
  strict: optional({
    group: 'Safety',
    verbs: DOWNLOADS,
    doc: 'holes and partial objects end with exit code 4',
    parse: parse.flag,
  }),

  concurrency: defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'N',
    doc: 'objects in flight: a number, auto or auto:MAX',
    parse: parse.concurrency,
    default: 'auto',
  }),
  retries: defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'N',
    doc: 'quick extra tries per request',
    parse: parse.integer(0),
    default: String(preset.retries),
  }),
  'retry-delay': defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'base of the jittered back-off',
    parse: parse.duration,
    default: `${preset.baseDelayMs}ms`,
  }),
  'breaker-open': defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'how long a failing host is left alone',
    parse: parse.duration,
    default: '30s',
  }),
  'connect-timeout': defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'DNS, TCP and TLS',
    parse: parse.duration,
    default: '5s',
  }),
  'headers-timeout': defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'request sent to headers received',
    parse: parse.duration,
    default: '15s',
  }),
  'idle-timeout': defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'silence within a body',
    parse: parse.duration,
    default: '10s',
  }),
  'total-timeout': defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'one attempt; one second is added per 16 KiB of body',
    parse: parse.duration,
    default: '60s',
  }),
  'max-wait': defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'longest wait for a limit or a failing host',
    parse: parse.duration,
    default: '1h',
  }),
  'archive-url': defaulted({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'URL',
    doc: 'where objects are',
    parse: parse.url,
    default: venue.hosts.archive,
  }),
  'listing-url': optional({
    group: 'Network',
    verbs: DOWNLOADS,
    value: 'URL',
    doc: `where the listing is (default: ${venue.hosts.listing}, or --archive-url when that is given)`,
    parse: parse.url,
  }),
  host: defaulted({
    group: 'Network',
    verbs: ['serve'],
    value: 'HOST',
    doc: 'address to listen on',
    parse: parse.text,
    default: '127.0.0.1',
  }),
  port: defaulted({
    group: 'Network',
    verbs: ['serve'],
    value: 'PORT',
    doc: 'port to listen on; 0 takes a free one',
    parse: parse.integer(0),
    default: '8090',
  }),

  json: optional({
    group: 'Messages',
    verbs: DOWNLOADS,
    doc: 'NDJSON events on stdout, the summary last',
    parse: parse.flag,
  }),
  progress: defaulted({
    group: 'Messages',
    verbs: DOWNLOADS,
    value: 'HOW',
    doc: 'auto, bar, plain or none (--no-progress)',
    parse: parse.choice(['auto', 'bar', 'plain', 'none']),
    default: 'auto',
  }),
  quiet: optional({
    group: 'Messages',
    verbs: DOWNLOADS,
    doc: 'say nothing when all is well',
    parse: parse.flag,
  }),
  'log-file': optional({
    group: 'Messages',
    verbs: DOWNLOADS,
    value: 'FILE',
    doc: 'structured log, appended',
    parse: parse.text,
  }),
  'log-level': defaulted({
    group: 'Messages',
    verbs: DOWNLOADS,
    value: 'LEVEL',
    doc: 'trace, debug, info, warn or error; other than info and without --log-file the log goes to stderr',
    parse: parse.choice(['trace', 'debug', 'info', 'warn', 'error']),
    default: 'info',
  }),

  config: optional({
    group: 'Options',
    verbs: ['vision', 'retry', 'serve'],
    value: 'FILE',
    doc: 'YAML or JSON file with flag names as keys',
    parse: parse.text,
  }),
  'print-options': optional({
    group: 'Options',
    verbs: ['vision', 'retry', 'serve'],
    doc: 'print every option with its value and origin, and end',
    parse: parse.flag,
  }),
} as const;

export type FlagName = keyof typeof FLAGS;
export const FLAG_NAMES = Object.keys(FLAGS) as FlagName[];

type ValueOf<F> = F extends { readonly parse: Parse<infer T>; readonly list: string }
  ? readonly T[]
  : F extends { readonly parse: Parse<infer T> }
    ? T
    : never;

/** Frozen and complete: what the rest of the program sees. */
export type Options = {
  readonly [K in FlagName]: (typeof FLAGS)[K] extends { readonly default: string }
    ? ValueOf<(typeof FLAGS)[K]>
    : ValueOf<(typeof FLAGS)[K]> | undefined;
};

export function flagSpec(name: FlagName): FlagSpec<unknown> {
  return FLAGS[name];
}

export function flagsOf(verb: Verb): FlagName[] {
  return FLAG_NAMES.filter((name) => flagSpec(name).verbs.includes(verb));
}

export function environmentName(name: FlagName): string {
  return `CRYPTODL_${name.toUpperCase().replaceAll('-', '_')}`;
}
