/** The delay of the event loop, which is part of every time that this process measures. */
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** Milliseconds between two samples. A measured value contains this interval, so it is subtracted. */
const RESOLUTION_MS = 20;
/** With a longer delay, this process may be the reason for a late first byte. */
const LATE_MS = 20;
const NANOSECONDS = 1e6;

export class LoopDelay {
  readonly #whole = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #recent = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #begun = performance.eventLoopUtilization();
  #wasLate = false;
  #calls = 0;

  start(): void {
    this.#begun = performance.eventLoopUtilization();
    this.#whole.enable();
    this.#recent.enable();
  }

  stop(): void {
    this.#whole.disable();
    this.#recent.disable();
  }

  /** Whether the mean delay was long. It is measured anew at each hundredth call. */
  isLate(): boolean {
    this.#calls += 1;
    if (this.#calls % 100 === 0 && this.#recent.count > 0) {
      this.#wasLate = delayMs(this.#recent.mean) > LATE_MS;
      this.#recent.reset();
    }
    return this.#wasLate;
  }

  /** Percentiles in milliseconds. `busyShare`: share of the time in which the event loop did not wait for events. */
  get figures(): { p50: number; p99: number; most: number; busyShare: number } {
    return {
      p50: delayMs(this.#whole.percentile(50)),
      p99: delayMs(this.#whole.percentile(99)),
      most: delayMs(this.#whole.max),
      busyShare: Math.round(performance.eventLoopUtilization(this.#begun).utilization * 100) / 100,
    };
  }
}

function delayMs(nanoseconds: number): number {
  return Math.max(0, Math.round(nanoseconds / NANOSECONDS - RESOLUTION_MS));
}
