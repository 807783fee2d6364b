/** While the breaker of a host is open, requests go to another host with the same objects. Bucket and retry budget stay the same. */
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import type { Layer } from '../../model/fetch.js';

/** Error codes for a host that gets no requests now. */
const NOT_SENT: ReadonlySet<ErrorCode> = new Set(['breaker-open', 'wait-too-long']);

/**
 * This layer stands outside of the breaker, so that each of the two hosts has its own breaker. `first`, `other`: base addresses of the same
 * objects, without a slash at their end.
 */
export function fallbackLayer(first: string, other = first): Layer {
  if (other === first) return (next) => next;
  return (next) => async (request, context) => {
    try {
      return await next(request, context);
    } catch (error) {
      const isNotSent = error instanceof CryptodlError && NOT_SENT.has(error.code);
      if (!isNotSent || !request.url.startsWith(`${first}/`)) throw error;
      const url = other + request.url.slice(first.length);
      try {
        return await next({ ...request, url }, context);
      } catch (otherError) {
        // If both hosts get no requests now, the shorter of the two waits counts.
        const isNeither = otherError instanceof CryptodlError && NOT_SENT.has(otherError.code);
        throw isNeither && waitOf(error) <= waitOf(otherError) ? error : otherError;
      }
    }
  };
}

function waitOf({ code, retryAfterMs }: CryptodlError): number {
  return code === 'wait-too-long' ? Number.POSITIVE_INFINITY : (retryAfterMs ?? 0);
}
