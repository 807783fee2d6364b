/** Counts of the permits that were used in a window. */

export interface Budget {
  readonly permits: number;
  readonly windowMs: number;
}

/** The permits that were used in a window, by this process, by all processes of this machine, or by an egress group. */
export interface WindowCount {
  used(window: number): number;
  /**
   * Takes `weight` permits and returns 0 if the window then has at most those of the budget. Otherwise returns the milliseconds
   * before the next attempt can succeed; Infinity: not in this window. `at`: milliseconds since the window began.
   */
  take(window: number, weight: number, budget: Budget, at: number): number;
  /** Whether the permits for such a request were taken for this process, and wait for it. */
  holds?(window: number, weight: number): boolean;
  /** Whether another program is being asked; `onChange` tells of its answer. */
  readonly isAsking?: boolean;
  onChange?(listener: () => void): void;
  /** Wall clock minus monotonic clock of this machine, by a clock that all users of the count share. */
  readonly offsetMs?: number | undefined;
  raise(window: number, used: number): void;
  giveBack(window: number, weight: number): void;
}

export class ProcessCount implements WindowCount {
  #window = Number.NaN;
  #used = 0;

  used(window: number): number {
    this.#enter(window);
    return this.#used;
  }

  take(window: number, weight: number, { permits }: Budget): number {
    this.#enter(window);
    if (this.#used + weight > permits) return Infinity;
    this.#used += weight;
    return 0;
  }

  raise(window: number, used: number): void {
    this.#enter(window);
    this.#used = Math.max(this.#used, used);
  }

  giveBack(window: number, weight: number): void {
    if (window === this.#window) this.#used -= weight;
  }

  #enter(window: number): void {
    if (window === this.#window) return;
    this.#window = window;
    this.#used = 0;
  }
}
