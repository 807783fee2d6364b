/** How late this process comes to its own work: what it adds to every time that it measures (mechanism K1). */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** How often it looks; its own interval is not a delay. */
const RESOLUTION_MS = 20;
/** Later than this, a late first byte may be our own doing. */
const LATE_MS = 20;
const NANOSECONDS = 1e6;

export class LoopDelay {
  readonly #whole = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #recent = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #begun = performance.eventLoopUtilization();
  #wasLate = false;
  #questions = 0;

  start(): void {
    this.#begun = performance.eventLoopUtilization();
    this.#whole.enable();
    this.#recent.enable();
  }

  stop(): void {
    this.#whole.disable();
    this.#recent.disable();
  }

  /** By what was measured since the last hundred questions or so. */
  isLate(): boolean {
    this.#questions += 1;
    if (this.#questions % 100 === 0 && this.#recent.count > 0) {
      this.#wasLate = delayMs(this.#recent.mean) > LATE_MS;
      this.#recent.reset();
    }
    return this.#wasLate;
  }

  /** Milliseconds: half of all delays are at most `p50`, and so on. `busyShare`: of the time, in which it did not wait for events. */
  get figures(): { p50: number; p99: number; most: number; busyShare: number } {
    const { max } = this.#whole;
    return {
      p50: delayMs(this.#whole.percentile(50)),
      p99: delayMs(this.#whole.percentile(99)),
      most: max > 0 ? delayMs(max) : 0,
      busyShare: Math.round(performance.eventLoopUtilization(this.#begun).utilization * 100) / 100,
    };
  }
}

function delayMs(nanoseconds: number): number {
  return Math.max(0, Math.round(nanoseconds / NANOSECONDS - RESOLUTION_MS));
}
