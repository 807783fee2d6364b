/** Requests go to another host of the same objects while the breaker of the first host is open. Bucket and budget stay the same. */
import { CryptodlError } from '../../model/errors.js';
import type { ErrorCode } from '../../model/errors.js';
import type { Layer } from '../fetch.js';

export interface FallbackHost {
  /** Base address of the objects, without a slash at its end. */
  readonly first: string;
  readonly other: string;
}

/** Codes of requests that did not reach the first host. */
const NOT_ASKED: ReadonlySet<ErrorCode> = new Set(['breaker-open', 'wait-too-long']);

/** The layer stands outside of the breaker, so that each of the two hosts has a breaker of its own. */
export function fallbackHost(hosts: FallbackHost | undefined): Layer {
  if (hosts === undefined) return (next) => next;
  return (next) => async (request, context) => {
    try {
      return await next(request, context);
    } catch (error) {
      const isNotAsked = error instanceof CryptodlError && NOT_ASKED.has(error.code);
      if (!isNotAsked || !request.url.startsWith(`${hosts.first}/`)) throw error;
      const url = hosts.other + request.url.slice(hosts.first.length);
      try {
        return await next({ ...request, url }, context);
      } catch (otherError) {
        // If neither host may be asked, the shorter of the two waits counts.
        const isNeither = otherError instanceof CryptodlError && NOT_ASKED.has(otherError.code);
        throw isNeither && waitOf(error) <= waitOf(otherError) ? error : otherError;
      }
    }
  };
}

function waitOf({ code, retryAfterMs }: CryptodlError): number {
  return code === 'wait-too-long' ? Number.POSITIVE_INFINITY : (retryAfterMs ?? 0);
}

/** With another source, a longer wait for a host is not accepted. Milliseconds. */
const SHORT_WAIT_MS = 10_000;

/**
 * Whether another source substitutes a host without answers: REST for the archive with `--fill rest`, the archive for REST
 * with `--join archive`. In that case, no request waits for a host that does not answer.
 */
export class Failover {
  isAhead: boolean;

  constructor(hasOtherSource: boolean) {
    this.isAhead = hasOtherSource;
  }

  /** A host that asks for a longer wait counts as a host without answers. */
  readonly longestWaitMs = (): number => (this.isAhead ? SHORT_WAIT_MS : Number.POSITIVE_INFINITY);
}
