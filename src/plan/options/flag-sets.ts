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

export const RANGE_FLAGS = ['days', 'months', 'from', 'to'] as const satisfies readonly FlagName[];

export const SELECT_FLAGS = [...SERIES_FLAGS, ...RANGE_FLAGS] as const satisfies readonly FlagName[];

/** Flags of `--help` of verbs that send many requests. */
export const CALL_FLAGS = ['concurrency', 'json', 'quiet', 'config'] as const satisfies readonly FlagName[];

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

/** Flags of `--help` of verbs that select what they download. */
export const SAVE_FLAGS = [
  ...SELECT_FLAGS,
  ...CALL_FLAGS,
  'shard',
  'out',
  'format',
  'force',
  'dry-run',
  'log-level',
] as const satisfies readonly FlagName[];

/** Flags of `--help` of verbs that download what an earlier run lacks. */
export const MEND_FLAGS = [
  ...CALL_FLAGS,
  'max-duration',
  'out',
  'failures',
  'dry-run',
  'max-bytes',
  'wait-lock',
  'retries',
  'bwlimit',
  'log-level',
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

/** Flags of `--help` of `universe`. */
export const RANKING_FLAGS = [
  'symbols',
  'market',
  'quote',
  'from',
  'to',
  'target',
  'top',
  'contract',
  'by',
  'window',
  'min-age',
  'as',
  'out',
  'force',
  'every',
  'json',
] as const satisfies readonly FlagName[];

/** Further flags of verbs that keep nothing in the lake. */
export const READER_FLAGS = [
  ...BUCKET_FLAGS,
  'temp-dir',
  'state-dir',
  'quiet',
  'config',
  'print-options',
] as const satisfies readonly FlagName[];

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
