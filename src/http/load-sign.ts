/** What one attempt tells about the load of a host. */
import { CryptodlError } from '../model/errors.js';
import type { AttemptEnd } from './fetch.js';

/** What an attempt on the wire says about the load. */
export interface LoadSign {
  /** On the monotonic clock; between these two it waits for a socket. */
  readonly begunAt: number;
  readonly sentAt: number;
  readonly endedAt: number;
  /**
   * `refused`: the host said that it is too much, or did not take the connection. `troubled`: the line or the content
   * was bad, which may have nothing to do with the load. `other`: it says nothing about the load.
   */
  readonly result: 'good' | 'refused' | 'troubled' | 'other';
  /** Its answer is an object of the run, not a sidecar. */
  readonly isObject: boolean;
  /** This process comes late to its own work. */
  readonly isLate: boolean;
}

const REFUSED: ReadonlySet<string> = new Set([
  'rate-limited',
  'banned',
  'http-server-error',
  'connect-timeout',
]);
const BAD_CONTENT: ReadonlySet<string> = new Set([
  'body-damaged',
  'checksum-mismatch',
  'sidecar-stale',
  'zip-truncated',
  'not-a-zip',
]);

/** `isLate`: this process comes late to its own work. */
export function loadSignOf(
  { request, begunAt, sentAt, endedAt, error }: AttemptEnd,
  isLate: boolean,
): LoadSign {
  // A sidecar is expected to be nothing in particular.
  return {
    begunAt,
    sentAt,
    endedAt,
    result: resultOf(error),
    isObject: request.expect !== undefined,
    isLate,
  };
}

export function isBadContent({ code }: CryptodlError): boolean {
  return BAD_CONTENT.has(code);
}

function resultOf(error: unknown): LoadSign['result'] {
  if (error === undefined) return 'good';
  if (!(error instanceof CryptodlError)) return 'other';
  if (REFUSED.has(error.code)) return 'refused';
  return error.hostFault ? 'troubled' : 'other';
}
