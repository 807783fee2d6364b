/** How a server counts: at most a rate with a burst, or at most a budget in each window of its clock. */

export interface Meter {
  /** The heaviest single request that it can ever let through. */
  readonly most: number;
  /** Takes the permits and returns 0, or returns the milliseconds after which it is worth asking again. */
  take(weight: number, nowMs: number): number;
  /** What the server says that was used in its running window; only ever corrects upwards. */
  onUsed(used: number, nowMs: number): void;
}

export interface Rate {
  readonly permitsPerSecond: number;
  readonly burst: number;
}

/** In any span of t seconds at most `permitsPerSecond · t + burst` permits (mechanism B4). */
export class RateMeter implements Meter {
  readonly most: number;
  readonly #rate: Rate;
  #permits: number;
  #filledAt: number;

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.most = rate.burst;
    this.#permits = rate.burst;
    this.#filledAt = nowMs;
  }

  take(weight: number, nowMs: number): number {
    const { permitsPerSecond, burst } = this.#rate;
    const filled = this.#permits + ((nowMs - this.#filledAt) / 1000) * permitsPerSecond;
    this.#permits = Math.min(burst, filled);
    this.#filledAt = nowMs;
    if (this.#permits < weight) return ((weight - this.#permits) / permitsPerSecond) * 1000;
    this.#permits -= weight;
    return 0;
  }

  onUsed(): void {
    // A rate has no window that a server could tell of.
  }
}

export interface Budget {
  readonly permits: number;
  readonly windowMs: number;
}

/** From this share of the budget on, the rest is spread over the rest of the window. */
const SLOW_FROM = 0.8;

/**
 * At most `permits` in each window of the server's clock, which `serverNow` tells; other clients of the same address are
 * seen in what the server says was used (mechanisms Z1, Q6, D18).
 */
export class WindowMeter implements Meter {
  readonly most: number;
  readonly #budget: Budget;
  readonly #serverNow: (nowMs: number) => number;
  #window = Number.NaN;
  #used = 0;
  /** When the slow part of the running window began. */
  #slowFrom: number | undefined;

  constructor(budget: Budget, serverNow: (nowMs: number) => number) {
    this.#budget = budget;
    this.#serverNow = serverNow;
    this.most = budget.permits;
  }

  take(weight: number, nowMs: number): number {
    const at = this.#enter(nowMs);
    const { permits, windowMs } = this.#budget;
    const leftMs = windowMs - at;
    if (this.#used + weight > permits) return leftMs;
    const slow = permits * SLOW_FROM;
    // A request that is heavier than the slow part fits only into the fast one.
    if (this.#used + weight > slow && this.#used > 0) {
      this.#slowFrom ??= at;
      const share = (this.#used + weight - slow) / (permits - slow);
      const dueAt = this.#slowFrom + share * (windowMs - this.#slowFrom);
      if (dueAt > at && dueAt < windowMs) return dueAt - at;
    }
    this.#used += weight;
    return 0;
  }

  onUsed(used: number, nowMs: number): void {
    this.#enter(nowMs);
    this.#used = Math.max(this.#used, used);
  }

  /** Milliseconds since the running window began. */
  #enter(nowMs: number): number {
    const server = this.#serverNow(nowMs);
    const window = Math.floor(server / this.#budget.windowMs);
    if (window !== this.#window) {
      this.#window = window;
      this.#used = 0;
      this.#slowFrom = undefined;
    }
    return server - window * this.#budget.windowMs;
  }
}
