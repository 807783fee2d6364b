/** Time that moves only when a test says so. */
import type { Clock, Timer } from '../../src/model/clock.js';

interface Due {
  at: number;
  readonly act: () => void;
}

export class VirtualClock implements Clock {
  #now = 1_000_000;
  readonly #due = new Set<Due>();
  /** Taken in order, the last one for ever; 0.5 when empty. */
  randoms: number[] = [];
  /** Timers that were ever set; restarts do not count. */
  timersSet = 0;

  now(): number {
    return 1_700_000_000_000 + this.#now;
  }

  monotonic(): number {
    return this.#now;
  }

  random(): number {
    return (this.randoms.length > 1 ? this.randoms.shift() : this.randoms[0]) ?? 0.5;
  }

  timer(delayMs: number, callback: () => void): Timer {
    const due: Due = { at: this.#now + delayMs, act: callback };
    this.#due.add(due);
    this.timersSet += 1;
    return {
      restart: () => {
        due.at = this.#now + delayMs;
        this.#due.add(due);
      },
      cancel: () => {
        this.#due.delete(due);
      },
    };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        timer.cancel();
        reject(signal?.reason as Error);
      };
      const timer = this.timer(delayMs, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /** Lets time pass, timer by timer, and promises settle in between. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      const next = this.#next();
      if (next === undefined || next.at > end) break;
      this.#now = Math.max(this.#now, next.at);
      this.#due.delete(next);
      next.act();
      await settle();
    }
    this.#now = end;
  }

  /** Milliseconds to the next timer; undefined when none waits. */
  get untilNext(): number | undefined {
    const next = this.#next();
    return next === undefined ? undefined : Math.max(0, next.at - this.#now);
  }

  /** Of those at the same time the one that was set first. */
  #next(): Due | undefined {
    let next: Due | undefined;
    for (const due of this.#due) if (next === undefined || due.at < next.at) next = due;
    return next;
  }

  /** Timers that wait. */
  get waiting(): number {
    return this.#due.size;
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
