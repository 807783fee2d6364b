/** The error codes of the program, and the properties of each code. */

/**
 * - `retryable`: the same request may succeed later (exit code 3 instead of 4).
 * - `rounds`: after the quick retries, the task is tried again at the end of the queue.
 * - `hostFault`: the breaker counts the error as a failure of the host.
 * - `fatal`: the error ends the run.
 * - `wrongBytes`: the bytes of the object or its sidecar are wrong: the daily objects may replace a monthly one.
 * - `lasting`: the published bytes cause the error: each later request of the same revision fails the same way.
 */
type Traits = Readonly<
  Record<'retryable' | 'rounds' | 'hostFault' | 'fatal' | 'wrongBytes' | 'lasting', boolean>
>;

const NONE = { hostFault: false, fatal: false, wrongBytes: false, lasting: false } as const;
const TRANSIENT: Traits = { ...NONE, retryable: true, rounds: true, hostFault: true };
const CONTENT: Traits = { ...NONE, retryable: true, rounds: false };
const PERMANENT: Traits = { ...NONE, retryable: false, rounds: false };
const FATAL: Traits = { ...PERMANENT, fatal: true };
const MALFORMED: Traits = { ...PERMANENT, wrongBytes: true, lasting: true };

export const ERROR_TRAITS = {
  // connection and HTTP
  'connect-failed': TRANSIENT,
  'proxy-unreachable': TRANSIENT,
  'dns-failed': TRANSIENT,
  'host-unknown': TRANSIENT,
  'connection-lost': TRANSIENT,
  'connect-timeout': TRANSIENT,
  'headers-timeout': TRANSIENT,
  'idle-timeout': TRANSIENT,
  'total-timeout': TRANSIENT,
  'too-slow': TRANSIENT,
  'http-protocol': TRANSIENT,
  'http-server-error': TRANSIENT,
  'http-forbidden': PERMANENT,
  'http-refused': PERMANENT,
  // The next object would fail in the same way.
  'proxy-refused': FATAL,
  'tls-failed': FATAL,
  'redirect-refused': PERMANENT,
  'body-encoded': TRANSIENT,
  // limits and waits
  'rate-limited': { ...TRANSIENT, hostFault: false },
  banned: { ...TRANSIENT, hostFault: false },
  'address-blocked': { ...TRANSIENT, hostFault: false },
  'breaker-open': { ...TRANSIENT, hostFault: false },
  'wait-too-long': { ...TRANSIENT, rounds: false, hostFault: false },
  // --max-duration ended the run before the task began, or while it waited
  'time-over': CONTENT,
  // content
  'length-mismatch': { ...CONTENT, rounds: true, hostFault: true, wrongBytes: true },
  // The body does not match its own ETag, so the transfer failed; the published object may be correct.
  'body-damaged': { ...CONTENT, rounds: true, wrongBytes: true },
  'checksum-mismatch': { ...CONTENT, wrongBytes: true },
  // Size and ETag match, the digest in the sidecar does not.
  'sidecar-stale': { ...CONTENT, wrongBytes: true, lasting: true },
  'zip-truncated': { ...CONTENT, wrongBytes: true },
  'not-a-zip': { ...CONTENT, rounds: true, wrongBytes: true },
  'listing-malformed': { ...CONTENT, rounds: true },
  'zip-broken': MALFORMED,
  'zip-unsupported': MALFORMED,
  'zip-bomb': MALFORMED,
  'header-unknown': MALFORMED,
  'row-malformed': MALFORMED,
  'symbol-mismatch': MALFORMED,
  'file-empty': MALFORMED,
  'rows-outside-period': MALFORMED,
  // A monthly object lacks rows of held days, or adds no rows to them.
  'month-incomplete': { ...PERMANENT, lasting: true },
  'partition-incomplete': CONTENT,
  'out-of-memory': { ...CONTENT, rounds: true },
  'object-withdrawn': PERMANENT,
  // REST
  'answer-malformed': { ...CONTENT, rounds: true },
  'page-wrong': { ...CONTENT, rounds: true },
  'location-restricted': PERMANENT,
  'symbol-unknown': PERMANENT,
  'symbol-closed': PERMANENT,
  'contract-unknown': PERMANENT,
  'before-history': PERMANENT,
  'key-required': PERMANENT,
  // run
  usage: FATAL,
  locked: FATAL,
  'disk-full': FATAL,
  disk: FATAL,
  unreachable: FATAL,
  // a lake in a bucket
  // Wrong credentials, missing rights, no such bucket: the next request would fail in the same way.
  'lake-refused': FATAL,
  // The server does not answer after all retries.
  'lake-unreachable': { ...FATAL, retryable: true },
  // Another writer has changed the series.
  'lake-conflict': { ...CONTENT, rounds: true },
  // No DuckDB binary for this platform is installed.
  'engine-missing': FATAL,
  // A job of a queue ended the process of each worker that began it.
  'job-stalled': PERMANENT,
  // A zip that one worker fetched for another is missing or damaged: it is fetched again.
  'staged-zip-lost': CONTENT,
  'package-missing': FATAL,
  // --redis: the server may come back (exit code 3), or will never do.
  'redis-unreachable': { ...FATAL, retryable: true },
  'redis-refused': FATAL,
  'manifest-damaged': FATAL,
  interrupted: FATAL,
  bug: FATAL,
} as const satisfies Record<string, Traits>;
