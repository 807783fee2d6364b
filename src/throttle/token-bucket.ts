import type { Clock, Timer } from '../clock.js';
import { CryptodlError } from '../errors.js';
import { durationText } from '../units.js';

export interface BucketOptions {
  readonly permitsPerSecond: number;
  readonly burst: number;
  /** A longer pause is refused with `wait-too-long`. */
  readonly maxWaitMs: number;
}

interface Waiter {
  readonly grant: () => void;
  readonly refuse: (error: unknown) => void;
}

/**
 * Token bucket with FIFO waiters and an exact wake-up: no polling, and nothing is held across a wait.
 * In any span of t seconds at most `permitsPerSecond · t + burst` permits are given.
 */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #options: BucketOptions;
  #tokens: number;
  #filledAt: number;
  #pausedUntil = 0;
  #waiters = new Set<Waiter>();
  #wakeUp: Timer | undefined;

  constructor(clock: Clock, options: BucketOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#tokens = options.burst;
    this.#filledAt = clock.monotonic();
  }

  /** Resolves when a permit is taken; rejects with the signal's reason or with `wait-too-long`. */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#refuseLongPause();
    if (this.#waiters.size === 0 && this.#tryTake()) return;
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        grant: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
        refuse: (error) => {
          signal.removeEventListener('abort', onAbort);
          reject(error);
        },
      };
      const onAbort = (): void => {
        this.#waiters.delete(waiter);
        if (this.#waiters.size === 0) this.#cancelWakeUp();
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiters.add(waiter);
      this.#wake();
    });
  }

  /**
   * Nothing leaves before `delayMs` have passed. A shorter pause does not end a longer one. Throws `wait-too-long`,
   * and refuses with it whoever waits already.
   */
  pause(delayMs: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.monotonic() + delayMs);
    try {
      this.#refuseLongPause();
    } catch (error) {
      for (const waiter of this.#waiters) waiter.refuse(error);
      this.#waiters.clear();
      this.#cancelWakeUp();
      throw error;
    }
  }

  #refuseLongPause(): void {
    const leftMs = this.#pausedUntil - this.#clock.monotonic();
    if (leftMs <= this.#options.maxWaitMs) return;
    throw new CryptodlError(
      'wait-too-long',
      `asked to wait ${durationText(leftMs)}, longer than --max-wait ${durationText(this.#options.maxWaitMs)}`,
      {
        hint: 'run the same command later, or with a longer --max-wait',
      },
    );
  }

  #tryTake(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#pausedUntil) return false;
    this.#tokens = Math.min(
      this.#options.burst,
      this.#tokens + ((now - this.#filledAt) / 1000) * this.#options.permitsPerSecond,
    );
    this.#filledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  #wake(): void {
    if (this.#wakeUp !== undefined) return;
    const now = this.#clock.monotonic();
    const refillMs = ((1 - this.#tokens) / this.#options.permitsPerSecond) * 1000;
    const delayMs = Math.max(this.#pausedUntil - now, this.#filledAt + refillMs - now, 0);
    // Rounding may leave a wait too small to move the time: then the same would be asked for ever.
    this.#wakeUp = this.#clock.timer(Math.max(1, Math.ceil(delayMs)), () => {
      this.#wakeUp = undefined;
      for (const waiter of this.#waiters) {
        if (!this.#tryTake()) break;
        this.#waiters.delete(waiter);
        waiter.grant();
      }
      if (this.#waiters.size > 0) this.#wake();
    });
  }

  /** Nobody waits any more: a timer left behind would keep the process alive. */
  #cancelWakeUp(): void {
    this.#wakeUp?.cancel();
    this.#wakeUp = undefined;
  }
}
