/** The deadlines of one attempt. */
import type { Clock } from '../../model/clock.js';
import { hostError, type ErrorCode } from '../../model/errors.js';
import { hostOf, type Layer, type Sign } from '../../model/fetch.js';
import { Watch, type Deadlines } from './attempt-watch.js';

/** The end of one attempt: a deadline has passed, or the signal of its request has aborted. */
class Expiry {
  #over: { readonly reason: unknown } | undefined;
  #onOver: ((reason: unknown) => void) | undefined;

  /** Ends the attempt. Only the first reason counts. */
  end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    this.#onOver?.(reason);
  }

  /** Calls `act` at the end of the attempt, at once if it is over. A later call replaces `act`, because an attempt has one exchange at a time. */
  onOver(act: (reason: unknown) => void): void {
    this.#onOver = act;
    if (this.#over !== undefined) act(this.#over.reason);
  }
}

/** Ends attempts when the signal of their request aborts. All attempts share one listener, because Node searches the listeners of a signal one by one. */
export class Expiries {
  readonly #running = new Map<
    AbortSignal,
    { readonly attempts: Set<Expiry>; readonly onAbort: () => void }
  >();

  /** `outer` has not aborted. `release` must follow, because `outer` outlives the attempt. */
  begin(outer: AbortSignal): Expiry {
    const { attempts } = this.#running.get(outer) ?? this.#listen(outer);
    const expiry = new Expiry();
    attempts.add(expiry);
    return expiry;
  }

  release(outer: AbortSignal, expiry: Expiry): void {
    const running = this.#running.get(outer);
    if (running?.attempts.delete(expiry) !== true || running.attempts.size > 0) return;
    outer.removeEventListener('abort', running.onAbort);
    this.#running.delete(outer);
  }

  #listen(outer: AbortSignal) {
    const attempts = new Set<Expiry>();
    const onAbort = (): void => {
      for (const expiry of attempts) expiry.end(outer.reason);
    };
    outer.addEventListener('abort', onAbort);
    const running = { attempts, onAbort };
    this.#running.set(outer, running);
    return running;
  }
}

const SLOWEST_BYTES_PER_SECOND = 16 * 1024;

/**
 * The layer of timeouts. An attempt has four timeouts: for the headers, for silence within the body, for a slow body, and for the whole
 * attempt. That for the headers begins when the request is sent, after the wait for a socket, and again with each chunk of a sent body.
 */
export function timeoutLayer(clock: Clock, options: Deadlines): Layer {
  const expiries = new Expiries();
  return (next) => async (request, context) => {
    context.signal.throwIfAborted();
    const expiry = expiries.begin(context.signal);
    const expire = (code: ErrorCode, text: string): void =>
      expiry.end(hostError(code, hostOf(request.url), text, {}, ':'));
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
