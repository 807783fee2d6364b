import { CryptodlError } from '../errors.js';
import type { Layer } from '../fetch.js';

/** Requests wait for permits, retries and bans until `until` aborts; what it aborts with is then why they failed. */
export function patience(until: AbortSignal): Layer {
  return (next) => async (request, context) => {
    try {
      return await next(request, { ...context, patience: until });
    } catch (error) {
      const isOurs = error === until.reason && !context.signal.aborted;
      if (!isOurs || !(error instanceof CryptodlError)) throw error;
      // Each request has an error of its own: it counts its attempts.
      throw new CryptodlError(error.code, `${error.message}, and it still waited for its turn`);
    }
  };
}
