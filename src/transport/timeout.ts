import type { Clock, Timer } from '../clock.js';
import { CryptodlError } from '../errors.js';
import type { ErrorCode } from '../errors.js';
import type { Layer } from '../fetch.js';
import { durationText } from '../units.js';

export interface TimeoutOptions {
  readonly clock: Clock;
  readonly headersMs: number;
  readonly idleMs: number;
  /** Base of the total; a second is added for every 16 KiB of expected body. */
  readonly totalMs: number;
}

const SLOWEST_BYTES_PER_SECOND = 16 * 1024;

/**
 * One AbortController per attempt, with deadlines for the headers (from the moment the request is sent, so that
 * waiting for a socket spends nothing), for silence within the body, and for the whole.
 */
export function timeout(options: TimeoutOptions): Layer {
  return (next) => async (request, context) => {
    context.signal.throwIfAborted();
    const controller = new AbortController();
    const host = new URL(request.url).host;
    const expire = (code: ErrorCode, ms: number, what: string) => (): void => {
      controller.abort(new CryptodlError(code, `${host}: ${what} within ${durationText(ms)}`));
    };
    const expectedMs = ((request.expect?.bytes ?? 0) / SLOWEST_BYTES_PER_SECOND) * 1000;
    const totalMs = options.totalMs + expectedMs;
    const total = options.clock.timer(totalMs, expire('total-timeout', totalMs, 'not complete'));
    let silence: Timer | undefined;
    const onActivity = (what: 'sent' | 'headers' | 'bytes'): void => {
      if (what === 'bytes') {
        silence?.restart();
        return;
      }
      silence?.cancel();
      silence =
        what === 'sent'
          ? options.clock.timer(options.headersMs, expire('headers-timeout', options.headersMs, 'no headers'))
          : options.clock.timer(
              options.idleMs,
              expire('idle-timeout', options.idleMs, 'no byte of the body'),
            );
    };
    const onOuterAbort = (): void => {
      controller.abort(context.signal.reason);
    };
    context.signal.addEventListener('abort', onOuterAbort, { once: true });
    try {
      return await next(request, { ...context, signal: controller.signal, onActivity });
    } finally {
      total.cancel();
      silence?.cancel();
      context.signal.removeEventListener('abort', onOuterAbort);
    }
  };
}
