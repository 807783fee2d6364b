/** Sets of flags that several verbs take, and meanings of flags that several verbs share. */
import * as parse from './parsers.js';
import { flagSpec } from './flags.js';
import type { FlagName } from './flags.js';
import type { FlagMeanings } from './verb-spec.js';

export const SERIES_FLAGS = [
  'symbols',
  'market',
  'dataset',
  'interval',
  'quote',
] as const satisfies readonly FlagName[];

/** Flags of a selection among the series of a lake. */
export type HeldFlag = (typeof SERIES_FLAGS)[number] | 'out' | 'skip-unknown';

export const RANGE_FLAGS = ['days', 'months', 'from', 'to'] as const satisfies readonly FlagName[];
export type RangeFlag = (typeof RANGE_FLAGS)[number];

export const SOCKET_FLAGS = [
  'connect-timeout',
  'pool-limit',
  'http2',
  'ca-file',
  'archive-url',
] as const satisfies readonly FlagName[];

export const ATTEMPT_FLAGS = [
  'retries',
  'max-wait',
  'redis',
  'retry-delay',
  'retry-factor',
  'retry-max-delay',
  'retry-strategy',
  'breaker-open',
  'breaker-failures',
  'breaker-successes',
  'headers-timeout',
  'idle-timeout',
  'total-timeout',
  'blocked-wait',
  'pool-limit-per-host',
  'keep-alive',
  'egress-group',
  'listing-url',
] as const satisfies readonly FlagName[];

/** The flags of verbs that send many requests. A verb may show some of them in `--help`. */
export const REQUEST_FLAGS = [
  ...SOCKET_FLAGS,
  ...ATTEMPT_FLAGS,
  'state-dir',
  'request-interval',
  'requests-per-minute',
  'limits',
  'priority',
  'bwlimit',
  'proxy',
  'fallback-url',
  'log-file',
  'log-level',
  'now',
] as const satisfies readonly FlagName[];

export const REST_FLAGS = ['fapi-url', 'dapi-url', 'spot-url'] as const satisfies readonly FlagName[];

/** The flags of runs. A verb may show some of them in `--help`. */
export const RUN_FLAGS = [
  ...REQUEST_FLAGS,
  ...REST_FLAGS,
  'wait-for-publication',
  'failures',
  'temp-dir',
  'strict',
  'wait-lock',
  'progress',
  'prometheus-port',
  'prometheus-textfile',
  'debug-dump',
] as const satisfies readonly FlagName[];

/** The flags of a run that stands alone, not in a file of jobs. */
export const DOWNLOAD_FLAGS = [
  ...RUN_FLAGS,
  'jitter',
  'max-duration',
  'max-bytes',
  'error-on-nothing',
  'ping',
  'alert-webhook',
  'print-options',
] as const satisfies readonly FlagName[];

export const FORM_FLAGS = [
  'partition',
  'numbers',
  'timestamps',
  'as-published',
] as const satisfies readonly FlagName[];

export const OBJECT_FLAGS = [
  'cadence',
  'verify',
  'revisions',
  'recheck-days',
  'stale-checksum',
] as const satisfies readonly FlagName[];

export const BUCKET_FLAGS = ['s3-endpoint', 's3-region'] as const satisfies readonly FlagName[];

/** The flags that a session reads: its requests, and the lake of a run. */
export const SESSION_FLAGS = [
  ...REQUEST_FLAGS,
  ...REST_FLAGS,
  'market',
  'join',
  'fill',
  'max-duration',
  'out',
  'temp-dir',
  'dry-run',
  'wait-lock',
  'concurrency',
] as const satisfies readonly FlagName[];
export type SessionFlag = (typeof SESSION_FLAGS)[number];

/** The flags that a run reads, from whichever verb it is. */
export const PLAN_FLAGS = [
  ...SESSION_FLAGS,
  ...DOWNLOAD_FLAGS,
  ...SERIES_FLAGS,
  ...RANGE_FLAGS,
  ...OBJECT_FLAGS,
  ...FORM_FLAGS,
  'skip-unknown',
  'shard',
  'include-today',
  'exact',
  'format',
  'force',
  'deep',
  'json',
  'quiet',
] as const satisfies readonly FlagName[];
export type RunFlag = (typeof PLAN_FLAGS)[number];

/** Statistics that only REST has. `metrics` downloads them by default. */
export const STATISTICS = [
  'openInterestHist',
  'topLongShortAccountRatio',
  'topLongShortPositionRatio',
  'globalLongShortAccountRatio',
  'takerLongShortRatio',
];

const UNARCHIVED = [...STATISTICS, 'basis', 'bars'];

export const ARCHIVED = {
  dataset: {
    parse: parse.dataset('archive'),
    choices: (flagSpec('dataset').choices ?? []).filter((name) => !UNARCHIVED.includes(name)),
  },
} as const satisfies FlagMeanings;

/** Without these flags, all series of the lake are selected. */
export const OF_HELD_SERIES = {
  market: { narrows: true },
  dataset: { narrows: true },
  interval: { narrows: true },
} as const satisfies FlagMeanings;

/** Also without --format. */
export const OF_HELD_FILES = { ...OF_HELD_SERIES, format: { narrows: true } } as const satisfies FlagMeanings;

/** Verbs that only read a lake keep no files in it. */
export const IN_SYSTEM_FOLDER = {
  'temp-dir': { unset: 'the temporary folder of the system' },
} as const satisfies FlagMeanings;
