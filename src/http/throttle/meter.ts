/** Meters count permits as a server does: a rate with a burst, or a budget per window of the server's clock. */

export interface Meter {
  /** Weight of the heaviest request that the meter can ever allow. */
  readonly most: number;
  /** Whether another program is being asked for the permits. The wait for its answer is no wait for the limit. */
  readonly isAsking?: boolean;
  /** Takes the permits and returns 0, or returns the milliseconds before the next attempt can succeed. */
  take(weight: number, nowMs: number): number;
  giveBack(weight: number, nowMs: number): void;
  /** Marks the budget as used up. Returns the milliseconds until the window ends. A rate has no such end. */
  onExhausted?(nowMs: number): number | undefined;
}

export interface Rate {
  readonly permitsPerSecond: number;
  readonly burst: number;
}

/** Allows at most `permitsPerSecond · t + burst` permits in any t seconds. */
export class RateMeter implements Meter {
  readonly most: number;
  #permits: number;
  #filledAt: number;

  constructor(
    private readonly rate: Rate,
    nowMs: number,
  ) {
    this.most = rate.burst;
    this.#permits = rate.burst;
    this.#filledAt = nowMs;
  }

  permitsAt(nowMs: number): number {
    const { permitsPerSecond, burst } = this.rate;
    return Math.min(burst, this.#permits + ((nowMs - this.#filledAt) / 1000) * permitsPerSecond);
  }

  take(weight: number, nowMs: number): number {
    const { permitsPerSecond } = this.rate;
    this.#permits = this.permitsAt(nowMs);
    this.#filledAt = nowMs;
    if (this.#permits < weight) return ((weight - this.#permits) / permitsPerSecond) * 1000;
    this.#permits -= weight;
    return 0;
  }

  giveBack(weight: number): void {
    this.#permits = Math.min(this.rate.burst, this.#permits + weight);
  }
}
