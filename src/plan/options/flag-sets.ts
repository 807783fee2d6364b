/** Sets of flags that several verbs take, and meanings of flags that several verbs share. */
import { dataset } from './exchange-values.js';
import { flagSpec, type FlagName } from './flags.js';
import type { FlagMeanings } from './verb-spec.js';

const names = <const Names extends readonly FlagName[]>(...given: Names): Names => given;

export const SERIES_FLAGS = names('symbols', 'market', 'dataset', 'interval', 'quote');

export const RANGE_FLAGS = names('days', 'months', 'from', 'to');

export const SELECT_FLAGS = names(...SERIES_FLAGS, ...RANGE_FLAGS);

/** Flags of `--help` of verbs that send many requests. */
export const CALL_FLAGS = names('concurrency', 'json', 'quiet', 'config');

export const SOCKET_FLAGS = names('connect-timeout', 'pool-limit', 'http2', 'ca-file', 'archive-url');

export const ATTEMPT_FLAGS = names(
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
);

/** The flags of verbs that send many requests. A verb may show some of them in `--help`. */
export const REQUEST_FLAGS = names(
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
);

export const REST_FLAGS = names('fapi-url', 'dapi-url', 'spot-url');

export const BUCKET_FLAGS = names('s3-endpoint', 's3-region');

/** The flags of everything that goes over the network: the archive, REST, and a lake in a bucket. */
export const REMOTE_FLAGS = names(...REQUEST_FLAGS, ...REST_FLAGS, ...BUCKET_FLAGS);

/** The flags of runs. A verb may show some of them in `--help`. */
export const RUN_FLAGS = names(
  ...REMOTE_FLAGS,
  'wait-for-publication',
  'failures',
  'temp-dir',
  'strict',
  'wait-lock',
  'progress',
  'prometheus-port',
  'prometheus-textfile',
  'debug-dump',
);

/** The flags of a run that stands alone, not in a file of jobs. */
export const DOWNLOAD_FLAGS = names(
  ...RUN_FLAGS,
  'jitter',
  'max-duration',
  'max-bytes',
  'error-on-nothing',
  'ping',
  'alert-webhook',
  'retry-preset',
  'print-options',
);

/** Flags of `--help` of verbs that select what they download. */
export const SAVE_FLAGS = names(
  ...SELECT_FLAGS,
  ...CALL_FLAGS,
  'shard',
  'out',
  'format',
  'force',
  'dry-run',
  'log-level',
);

/** Flags of `--help` of verbs that download what an earlier run lacks. */
export const MEND_FLAGS = names(
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
);

export const FORM_FLAGS = names('partition', 'numbers', 'timestamps', 'as-published');

export const OBJECT_FLAGS = names('cadence', 'verify', 'revisions', 'recheck-days', 'stale-checksum');

/** Flags of `--help` of `universe`. */
export const RANKING_FLAGS = names(
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
);

/** Further flags of verbs that keep nothing in the lake. */
export const READER_FLAGS = names(
  ...BUCKET_FLAGS,
  'temp-dir',
  'state-dir',
  'quiet',
  'config',
  'print-options',
);

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
    parse: dataset('archive'),
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

export const OF_QUERY = { ...OF_HELD_SERIES, ...IN_SYSTEM_FOLDER } as const satisfies FlagMeanings;
