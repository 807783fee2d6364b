/** The one flag table: parsing, help, environment twins, config keys and --print-options come from it. */
import { ALL, MARKETS, PRESETS, readPresetWords, readVenueWords, STRATEGIES } from '../source/names.js';
import { durationText } from '../model/units.js';
import { limit, requestsPerMinute } from './limits.js';
import * as parse from './parsers.js';
import type { Parse } from './parsers.js';
import { FORMATS } from '../model/task.js';

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

interface FlagSpec {
  readonly group: (typeof GROUPS)[number];
  readonly verbs: readonly Verb[];
  readonly doc: string;
  /** Shown in help: `<N>`; absent for switches. */
  readonly value?: string;
  /** May be given several times; `comma` also splits each value at commas. */
  readonly list?: 'repeat' | 'comma';
  readonly parse: Parse<unknown>;
  /** What the parsed number counts; the name of the option ends with it. */
  readonly unit?: 'Ms' | 'Minutes' | 'Day' | 'Bytes' | 'BytesPerSecond' | 'Percent';
  /** A config file may have it as a map: `limits: { archive: 100/s }` is `archive=100/s`. */
  readonly isMap?: boolean;
  /** Every legal value, where they can be told: for completion and documents. */
  readonly choices?: readonly string[];
  /** A value to show, for flags without a default. */
  readonly example?: string;
  /** What other tools call it: only for hints. */
  readonly aka?: readonly string[];
  /** Text that `parse` takes, so that help and code cannot differ. */
  readonly default?: string;
  /** Verbs that take everything that is there when it is not given: they have no default to show. */
  readonly narrows?: readonly Verb[];
  /** Where a verb has another one. */
  readonly defaultOf?: Readonly<Partial<Record<Verb, string>>>;
}

const venue = readVenueWords();
const presets = readPresetWords();

/** `vision 2 × 100ms` */
function presetText(name: (typeof PRESETS)[number]): string {
  const { retries, baseDelayMs } = presets[name];
  return `${name} ${retries} × ${durationText(baseDelayMs)}`;
}
const DOWNLOADS: readonly Verb[] = ['vision', 'metrics', 'retry', 'repair'];
const ONLINE: readonly Verb[] = [...DOWNLOADS, 'verify', 'list', 'audit'];
/** Flags of `run`: they say the same of every job. */
const DOWNLOADS_AND_JOBS: readonly Verb[] = [...DOWNLOADS, 'run'];
const ONLINE_AND_JOBS: readonly Verb[] = [...ONLINE, 'run'];
/** What is looked at is what runs would use. */
const EXAMINED: readonly Verb[] = [...ONLINE_AND_JOBS, 'doctor'];
const CHOOSING: readonly Verb[] = ['vision', 'metrics', 'list', 'coverage', 'audit'];
const WRITING: readonly Verb[] = ['vision', 'metrics'];
/** What looks at the lake chooses among what it holds. */
const HELD: readonly Verb[] = ['verify', 'repair'];

/** What `metrics` downloads when nobody says otherwise. */
const METRICS = [
  'fundingRate',
  'openInterestHist',
  'topLongShortAccountRatio',
  'topLongShortPositionRatio',
  'globalLongShortAccountRatio',
  'takerLongShortRatio',
];

/** A parser and its values. */
const oneOf = <const T extends string>(choices: readonly T[]) => ({ parse: parse.choice(choices), choices });

const FLAGS = {
  only: {
    group: 'What',
    verbs: ['run'],
    value: 'LIST',
    list: 'comma',
    doc: 'names of jobs, with commas: the others are left out',
    parse: parse.text,
    example: 'bars',
    aka: ['job', 'name', 'names'],
  },
  market: {
    group: 'What',
    verbs: [...CHOOSING, 'schema', ...HELD],
    value: 'LIST',
    list: 'comma',
    narrows: ['coverage', ...HELD],
    doc: 'spot, um, cm, option, with commas, or all; metrics and schema take one',
    parse: parse.market(MARKETS),
    choices: [...MARKETS, ALL],
    default: venue.defaultMarket,
    aka: ['m', 'exchange', 'type', 'asset-class'],
  },
  dataset: {
    group: 'What',
    verbs: [...CHOOSING, ...HELD],
    value: 'LIST',
    list: 'comma',
    narrows: ['coverage', ...HELD],
    doc: 'datasets, with commas, or all of the market; cryptodl list datasets shows them',
    parse: parse.text,
    default: 'klines',
    defaultOf: { metrics: METRICS.join(',') },
    choices: [...venue.datasets, ALL],
    aka: ['data', 'data-type', 'kind'],
  },
  interval: {
    group: 'What',
    verbs: [...CHOOSING, ...HELD],
    value: 'LIST',
    list: 'comma',
    narrows: ['coverage', ...HELD],
    doc: 'intervals of klines and of REST statistics, with commas, or all',
    parse: parse.text,
    default: '1m',
    defaultOf: { metrics: '5m' },
    choices: [...venue.intervals, ALL],
    aka: ['i', 't', 'timeframe', 'granularity', 'freq', 'resolution'],
  },
  symbols: {
    group: 'What',
    verbs: [...CHOOSING, ...HELD],
    value: 'LIST',
    list: 'repeat',
    doc: "names, globs ('*USDT'), exclusions ('!BUSD*'), @FILE, - (stdin) or all; without it the series that the lake holds",
    parse: parse.text,
    example: 'BTCUSDT',
    aka: ['s', 'symbol', 'pair', 'pairs', 'ticker', 'tickers', 'coin', 'coins'],
  },
  quote: {
    group: 'What',
    verbs: [...CHOOSING, ...HELD],
    value: 'LIST',
    list: 'comma',
    doc: 'keep symbols with one of these quote assets',
    parse: parse.text,
    example: 'USDT',
  },

  at: {
    group: 'When',
    verbs: ['schedule'],
    value: 'HH:MM',
    doc: 'time of day, UTC; the archive publishes a day from about 07:30 of the next one on',
    parse: parse.timeOfDay,
    unit: 'Minutes',
    default: '08:05',
    aka: ['time', 'hour', 'when'],
  },
  every: {
    group: 'When',
    verbs: ['schedule'],
    value: 'TIME',
    doc: 'how often: day, or so many hours',
    ...oneOf(['day', '12h', '8h', '6h', '4h', '3h', '2h', '1h']),
    default: 'day',
    aka: ['interval', 'frequency'],
  },
  days: {
    group: 'When',
    verbs: CHOOSING,
    value: 'N',
    doc: 'the last N complete UTC days (downloads: 1 when no range is given)',
    parse: parse.integer(1),
    example: '7',
    aka: ['d', 'last'],
  },
  months: {
    group: 'When',
    verbs: CHOOSING,
    value: 'N',
    doc: 'the last N complete months',
    parse: parse.integer(1),
    example: '1',
  },
  from: {
    group: 'When',
    verbs: CHOOSING,
    value: 'DATE',
    doc: 'first day; without it the range starts where the series starts',
    parse: parse.day,
    unit: 'Day',
    example: '2024-01-01',
    aka: ['start', 'start-date', 'startDate', 'since', 'begin'],
  },
  to: {
    group: 'When',
    verbs: CHOOSING,
    value: 'DATE',
    doc: 'last day, included; without it the range ends yesterday',
    parse: parse.day,
    unit: 'Day',
    example: '2024-01-31',
    aka: ['end', 'end-date', 'endDate', 'until'],
  },
  'include-today': {
    group: 'When',
    verbs: ['metrics'],
    doc: 'also what there is of the running day; the next run asks for it again',
    parse: parse.flag,
  },
  'wait-for-publication': {
    group: 'When',
    verbs: DOWNLOADS_AND_JOBS,
    value: 'UNTIL',
    doc: 'before the work, wait until the archive has the newest wanted period of every series that goes on, but not beyond a time of day in UTC, an instant or a duration',
    parse: parse.until,
    example: '08:30',
  },
  jitter: {
    group: 'When',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'begin after a random time, at most this long',
    parse: parse.duration,
    unit: 'Ms',
    example: '5m',
  },
  'max-duration': {
    group: 'When',
    verbs: DOWNLOADS,
    value: 'TIME',
    doc: 'after this long nothing new is begun: what is under way is finished and committed, the rest of the plan goes into the failure report; a run that still makes its plan ends without one (exit code 3)',
    parse: parse.duration,
    unit: 'Ms',
    example: '2h',
    aka: ['max-time', 'time-limit'],
  },
  by: {
    group: 'When',
    verbs: ['coverage'],
    value: 'GRAIN',
    doc: 'day or month: what one cell is (default: day up to 60 days)',
    ...oneOf(['day', 'month']),
  },
  now: {
    group: 'When',
    verbs: [...ONLINE_AND_JOBS, 'coverage'],
    value: 'ISO',
    doc: 'what "today" means, for replays and tests',
    parse: parse.instant,
    unit: 'Ms',
    example: '2026-11-21T08:00:00Z',
  },

  out: {
    group: 'Output',
    verbs: [...DOWNLOADS_AND_JOBS, 'verify', 'audit', 'sql', 'coverage', 'doctor'],
    value: 'DIR',
    doc: 'the lake',
    parse: parse.text,
    default: './data',
    aka: ['o', 'output', 'output-dir', 'dir', 'directory', 'folder', 'path'],
  },
  format: {
    group: 'Output',
    verbs: [...WRITING, ...HELD, 'coverage'],
    value: 'FORMAT',
    narrows: ['coverage', ...HELD],
    doc: "parquet, csv or zip (the archive's own files)",
    ...oneOf(FORMATS),
    default: 'parquet',
    aka: ['f', 'ext', 'output-format', 'csv', 'parquet', 'zip'],
  },
  partition: {
    group: 'Output',
    verbs: WRITING,
    value: 'GRAIN',
    doc: 'day or month: what one file holds (default: by dataset)',
    ...oneOf(['day', 'month']),
  },
  cadence: {
    group: 'Output',
    verbs: ['vision', 'list'],
    value: 'CADENCE',
    doc: 'auto, daily or monthly objects',
    ...oneOf(['auto', 'daily', 'monthly']),
    default: 'auto',
  },
  numbers: {
    group: 'Output',
    verbs: WRITING,
    value: 'KIND',
    doc: 'double, or string with every digit (Parquet)',
    ...oneOf(['double', 'string']),
    default: 'double',
  },
  timestamps: {
    group: 'Output',
    verbs: WRITING,
    value: 'UNIT',
    doc: 'us, ms or iso (CSV)',
    ...oneOf(['us', 'ms', 'iso']),
    default: 'us',
  },
  'as-published': {
    group: 'Output',
    verbs: WRITING,
    doc: 'keep rows in their published order, duplicates included',
    parse: parse.flag,
  },
  prefer: {
    group: 'Output',
    verbs: ['audit'],
    value: 'CADENCE',
    doc: 'daily: months that the lake holds from a monthly object that is worse than its days are made anew from the days',
    ...oneOf(['daily']),
  },
  force: {
    group: 'Output',
    verbs: WRITING,
    doc: 'fetch again and rebuild, also with other settings than the series holds',
    parse: parse.flag,
    aka: ['overwrite', 'refresh'],
  },
  'dry-run': {
    group: 'Output',
    verbs: DOWNLOADS_AND_JOBS,
    doc: 'print fetch|skip|absent, bytes and key per object, and do nothing',
    parse: parse.flag,
    aka: ['plan', 'simulate', 'list'],
  },
  failures: {
    group: 'Output',
    verbs: DOWNLOADS_AND_JOBS,
    value: 'FILE',
    doc: 'failure report; replaces no file but an earlier report (default: one per run under OUT/failures; retry: the file itself)',
    parse: parse.text,
    example: 'failures.jsonl',
  },
  'temp-dir': {
    group: 'Output',
    verbs: [...DOWNLOADS_AND_JOBS, 'audit', 'sql', 'doctor'],
    value: 'DIR',
    doc: 'spool of bodies under way (default: OUT/.cryptodl/tmp; audit, sql: the folder of the system)',
    parse: parse.text,
    example: '/tmp/spool',
  },

  kind: {
    group: 'Output',
    verbs: ['schedule'],
    value: 'KIND',
    doc: 'cron, systemd or both',
    ...oneOf(['cron', 'systemd', 'both']),
    default: 'both',
    aka: ['cron', 'systemd', 'type', 'format', 'for'],
  },
  long: {
    group: 'Output',
    verbs: ['list'],
    doc: 'symbols with first and last period, objects and bytes (a few requests each)',
    parse: parse.flag,
  },

  views: {
    group: 'Output',
    verbs: ['sql'],
    doc: 'print the CREATE VIEW statements of the whole lake, for DuckDB; made anew they know what came since',
    parse: parse.flag,
  },
  csv: {
    group: 'Output',
    verbs: ['sql', 'coverage'],
    doc: 'CSV on stdout: of sql all rows, also on a terminal, which else gets a table of the first 40; of coverage a line per series and period, with the reasons of its gaps',
    parse: parse.flag,
  },

  join: {
    group: 'What',
    verbs: ['metrics'],
    value: 'WITH',
    doc: 'archive: days and months that the archive has come from there, only the rest from REST',
    ...oneOf(['archive']),
  },
  fill: {
    group: 'What',
    verbs: ['vision'],
    value: 'FROM',
    doc: 'rest: klines, aggTrades, funding rates and metrics that the archive has not got (yet) come from REST',
    ...oneOf(['rest']),
  },
  'state-dir': {
    group: 'Safety',
    verbs: EXAMINED,
    value: 'DIR',
    doc: 'what runs of this machine share: bans, and copies of what hosts said last (default: $XDG_STATE_HOME/cryptodl or ~/.local/state/cryptodl)',
    parse: parse.text,
    example: '/var/lib/cryptodl',
  },
  deep: {
    group: 'Safety',
    verbs: HELD,
    doc: 'read every row again: values, times, order, counts per object',
    parse: parse.flag,
  },
  upstream: {
    group: 'Safety',
    verbs: HELD,
    doc: 'compare held objects with the listing and the sidecars of the archive: one request per object',
    parse: parse.flag,
  },
  fix: {
    group: 'Safety',
    verbs: ['verify'],
    doc: 'put what is wrong into OUT/quarantine and remove leftovers; cryptodl repair then fetches what is missing',
    parse: parse.flag,
  },
  verify: {
    group: 'Safety',
    verbs: ['vision', 'retry', 'repair', 'audit'],
    value: 'HOW',
    doc: 'sha256 (sidecar), etag (MD5 from the listing) or none',
    ...oneOf(['sha256', 'etag', 'none']),
    default: 'sha256',
  },
  revisions: {
    group: 'Safety',
    verbs: ['vision'],
    value: 'HOW',
    doc: 'check: what has changed upstream is fetched again, and taken unless it lacks rows that are held; take: taken all the same; ignore: what is held stays; only: nothing else is fetched',
    ...oneOf(['check', 'take', 'ignore', 'only']),
    default: 'check',
  },
  'recheck-days': {
    group: 'Safety',
    verbs: ['vision'],
    value: 'N',
    doc: 'held days of the last N that are looked at again as well, when the range ends within them',
    parse: parse.integer(0),
    default: '7',
  },
  'stale-checksum': {
    group: 'Safety',
    verbs: ['vision', 'retry', 'repair', 'audit'],
    value: 'WHAT',
    doc: 'an object that its sidecar contradicts, while size and ETag are the listed ones: fail, or warn and take it',
    ...oneOf(['fail', 'warn']),
    default: 'fail',
  },
  'max-bytes': {
    group: 'Safety',
    verbs: DOWNLOADS,
    value: 'SIZE',
    doc: 'refuse a plan that is larger, before the first byte',
    parse: parse.bytes,
    unit: 'Bytes',
    example: '50GB',
  },
  strict: {
    group: 'Safety',
    verbs: DOWNLOADS_AND_JOBS,
    doc: 'holes and partial objects end with exit code 4',
    parse: parse.flag,
  },

  'error-on-nothing': {
    group: 'Safety',
    verbs: DOWNLOADS,
    doc: 'a run that writes nothing new ends with exit code 5',
    parse: parse.flag,
  },
  'wait-lock': {
    group: 'Safety',
    verbs: DOWNLOADS_AND_JOBS,
    value: 'TIME',
    doc: 'wait so long for another run that writes the lake, instead of ending with exit code 6 at once',
    parse: parse.duration,
    unit: 'Ms',
    example: '30m',
    aka: ['lock-timeout', 'wait'],
  },
  min: {
    group: 'Safety',
    verbs: ['coverage'],
    value: 'PERCENT',
    doc: 'exit code 4 when a series has less than this of what must be there',
    parse: parse.percent,
    unit: 'Percent',
    example: '99.9',
    aka: ['threshold', 'minimum', 'fail-under'],
  },

  concurrency: {
    group: 'Network',
    verbs: [...ONLINE, 'doctor'],
    value: 'N',
    doc: 'objects in flight: a number, auto or auto:MAX',
    parse: parse.concurrency,
    default: 'auto',
    defaultOf: { metrics: 'auto:10' },
    aka: ['c', 'j', 'n', 'w', 'workers', 'threads', 'jobs', 'parallel', 'max-workers'],
  },
  'retry-preset': {
    group: 'Network',
    verbs: [...ONLINE, 'doctor'],
    value: 'NAME',
    doc: `retries and back-off together: ${PRESETS.map(presetText).join('; ')}`,
    ...oneOf(PRESETS),
    default: 'vision',
    defaultOf: { metrics: 'metrics' },
  },
  retries: {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'quick extra tries per request, whatever the preset says',
    parse: parse.integer(0),
    example: '2',
    aka: ['retry', 'max-retries', 'attempts'],
  },
  'retry-delay': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'base of the back-off, whatever the preset says',
    parse: parse.duration,
    unit: 'Ms',
    example: '100ms',
  },
  'retry-factor': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'X',
    doc: 'by how much each step of the back-off is longer than the one before, whatever the preset says; fixed, linear and decorrelated have none',
    parse: parse.factor,
    example: '2',
    aka: ['retry-multiplier', 'backoff-factor'],
  },
  'retry-max-delay': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'cap of the back-off, whatever the preset says',
    parse: parse.duration,
    unit: 'Ms',
    example: '10s',
    aka: ['max-delay', 'backoff-max'],
  },
  'retry-strategy': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'NAME',
    doc: 'back-off: fixed, linear, exponential, or exponential with full, equal or decorrelated jitter (default: full)',
    ...oneOf(STRATEGIES),
    example: 'equal',
  },
  jobs: {
    group: 'Network',
    verbs: ['run'],
    value: 'N',
    doc: 'jobs side by side; jobs of one lake run one after the other in their order, and limits hold for all jobs together',
    parse: parse.integer(1),
    default: '1',
    aka: ['j', 'parallel', 'workers'],
  },
  'breaker-open': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'how long a failing host is left alone',
    parse: parse.duration,
    unit: 'Ms',
    default: '30s',
  },
  'breaker-failures': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'failures in a row after which a host is left alone',
    parse: parse.integer(1),
    default: '5',
  },
  'breaker-successes': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'successes in a row after which a host that was left alone gets all requests again',
    parse: parse.integer(1),
    default: '3',
  },
  'connect-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'DNS, TCP and TLS',
    parse: parse.duration,
    unit: 'Ms',
    default: '5s',
  },
  'headers-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'request sent to headers received',
    parse: parse.duration,
    unit: 'Ms',
    default: '15s',
    defaultOf: { doctor: '5s' },
  },
  'idle-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'silence within a body',
    parse: parse.duration,
    unit: 'Ms',
    default: '10s',
    defaultOf: { doctor: '5s' },
  },
  'total-timeout': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'one attempt; one second is added per 16 KiB of body',
    parse: parse.duration,
    unit: 'Ms',
    default: '60s',
    defaultOf: { doctor: '10s' },
    aka: ['timeout'],
  },
  'max-wait': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'longest wait for a limit or a failing host',
    parse: parse.duration,
    unit: 'Ms',
    default: '1h',
  },
  'blocked-wait': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'how long a host whose firewall refuses this address (403) is left alone, before it is asked once more',
    parse: parse.duration,
    unit: 'Ms',
    default: '60s',
  },
  'request-interval': {
    group: 'Network',
    verbs: ONLINE_AND_JOBS,
    value: 'TIME',
    doc: 'least time between two requests of one bucket, below all limits of the venue',
    parse: parse.duration,
    unit: 'Ms',
    example: '100ms',
    aka: ['request-delay', 'sleep'],
  },
  'requests-per-minute': {
    group: 'Network',
    verbs: ONLINE_AND_JOBS,
    value: 'N',
    doc: 'most requests of one bucket in any minute, below all limits of the venue',
    parse: requestsPerMinute(venue.limits),
    example: '600',
    aka: ['rpm'],
  },
  limits: {
    group: 'Network',
    verbs: ONLINE_AND_JOBS,
    value: 'LIST',
    list: 'comma',
    isMap: true,
    doc: `lower limits of buckets (${Object.keys(venue.limits).join(', ')}), with commas; in a file limits: { archive: 100/s, futuresData: 800/5m }`,
    parse: limit(venue.limits),
    example: 'archive=100/s',
    aka: ['limit', 'rate', 'rates'],
  },
  priority: {
    group: 'Network',
    verbs: ONLINE_AND_JOBS,
    value: 'LEVEL',
    doc: 'high, normal or low: whose turn it is where permits are scarce',
    ...oneOf(['high', 'normal', 'low']),
    default: 'normal',
    aka: ['nice'],
  },
  bwlimit: {
    group: 'Network',
    verbs: ONLINE_AND_JOBS,
    value: 'SIZE',
    doc: 'most bytes per second, all connections together',
    parse: parse.bytes,
    unit: 'BytesPerSecond',
    example: '10MB',
    aka: ['limit-rate', 'rate-limit', 'max-speed', 'bandwidth'],
  },
  'pool-limit': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'most sockets of the process; requests beyond wait for one',
    parse: parse.integer(1),
    example: '100',
    aka: ['max-connections', 'max-sockets'],
  },
  'pool-limit-per-host': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'N',
    doc: 'most sockets of one host; requests beyond wait for one (default: two per object in flight, and 8)',
    parse: parse.integer(1),
    example: '20',
    aka: ['limit-per-host', 'max-connections-per-host'],
  },
  'keep-alive': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'TIME',
    doc: 'how long an idle socket is kept; 0 for none, a new one for each request',
    parse: parse.duration,
    unit: 'Ms',
    default: '30s',
    aka: ['keepalive', 'keep-alive-timeout'],
  },
  http2: {
    group: 'Network',
    verbs: EXAMINED,
    doc: 'HTTP/2 where the host speaks it',
    parse: parse.flag,
  },
  proxy: {
    group: 'Network',
    verbs: EXAMINED,
    value: 'URL',
    doc: 'for all addresses but those in NO_PROXY; none for none (default: HTTPS_PROXY and HTTP_PROXY)',
    parse: parse.proxy,
    example: 'http://127.0.0.1:3128',
  },
  'ca-file': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'FILE',
    doc: 'certificates (PEM) that are trusted besides the usual ones',
    parse: parse.text,
    example: '/etc/ssl/company.pem',
    aka: ['cacert', 'ca-bundle'],
  },
  'archive-url': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'URL',
    doc: 'where objects are',
    parse: parse.url,
    default: venue.hosts.archive,
    aka: ['url', 'base-url', 'host-url'],
  },
  'listing-url': {
    group: 'Network',
    verbs: EXAMINED,
    value: 'URL',
    doc: `where the listing is (default: ${venue.hosts.listing}, or --archive-url when that is given)`,
    parse: parse.url,
    example: 'http://127.0.0.1:8090',
  },
  'fallback-url': {
    group: 'Network',
    verbs: ONLINE_AND_JOBS,
    value: 'URL',
    doc: `where the same objects are, while the archive's host is left alone (default: ${venue.hosts.origin}, unless --archive-url is given)`,
    parse: parse.url,
    example: 'http://127.0.0.1:8090',
  },
  'fapi-url': {
    group: 'Network',
    verbs: [...DOWNLOADS_AND_JOBS, 'doctor'],
    value: 'URL',
    doc: 'where REST of USD-margined futures is',
    parse: parse.url,
    default: venue.hosts.fapi,
  },
  'dapi-url': {
    group: 'Network',
    verbs: [...DOWNLOADS_AND_JOBS, 'doctor'],
    value: 'URL',
    doc: 'where REST of coin-margined futures is',
    parse: parse.url,
    default: venue.hosts.dapi,
  },
  'spot-url': {
    group: 'Network',
    verbs: [...DOWNLOADS_AND_JOBS, 'doctor'],
    value: 'URL',
    doc: `where REST of spot is; where it does not serve your place, ${venue.hosts.spotPublic} is asked instead`,
    parse: parse.url,
    default: venue.hosts.spot,
  },
  'clear-bans': {
    group: 'Network',
    verbs: ['doctor'],
    value: 'HOST',
    doc: 'forget what is remembered of bans by this host, say what was removed, and check nothing else',
    parse: parse.text,
    example: 'fapi.binance.com',
    aka: ['clear-ban', 'unban', 'forget-bans'],
  },
  host: {
    group: 'Network',
    verbs: ['serve'],
    value: 'HOST',
    doc: 'address to listen on',
    parse: parse.text,
    default: '127.0.0.1',
  },
  port: {
    group: 'Network',
    verbs: ['serve'],
    value: 'PORT',
    doc: 'port to listen on; 0 takes a free one',
    parse: parse.integer(0),
    default: '8090',
  },

  json: {
    group: 'Messages',
    verbs: [...ONLINE_AND_JOBS, 'schema', 'sql', 'coverage', 'doctor'],
    doc: 'NDJSON on stdout: of a run its events, the summary last; of audit its findings; of sql its rows, in which decimals, times and whole numbers beyond 2^53 are text; of doctor one object per check',
    parse: parse.flag,
  },
  progress: {
    group: 'Messages',
    verbs: DOWNLOADS_AND_JOBS,
    value: 'HOW',
    doc: 'auto, bar, plain or none (--no-progress)',
    ...oneOf(['auto', 'bar', 'plain', 'none']),
    default: 'auto',
  },
  quiet: {
    group: 'Messages',
    verbs: [...EXAMINED, 'sql'],
    doc: 'say nothing when all is well',
    parse: parse.flag,
    aka: ['q', 'silent'],
  },
  ping: {
    group: 'Messages',
    verbs: DOWNLOADS,
    value: 'URL',
    doc: 'address that is asked for at success, with /start at the beginning and /fail at failure',
    parse: parse.pingUrl,
    example: 'https://hc-ping.com/your-uuid',
    aka: ['healthcheck', 'heartbeat'],
  },
  'log-file': {
    group: 'Messages',
    verbs: DOWNLOADS_AND_JOBS,
    value: 'FILE',
    doc: 'structured log, appended',
    parse: parse.text,
    example: 'cryptodl.log',
  },
  'log-level': {
    group: 'Messages',
    verbs: DOWNLOADS_AND_JOBS,
    value: 'LEVEL',
    doc: 'trace, debug, info, warn or error; other than info and without --log-file the log goes to stderr',
    ...oneOf(['trace', 'debug', 'info', 'warn', 'error']),
    default: 'info',
  },

  config: {
    group: 'Options',
    verbs: [...ONLINE, 'schema', 'sql', 'coverage', 'serve', 'doctor'],
    value: 'FILE',
    doc: 'YAML or JSON file with flag names as keys',
    parse: parse.text,
    example: 'config/vision.example.yaml',
  },
  'print-options': {
    group: 'Options',
    verbs: [...ONLINE_AND_JOBS, 'schema', 'sql', 'coverage', 'serve', 'doctor'],
    doc: 'print every option with its value and origin, and end',
    parse: parse.flag,
  },
} as const satisfies Readonly<Record<string, FlagSpec>>;

type Flags = typeof FLAGS;
export type FlagName = keyof Flags;
export const FLAG_NAMES = Object.keys(FLAGS) as FlagName[];

export type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

type WithUnit<Name extends string, Unit extends string> = Name extends `${string}${Unit}`
  ? Name
  : `${Name}${Unit}`;

/** `max-wait` → `maxWaitMs`. */
type OptionName<Name extends FlagName> = Flags[Name] extends {
  readonly unit: infer Unit extends string;
}
  ? WithUnit<CamelCase<Name>, Unit>
  : CamelCase<Name>;

/** What the flag's text becomes. */
export type FlagValue<Name extends FlagName> = Flags[Name] extends { readonly list: string }
  ? readonly ReturnType<Flags[Name]['parse']>[]
  : ReturnType<Flags[Name]['parse']>;

/** Final values, frozen: undefined only where there is no default. */
export type Options = {
  readonly [Name in FlagName as OptionName<Name>]: Flags[Name] extends
    { readonly default: string } | { readonly parse: Parse<boolean> }
    ? FlagValue<Name>
    : FlagValue<Name> | undefined;
};

export function flagSpec(name: FlagName): FlagSpec {
  return FLAGS[name];
}

export function defaultOf(name: FlagName, verb: Verb): string | undefined {
  const spec = flagSpec(name);
  return spec.defaultOf?.[verb] ?? spec.default;
}

export function flagsOf(verb: Verb): FlagName[] {
  return FLAG_NAMES.filter((name) => flagSpec(name).verbs.includes(verb));
}

export function environmentName(name: FlagName): string {
  return `CRYPTODL_${name.toUpperCase().replaceAll('-', '_')}`;
}

/** A switch has no value of its own. */
export function isSwitch(name: FlagName): boolean {
  return flagSpec(name).value === undefined;
}

/** `dryRun`, as programs name the flag. */
export function camelCase(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** `maxWaitMs`: the flag's name, and what its number counts. */
export function optionName(name: FlagName): keyof Options {
  const plain = camelCase(name);
  const { unit = '' } = flagSpec(name);
  return (plain.endsWith(unit) ? plain : `${plain}${unit}`) as keyof Options;
}
