/** The result of an attempt as a sign of the load of its host. */
import type { AttemptEnd } from '../model/fetch.js';
import { CryptodlError } from '../model/errors.js';

/** The result of one attempt, for the search of the concurrency. */
export interface LoadSign extends Pick<AttemptEnd, 'begunAtMs' | 'sentAtMs' | 'endedAtMs'> {
  /**
   * `refused`: the host refused the request, or did not accept the connection in time. `troubled`: the connection or the content
   * was bad, possibly without any relation to the load. `other`: the result says nothing about the load.
   */
  readonly result: 'good' | 'refused' | 'troubled' | 'other';
  /** The request was for an object, not for a sidecar. */
  readonly isObject: boolean;
  /** The event loop of this process is late. */
  readonly isLate: boolean;
}

const REFUSED: ReadonlySet<string> = new Set([
  'rate-limited',
  'banned',
  'http-server-error',
  'connect-timeout',
]);

export function loadSignOf(attempt: AttemptEnd, isLate: boolean): LoadSign {
  const { request, begunAtMs, sentAtMs, endedAtMs, error } = attempt;
  // In the bucket of the archive, only requests for objects have an expectation.
  const isObject = request.expect !== undefined;
  return { begunAtMs, sentAtMs, endedAtMs, result: resultOf(error), isObject, isLate };
}

function resultOf(error: unknown): LoadSign['result'] {
  if (error === undefined) return 'good';
  if (!(error instanceof CryptodlError)) return 'other';
  if (REFUSED.has(error.code)) return 'refused';
  return error.hostFault ? 'troubled' : 'other';
}
