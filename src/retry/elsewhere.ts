/** Asks the other host of the same objects while the first is left alone (mechanism B10): same bucket, same budget. */
import { CryptodlError } from '../errors.js';
import type { ErrorCode } from '../errors.js';
import type { Layer } from '../fetch.js';

export interface Twin {
  /** Address below which the objects are, without a slash at its end. */
  readonly first: string;
  readonly other: string;
}

/** Refusals that never reached the first host. */
const LEFT_ALONE: ReadonlySet<ErrorCode> = new Set(['breaker-open', 'wait-too-long']);

/** Outside of the breaker, so that each of the two hosts has its own. */
export function elsewhere(twin: Twin | undefined): Layer {
  if (twin === undefined) return (next) => next;
  return (next) => async (request, context) => {
    try {
      return await next(request, context);
    } catch (error) {
      const isLeftAlone = error instanceof CryptodlError && LEFT_ALONE.has(error.code);
      if (!isLeftAlone || !request.url.startsWith(`${twin.first}/`)) throw error;
      const url = twin.other + request.url.slice(twin.first.length);
      try {
        return await next({ ...request, url }, context);
      } catch (otherError) {
        // When neither may be asked, whoever may be sooner says when.
        const isNeither = otherError instanceof CryptodlError && LEFT_ALONE.has(otherError.code);
        throw isNeither && waitOf(error) <= waitOf(otherError) ? error : otherError;
      }
    }
  };
}

function waitOf({ code, retryAfterMs }: CryptodlError): number {
  return code === 'wait-too-long' ? Number.POSITIVE_INFINITY : (retryAfterMs ?? 0);
}
