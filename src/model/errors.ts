/** The error class of the program. `model/error-codes.ts` has the properties of each code. */
import { constants } from 'node:os';
import type { FetchResponse, PartialBody } from './fetch.js';
import { ERROR_TRAITS } from './error-codes.js';
import { DAY_MS } from './units.js';

export type ErrorCode = keyof typeof ERROR_TRAITS;

/**
 * The longest wait that the program accepts from a host. A longer wait is an error of the host or of a clock: bans by Binance
 * last from 2 minutes to 3 days (Binance API documentation, "Limits").
 */
export const LONGEST_WAIT_DAYS = 7;
export const LONGEST_WAIT_MS = LONGEST_WAIT_DAYS * DAY_MS;

interface Details {
  readonly cause?: unknown;
  /** The wait that the server asked for, at most LONGEST_WAIT_MS; or the wait for an open breaker. */
  readonly retryAfterMs?: number | undefined;
  /** The next step for the user, printed on its own line. */
  readonly hint?: string | undefined;
  /** What a proxy did, for messages that name the proxy themselves: `answered 407 to …`. */
  readonly proxyFault?: string | undefined;
  /** What a host did, for lines that name the host themselves: `answered 503`. */
  readonly fromHost?: { readonly host: string; readonly fault: string } | undefined;
  /** The rejected body, for the quarantine. */
  readonly evidence?: FetchResponse | undefined;
  /** The received part of an incomplete body; the next attempt resumes after it. */
  readonly partial?: PartialBody | undefined;
  readonly location?: string | undefined;
  /** Aborts when the reason to wait ends, which may be before `retryAfterMs`. */
  readonly over?: AbortSignal | undefined;
  /** Attempts of the request that failed; those of earlier rounds are not included. */
  readonly attempts?: number;
  /** After the last attempt of the retry layer. A caller that makes this request as part of another does not retry again. */
  readonly isGivenUp?: boolean;
  /** The message names the file of jobs that has the wrong option. */
  readonly isPlaced?: boolean;
}

/** What is left of an error that waits in a spool. */
export interface ErrorFacts {
  readonly code: ErrorCode;
  readonly message: string;
  readonly attempts: number;
  readonly hint?: string | undefined;
  readonly cause?: ErrorFacts | undefined;
}

/** The class of the errors that users see. Code compares `code`, never the message. An error does not change: `with` makes another. */
export class CryptodlError extends Error {
  override readonly name = 'CryptodlError';
  readonly retryAfterMs: number | undefined;
  readonly hint: string | undefined;
  readonly proxyFault: string | undefined;
  readonly fromHost: Details['fromHost'];
  readonly evidence: FetchResponse | undefined;
  readonly location: string | undefined;
  readonly over: AbortSignal | undefined;
  readonly partial: PartialBody | undefined;
  readonly attempts: number = 1;
  readonly isGivenUp: boolean = false;
  readonly isPlaced: boolean = false;

  constructor(
    readonly code: ErrorCode,
    message: string,
    { cause, ...details }: Details = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, details);
  }

  static of({ cause, code, message, ...facts }: ErrorFacts): CryptodlError {
    return new CryptodlError(code, message, { ...facts, cause: cause && CryptodlError.of(cause) });
  }

  /** A copy with these facts in place of its own; the error itself if they are the same. */
  with({ message = this.message, ...changes }: Details & { readonly message?: string }): CryptodlError {
    const facts = Object.entries({ ...changes, message });
    if (facts.every(([name, value]) => Reflect.get(this, name) === value)) return this;
    const { stack = '' } = this;
    return Object.assign(new CryptodlError(this.code, message, { cause: this.cause }), this, {
      stack,
      ...changes,
    });
  }

  /** For `CryptodlError.of`. */
  get facts(): ErrorFacts {
    const { code, message, attempts, hint, cause } = this;
    return { code, message, attempts, hint, cause: cause instanceof CryptodlError ? cause.facts : undefined };
  }

  get retryable(): boolean {
    return ERROR_TRAITS[this.code].retryable;
  }

  get rounds(): boolean {
    return ERROR_TRAITS[this.code].rounds;
  }

  get hostFault(): boolean {
    return ERROR_TRAITS[this.code].hostFault;
  }

  get fatal(): boolean {
    return ERROR_TRAITS[this.code].fatal;
  }
}

export const NO_CONNECTION: ReadonlySet<ErrorCode> = new Set([
  'connect-failed',
  'proxy-unreachable',
  'dns-failed',
  'host-unknown',
  'connect-timeout',
]);

/** Codes for a host that does not answer, or answers only that it has a fault. */
const NO_ANSWER_CODES: ReadonlySet<ErrorCode> = new Set([
  ...NO_CONNECTION,
  'connection-lost',
  'headers-timeout',
  'idle-timeout',
  'total-timeout',
  'too-slow',
  'http-server-error',
  'breaker-open',
  'unreachable',
  'wait-too-long',
]);

/**
 * Whether no answer was received; a caller with a cached answer may use it. An error caused by a refusal is not such an error,
 * because a refusal is an answer.
 */
export function isNoAnswer(error: unknown): error is CryptodlError {
  if (!(error instanceof CryptodlError) || !NO_ANSWER_CODES.has(error.code)) return false;
  const { cause } = error;
  if (cause instanceof CryptodlError) return isNoAnswer(cause);
  // Without a cause, the wait comes from a limit or from a firewall that refused twice.
  return error.code !== 'wait-too-long';
}

/**
 * Codes after which another source may be used, because the host said nothing about the object. A 404 or a 403 for an object
 * is an answer.
 */
export const FALLBACK_CODES: ReadonlySet<unknown> = new Set<ErrorCode>([
  ...NO_ANSWER_CODES,
  'rate-limited',
  'banned',
  'address-blocked',
]);

/** An error whose message begins with the host and what it did. `colon`: the fault is a text of a library. */
export function hostError(
  code: ErrorCode,
  host: string,
  fault: string,
  details: Details = {},
  colon: ':' | '' = '',
): CryptodlError {
  return new CryptodlError(code, `${host}${colon} ${fault}`, { ...details, fromHost: { host, fault } });
}

/** The error for wrong input of the user, with the next step. Exit code 2. */
export function usage(message: string, hint: string): CryptodlError {
  return new CryptodlError('usage', message, { hint });
}

/** The error for work that would have to wait longer than the user allows. Exit code 7. */
export function waitTooLong(message: string, cause?: CryptodlError): CryptodlError {
  return new CryptodlError('wait-too-long', message, {
    cause,
    hint: 'try again later, or with a longer --max-wait',
  });
}

/** The code of a system error, for example `ENOENT`; `unknown error` for any other error. */
export function errnoOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const { code, errno } = error as NodeJS.ErrnoException;
  // Node reports EDQUOT only as a number.
  if (errno === -constants.errno.EDQUOT) return 'EDQUOT';
  return typeof code === 'string' ? code : 'unknown error';
}

/** Resolves with undefined if a call of the file system finds no file or folder. `codes`: further errors that mean the same to the caller. */
export function unlessMissing<T>(call: Promise<T>, ...codes: readonly string[]): Promise<T | undefined> {
  return call.catch((error: unknown) => {
    if (!['ENOENT', ...codes].includes(errnoOf(error))) throw error;
    return undefined;
  });
}

/** Appends the path to the message of a system error. Errors on an open file do not name it. */
export function withPath(error: unknown, path: string): unknown {
  if (error instanceof Error && 'errno' in error) error.message += ` '${path}'`;
  return error;
}

export const FULL_HINT = 'free some space and try again; committed files are kept';
const FILE_IN_PATH = 'a part of this path is a file in place of a folder: move the file away and try again';
const FOLDER_IN_PLACE = 'a folder exists in place of a file: move the folder away and try again';
const NO_PERMISSION = 'this user may not do that: change the owner or the permissions, and try again';

const DISK_HINTS: ReadonlyMap<string, string | undefined> = new Map([
  ['ENOSPC', FULL_HINT],
  ['EDQUOT', FULL_HINT],
  ['EFBIG', 'raise the file size limit (ulimit -f), or use a file system that allows larger files'],
  ['EISDIR', FOLDER_IN_PLACE],
  ['ERR_FS_EISDIR', FOLDER_IN_PLACE],
  ['ENOTDIR', FILE_IN_PATH],
  ['EEXIST', FILE_IN_PATH],
  ['EACCES', NO_PERMISSION],
  ['EPERM', NO_PERMISSION],
  ['EROFS', 'the file system is read-only: choose another folder'],
  ['EMFILE', 'allow more open files (ulimit -n 1024, LimitNOFILE=1024 in a systemd unit)'],
  ...['EIO', 'ENAMETOOLONG', 'ENOENT', 'EXDEV', 'ENFILE', 'ELOOP'].map((code) => [code, undefined] as const),
]);

/** Converts an exception. Disk errors get their code; anything unknown is a bug: fatal, never retried, shown with its stack. */
export function toCryptodlError(error: unknown): CryptodlError {
  if (error instanceof CryptodlError) return error;
  const code = errnoOf(error);
  const message = error instanceof Error ? error.message : String(error);
  if (!DISK_HINTS.has(code)) return new CryptodlError('bug', `unexpected: ${message}`, { cause: error });
  const hint = DISK_HINTS.get(code);
  if (hint === FULL_HINT)
    return new CryptodlError('disk-full', `the disk is full: ${message}`, { cause: error, hint });
  // Only for a folder that could not be made does EEXIST mean a file in its place.
  const isOther = code === 'EEXIST' && (error as NodeJS.ErrnoException).syscall !== 'mkdir';
  return new CryptodlError('disk', message, { cause: error, hint: isOther ? undefined : hint });
}
