/** Asks the other host of the same objects while the first is left alone (mechanism B10): same bucket, same budget. */
import { CryptodlError } from '../../model/errors.js';
import type { ErrorCode } from '../../model/errors.js';
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

/** A wait that a host asks for is worth its while up to here, also where another source has the same. */
const SHORT_WAIT_MS = 10_000;

/**
 * Whether another source is asked for what a host does not give (mechanism B10): REST for the archive with `--fill rest`,
 * the archive for REST with `--join archive`. Ahead of that, no request waits for a host that does not answer.
 */
export class Failover {
  isAhead: boolean;

  constructor(hasOtherSource: boolean) {
    this.isAhead = hasOtherSource;
  }

  /** A host that asks for a longer wait counts as one that does not answer. */
  readonly longestWaitMs = (): number => (this.isAhead ? SHORT_WAIT_MS : Number.POSITIVE_INFINITY);
}
