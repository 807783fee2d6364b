/** The deadlines of one attempt. */
import type { Clock } from '../../model/clock.js';
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import { hostOf, type Layer, type Sign } from '../../model/fetch.js';
import { Expiries } from './expiry.js';
import { Watch, type Deadlines } from './attempt-watch.js';

const SLOWEST_BYTES_PER_SECOND = 16 * 1024;

/**
 * The layer of timeouts. An attempt has four timeouts: for the headers, for silence within the body, for a slow body, and for the whole
 * attempt. That for the headers begins when the request is sent, after the wait for a socket, and again with each chunk of a sent body.
 */
export function timeout(clock: Clock, options: Deadlines): Layer {
  const expiries = new Expiries();
  return (next) => async (request, context) => {
    context.signal.throwIfAborted();
    const expiry = expiries.begin(context.signal);
    const expire = (code: ErrorCode, text: string): void => {
      expiry.end(new CryptodlError(code, `${hostOf(request.url)}: ${text}`));
    };
    const sentBytes = request.sends?.length ?? 0;
    const expectedMs = (((request.expect?.bytes ?? 0) + sentBytes) / SLOWEST_BYTES_PER_SECOND) * 1000;
    const totalTimeoutMs = options.totalTimeoutMs + expectedMs;
    const watch = new Watch(clock, { ...options, totalTimeoutMs }, expire);
    const onActivity = (sign: Sign, value = 0): void => watch.see(sign, value);
    try {
      return await next(request, { ...context, expiry, onActivity });
    } finally {
      watch.stop();
      expiries.release(context.signal, expiry);
    }
  };
}
