/** The deadlines of one attempt. */
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError } from '../../model/errors.js';
import type { ErrorCode } from '../../model/errors.js';
import { bodySize, hostOf } from '../fetch.js';
import type { Layer, Sign } from '../fetch.js';
import { durationText } from '../../model/units.js';

export interface TimeoutOptions {
  readonly clock: Clock;
  readonly headersMs: number;
  readonly idleMs: number;
  /** Base of the total timeout. For each 16 KiB of the expected and of the sent body, one second is added. */
  readonly totalMs: number;
}

const SLOWEST_BYTES_PER_SECOND = 16 * 1024;
/** An attempt ends if it receives fewer than `FLOOR_BYTES` of its body in `FLOOR_MS` milliseconds. */
const FLOOR_BYTES = 30 * 1024;
const FLOOR_MS = 30_000;

/**
 * The layer of timeouts, with one AbortController per attempt. There are four: for the headers, for silence within the body, for a
 * slow body, and for the whole attempt. That for the headers begins when the request is sent, after the wait for a socket, and again
 * with each chunk of a sent body.
 */
export function timeout(options: TimeoutOptions): Layer {
  return (next) => async (request, context) => {
    context.signal.throwIfAborted();
    const controller = new AbortController();
    const expire = (code: ErrorCode, text: string): void => {
      controller.abort(new CryptodlError(code, `${hostOf(request.url)}: ${text}`));
    };
    const sentBytes = request.sends === undefined ? 0 : bodySize(request.sends);
    const expectedMs = (((request.expect?.bytes ?? 0) + sentBytes) / SLOWEST_BYTES_PER_SECOND) * 1000;
    const totalMs = options.totalMs + expectedMs;
    const watch = new Watch(options, expire);
    let grantedMs = 0;
    const expireTotal = (): void => {
      // Pauses of this machine are not the fault of the host.
      const heldUpMs = watch.pausedMs - grantedMs;
      grantedMs += heldUpMs;
      if (heldUpMs > 0) total = options.clock.timer(heldUpMs, expireTotal);
      else expire('total-timeout', `not complete within ${durationText(totalMs)}`);
    };
    let total = options.clock.timer(totalMs, expireTotal);
    const onOuterAbort = (): void => {
      controller.abort(context.signal.reason);
    };
    context.signal.addEventListener('abort', onOuterAbort, { once: true });
    const onActivity = (sign: Sign, value = 0): void => {
      watch.see(sign, value);
    };
    try {
      return await next(request, { ...context, signal: controller.signal, onActivity });
    } finally {
      total.cancel();
      watch.end();
      context.signal.removeEventListener('abort', onOuterAbort);
    }
  };
}

/** The timers for the headers and the body of one attempt. `see` starts and cancels them when the attempt makes progress. */
class Watch {
  readonly #options: TimeoutOptions;
  readonly #expire: (code: ErrorCode, text: string) => void;
  #silence: Timer | undefined;
  #floor: Timer | undefined;
  #bytes = 0;
  #pausedSince: number | undefined;
  #pausedMs = 0;

  constructor(options: TimeoutOptions, expire: (code: ErrorCode, text: string) => void) {
    this.#options = options;
    this.#expire = expire;
  }

  /** Milliseconds in which this machine delayed the body. */
  get pausedMs(): number {
    const running = this.#pausedSince === undefined ? 0 : this.#options.clock.monotonic() - this.#pausedSince;
    return this.#pausedMs + running;
  }

  see(sign: Sign, value: number): void {
    switch (sign) {
      case 'sent':
        this.#waitForHeaders();
        return;
      case 'uploading':
        this.#endPause();
        this.#waitForHeaders();
        return;
      case 'resumed':
        this.#endPause();
        this.#watchBody();
        return;
      case 'headers':
        this.#watchBody();
        return;
      case 'bytes':
        this.#bytes += value;
        // Bytes may arrive in a pause: not every body can be held back.
        if (this.#pausedSince === undefined) this.#silence?.restart();
        return;
      case 'paused':
        // The disk is slow or `--bwlimit` applies, which is not the fault of the host.
        this.#pausedSince ??= this.#options.clock.monotonic();
        this.end();
    }
  }

  end(): void {
    this.#silence?.cancel();
    this.#floor?.cancel();
  }

  #endPause(): void {
    this.#pausedMs = this.pausedMs;
    this.#pausedSince = undefined;
  }

  #waitForHeaders(): void {
    const { clock, headersMs } = this.#options;
    this.end();
    this.#silence = clock.timer(headersMs, () => {
      this.#expire('headers-timeout', `no headers within ${durationText(headersMs)}`);
    });
  }

  #watchBody(): void {
    const { clock, idleMs } = this.#options;
    this.end();
    this.#silence = clock.timer(idleMs, () => {
      this.#expire('idle-timeout', `no byte of the body within ${durationText(idleMs)}`);
    });
    this.#bytes = 0;
    const floor = clock.timer(FLOOR_MS, () => {
      if (this.#bytes < FLOOR_BYTES) {
        this.#expire('too-slow', `only ${this.#bytes} bytes in ${durationText(FLOOR_MS)}`);
        return;
      }
      this.#bytes = 0;
      floor.restart();
    });
    this.#floor = floor;
  }
}
