/** How a server counts: at most a rate with a burst, or at most a budget in each window of its clock. */
import type { ServerTime } from './server-clock.js';

export interface Meter {
  /** The heaviest single request that it can ever let through. */
  readonly most: number;
  /** Permits that were taken by all that share them, as far as was seen. */
  readonly taken: number;
  /** Whether so many more can be had without leaving others less: they are not scarce, or there are none. */
  isSpare(weight: number, nowMs: number): boolean;
  /** What requests wait for is mostly a pace of the user, not how the server counts. */
  readonly isPaced?: boolean;
  /** Takes the permits and returns 0, or returns the milliseconds after which it is worth asking again. */
  take(weight: number, nowMs: number): number;
  /** Of permits that were never used. */
  giveBack(weight: number, nowMs: number): void;
  /** What the server says that was used in its window of `dateMs` (NaN: it does not say when); only ever corrects upwards. */
  onUsed(used: number, dateMs: number, nowMs: number): void;
  /** Nothing is left until the window ends: in so many milliseconds, if the server counts in windows. */
  onExhausted(nowMs: number): number | undefined;
}

export interface Rate {
  readonly permitsPerSecond: number;
  readonly burst: number;
}

/** In any span of t seconds at most `permitsPerSecond · t + burst` permits (mechanism B4). */
export class RateMeter implements Meter {
  readonly most: number;
  taken = 0;
  readonly #rate: Rate;
  #permits: number;
  #filledAt: number;

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.most = rate.burst;
    this.#permits = rate.burst;
    this.#filledAt = nowMs;
  }

  /** What is there now is given, and more comes all the time. */
  isSpare(): boolean {
    return true;
  }

  take(weight: number, nowMs: number): number {
    const { permitsPerSecond, burst } = this.#rate;
    const filled = this.#permits + ((nowMs - this.#filledAt) / 1000) * permitsPerSecond;
    this.#permits = Math.min(burst, filled);
    this.#filledAt = nowMs;
    if (this.#permits < weight) return ((weight - this.#permits) / permitsPerSecond) * 1000;
    this.#permits -= weight;
    this.taken += weight;
    return 0;
  }

  giveBack(weight: number): void {
    this.#permits = Math.min(this.#rate.burst, this.#permits + weight);
  }

  onUsed(): void {
    // A rate has no window that a server could tell of.
  }

  onExhausted(): undefined {
    return undefined;
  }
}

export interface Budget {
  readonly permits: number;
  readonly windowMs: number;
}

/** From this share of the budget on, the rest is spread over the rest of the window. */
const SLOW_FROM = 0.8;

/**
 * At most `permits` in each window of the server's clock; other clients of the same address are seen in what the server
 * says was used, other processes of this machine in the count (mechanisms Z1, Q6, D18).
 */
export class WindowMeter implements Meter {
  taken = 0;
  readonly #serverTime: (nowMs: number) => ServerTime;
  readonly #count: WindowCount;
  #budget: Budget;
  #window = Number.NaN;
  /** Permits of the running window that are in `taken`, or were there before this process. */
  #seen: number | undefined;
  /** When the slow part of the running window began. */
  #slowFrom: number | undefined;

  constructor(budget: Budget, serverTime: (nowMs: number) => ServerTime, count: WindowCount) {
    this.#budget = budget;
    this.#serverTime = serverTime;
    this.#count = count;
  }

  get most(): number {
    return this.#budget.permits;
  }

  get windowMs(): number {
    return this.#budget.windowMs;
  }

  /** The venue says that its limit is another one now. */
  set budget(budget: Budget) {
    this.#budget = budget;
  }

  /** An even pace over the window is not faster. */
  isSpare(weight: number, nowMs: number): boolean {
    const { permits, windowMs } = this.#budget;
    const { window, at } = this.#enter(nowMs);
    const used = this.#used(window) + weight;
    return used > permits || used <= (permits * at) / windowMs;
  }

  take(weight: number, nowMs: number): number {
    const { permits, windowMs } = this.#budget;
    const { window, at, leftMs, isSure } = this.#enter(nowMs);
    // It may be the next window there already, or this one still: nobody knows whose budget it would be.
    if (!isSure) return leftMs;
    const used = this.#used(window);
    if (used + weight > permits) return leftMs;
    const slow = permits * SLOW_FROM;
    // A request that is heavier than the slow part fits only into the fast one.
    if (used + weight > slow && used > 0) {
      this.#slowFrom ??= at;
      const share = (used + weight - slow) / (permits - slow);
      const dueAt = this.#slowFrom + share * (windowMs - this.#slowFrom);
      if (dueAt > at && dueAt < windowMs) return dueAt - at;
    }
    if (!this.#count.take(window, weight, permits)) return leftMs;
    this.taken += weight;
    this.#seen = used + weight;
    return 0;
  }

  giveBack(weight: number, nowMs: number): void {
    this.#count.giveBack(this.#enter(nowMs).window, weight);
  }

  onUsed(used: number, dateMs: number, nowMs: number): void {
    const { window, isSure } = this.#enter(nowMs);
    // A number of the window before would lie about this one; a date has whole seconds, like the windows.
    const isOfThis = Number.isNaN(dateMs) ? isSure : Math.floor(dateMs / this.#budget.windowMs) === window;
    // Beyond the budget a number says nothing more.
    if (isOfThis) this.#count.raise(window, Math.min(used, this.#budget.permits));
  }

  onExhausted(nowMs: number): number {
    const { window, leftMs } = this.#enter(nowMs);
    this.#count.raise(window, this.#budget.permits);
    return leftMs;
  }

  #used(window: number): number {
    const used = this.#count.used(window);
    this.taken += Math.max(0, used - (this.#seen ?? used));
    this.#seen = used;
    return used;
  }

  /** `at` and `leftMs`: since the window began and until it is over, for sure. */
  #enter(nowMs: number): { window: number; at: number; leftMs: number; isSure: boolean } {
    const { windowMs } = this.#budget;
    const { from, to } = this.#serverTime(nowMs);
    const window = Math.floor(from / windowMs);
    if (window !== this.#window) {
      this.#seen = Number.isNaN(this.#window) ? undefined : 0;
      this.#window = window;
      this.#slowFrom = undefined;
    }
    const at = from - window * windowMs;
    return { window, at, leftMs: windowMs - at, isSure: Math.floor(to / windowMs) === window };
  }
}

/** How much of a window's budget is used: by this process, or by all of this machine. */

export interface WindowCount {
  /** Permits used in the window with this number. */
  used(window: number): number;
  /** Takes so many, if there is room for them: then true. */
  take(window: number, weight: number, permits: number): boolean;
  /** At least so many were used, says the server. */
  raise(window: number, used: number): void;
  /** Permits that were taken and never sent. */
  giveBack(window: number, weight: number): void;
}

export class OwnCount implements WindowCount {
  #window = Number.NaN;
  #used = 0;

  used(window: number): number {
    this.#enter(window);
    return this.#used;
  }

  take(window: number, weight: number, permits: number): boolean {
    this.#enter(window);
    if (this.#used + weight > permits) return false;
    this.#used += weight;
    return true;
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
