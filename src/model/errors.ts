import { constants } from 'node:os';
import type { FetchResponse, PartialBody } from '../http/fetch.js';

/**
 * Every way in which the program can fail, as data.
 *
 * - `retryable`: the same request may succeed later (exit code 3 instead of 4).
 * - `rounds`: worth another round at the end of the queue, when the quick retries are used up.
 * - `hostFault`: says something about the host, so the breaker counts it.
 * - `fatal`: the whole run ends.
 */
interface Traits {
  readonly retryable: boolean;
  readonly rounds: boolean;
  readonly hostFault: boolean;
  readonly fatal: boolean;
}

const TRANSIENT: Traits = { retryable: true, rounds: true, hostFault: true, fatal: false };
const CONTENT: Traits = { retryable: true, rounds: false, hostFault: false, fatal: false };
const PERMANENT: Traits = { retryable: false, rounds: false, hostFault: false, fatal: false };
const FATAL: Traits = { retryable: false, rounds: false, hostFault: false, fatal: true };

const CATALOGUE = {
  // the wire
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
  // Neither a proxy's word nor a certificate becomes another one for the next object.
  'proxy-refused': FATAL,
  'tls-failed': FATAL,
  'redirect-refused': PERMANENT,
  'body-encoded': TRANSIENT,
  // waiting
  'rate-limited': { ...TRANSIENT, hostFault: false },
  banned: { ...TRANSIENT, hostFault: false },
  'address-blocked': { ...TRANSIENT, hostFault: false },
  'breaker-open': { ...TRANSIENT, hostFault: false },
  'wait-too-long': { ...TRANSIENT, rounds: false, hostFault: false },
  // --max-duration: it was not begun, or had to wait
  'time-over': CONTENT,
  // the content
  'length-mismatch': { ...CONTENT, rounds: true, hostFault: true },
  // Not what its own ETag names: the transfer was bad, not what is published.
  'body-damaged': { ...CONTENT, rounds: true },
  'checksum-mismatch': CONTENT,
  // Size and ETag are right, the published digest is not.
  'sidecar-stale': CONTENT,
  'zip-truncated': CONTENT,
  'not-a-zip': { ...CONTENT, rounds: true },
  'listing-malformed': { ...CONTENT, rounds: true },
  'zip-broken': PERMANENT,
  'zip-unsupported': PERMANENT,
  'zip-bomb': PERMANENT,
  'header-unknown': PERMANENT,
  'row-malformed': PERMANENT,
  'symbol-mismatch': PERMANENT,
  'file-empty': PERMANENT,
  'rows-outside-period': PERMANENT,
  // A monthly object that lacks rows of held days, or has no others.
  'month-incomplete': PERMANENT,
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
  // the run
  usage: FATAL,
  locked: FATAL,
  'disk-full': FATAL,
  disk: FATAL,
  unreachable: FATAL,
  // DuckDB has no binary here
  'engine-missing': FATAL,
  'manifest-damaged': FATAL,
  interrupted: FATAL,
  bug: FATAL,
} as const satisfies Record<string, Traits>;

export type ErrorCode = keyof typeof CATALOGUE;

/**
 * The longest wait that a host can ask for. Binance's own bans last from 2 minutes to 3 days; a longer one is a mistake of
 * the host, or of a clock, and must not keep a machine from it for ever.
 */
export const LONGEST_WAIT_DAYS = 7;
export const LONGEST_WAIT_MS = LONGEST_WAIT_DAYS * 24 * 3600_000;

/** How the command line that was typed becomes one that works. */
export interface Correction {
  /** Flags with the values to give instead; null: leave the flag out. */
  readonly flags?: Readonly<Record<string, string | null>>;
  /** What to type for the operand. */
  readonly operand?: string;
  /** All words anew, before flags are given their values. */
  readonly argv?: readonly string[];
  /** Another command, to be typed with the same places. */
  readonly command?: readonly string[];
  /** A value in place of the refused one: whoever read the option knows of which flag. */
  readonly value?: string;
}

interface Details {
  readonly cause?: unknown;
  /** How long the other side asked us to wait, at most LONGEST_WAIT_MS. */
  readonly retryAfterMs?: number;
  /** Command line or action that helps, printed on a line of its own. */
  readonly hint?: string;
  readonly correction?: Correction;
  /** The bytes that were refused, for the quarantine. */
  readonly evidence?: FetchResponse;
  /** What arrived of a body that was cut. */
  readonly partial?: PartialBody;
  /** Where a redirect points to. */
  readonly location?: string;
  /** Aborts when the reason to wait is over, which may be sooner than `retryAfterMs` says. */
  readonly over?: AbortSignal;
}

/** The only error class of the program; told apart by `code`, never by message text. */
export class CryptodlError extends Error {
  override readonly name = 'CryptodlError';
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly hint: string | undefined;
  readonly correction: Correction | undefined;
  readonly evidence: FetchResponse | undefined;
  readonly location: string | undefined;
  readonly over: AbortSignal | undefined;
  /** What arrived of a body that was cut, for the next attempt to go on from. */
  partial: PartialBody | undefined;
  /** Attempts that were made on the wire before this error was given up on. */
  attempts = 1;
  /** Set when a retry layer gave up: whoever waits for this request as a part of another does not retry it again. */
  isGivenUp = false;

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.retryAfterMs = details.retryAfterMs;
    this.hint = details.hint;
    this.correction = details.correction;
    this.evidence = details.evidence;
    this.partial = details.partial;
    this.location = details.location;
    this.over = details.over;
  }

  get retryable(): boolean {
    return CATALOGUE[this.code].retryable;
  }

  get rounds(): boolean {
    return CATALOGUE[this.code].rounds;
  }

  get hostFault(): boolean {
    return CATALOGUE[this.code].hostFault;
  }

  get fatal(): boolean {
    return CATALOGUE[this.code].fatal;
  }
}

/** The codes of a host that says nothing, or only that it is in trouble. */
const NO_ANSWER_CODES: ReadonlySet<ErrorCode> = new Set([
  'connect-failed',
  'proxy-unreachable',
  'dns-failed',
  'host-unknown',
  'connection-lost',
  'connect-timeout',
  'headers-timeout',
  'idle-timeout',
  'total-timeout',
  'too-slow',
  'http-server-error',
  'breaker-open',
  'unreachable',
  'wait-too-long',
]);

/** Nothing has been said: whoever knows what was said before may go by that. A refusal is an answer, also as a cause. */
export function isNoAnswer(error: unknown): error is CryptodlError {
  if (!(error instanceof CryptodlError) || !NO_ANSWER_CODES.has(error.code)) return false;
  const { cause } = error;
  if (cause instanceof CryptodlError) return isNoAnswer(cause);
  // A limit, or a firewall that said no twice.
  return error.code !== 'wait-too-long';
}

/** The host said nothing of what was asked for: another source may be asked. A 404 or a 403 of an object is an answer. */
export const FALLBACK_CODES: ReadonlySet<unknown> = new Set<ErrorCode>([
  ...NO_ANSWER_CODES,
  'rate-limited',
  'banned',
  'address-blocked',
]);

/** Wrong input of the user: what was wrong, what helps, and how the command line would be right. Exit code 2. */
export function usage(message: string, hint?: string, correction?: Correction): CryptodlError {
  return new CryptodlError('usage', message, {
    ...(hint === undefined ? {} : { hint }),
    ...(correction === undefined ? {} : { correction }),
  });
}

/** Work is left undone because it would wait longer than the user allows. Exit code 7. */
export function waitTooLong(message: string, cause?: CryptodlError): CryptodlError {
  return new CryptodlError('wait-too-long', message, {
    ...(cause === undefined ? {} : { cause }),
    hint: 'run the same command later, or with a longer --max-wait',
  });
}

/** An unknown exception is a bug of ours: fatal, never retried, and shown with its stack. */
export function toCryptodlError(error: unknown): CryptodlError {
  if (error instanceof CryptodlError) return error;
  const disk = diskError(error);
  if (disk !== undefined) return disk;
  const text = error instanceof Error ? error.message : String(error);
  return new CryptodlError('bug', `unexpected: ${text}`, { cause: error });
}

/** Code of a system error (`ENOENT`); a general word for anything else. */
export function errnoOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const { code, errno } = error as NodeJS.ErrnoException;
  // Node has no name for a quota that is used up.
  if (errno === -constants.errno.EDQUOT) return 'EDQUOT';
  return typeof code === 'string' ? code : 'unknown error';
}

/** The same error, which now says which file it is about: Node's own do not, once a file is open. */
export function withPath(error: unknown, path: string): unknown {
  if (error instanceof Error && 'errno' in error) error.message += ` '${path}'`;
  return error;
}

const DISK_FULL = new Set(['ENOSPC', 'EDQUOT']);
const DISK = /^(?:EIO|EROFS|EACCES|EPERM|ENAMETOOLONG|ENOTDIR|EEXIST|ENOENT|EXDEV|EMFILE|ENFILE|ELOOP)$/;

function diskError(error: unknown): CryptodlError | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = errnoOf(error);
  if (DISK_FULL.has(code)) {
    return new CryptodlError('disk-full', `the disk is full: ${error.message}`, {
      cause: error,
      hint: 'make room and run the same command again; what is committed stays',
    });
  }
  if (code === 'EFBIG') {
    return new CryptodlError('disk', `a file may not grow as large as it must: ${error.message}`, {
      cause: error,
      hint: 'raise the limit of file sizes (ulimit -f), or choose a file system that takes larger files',
    });
  }
  if (code === 'EISDIR' || code === 'ERR_FS_EISDIR') {
    return new CryptodlError('disk', `a folder has the name of a file: ${error.message}`, {
      cause: error,
      hint: 'move the folder away, and run the same command again',
    });
  }
  if (DISK.test(code)) return new CryptodlError('disk', error.message, { cause: error });
  return undefined;
}

/** Told before every wait for another try. */
export interface RetryEvent {
  readonly traceId: string;
  /** Of the attempt that failed. */
  readonly attemptId: string;
  readonly url: string;
  /** 1 for the first extra try. */
  readonly retry: number;
  /** False while it only waits for a limit or an open breaker. */
  readonly usesAttempt: boolean;
  readonly error: CryptodlError;
  readonly delayMs: number;
}
