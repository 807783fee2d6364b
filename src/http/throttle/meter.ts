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

export interface Budget {
  readonly permits: number;
  readonly windowMs: number;
}

/** When this share of the budget is used, the rest is spread over the rest of the window. */
const SLOW_FROM = 0.8;

/**
 * At most `permits` in each window of the server's clock. The server's own count includes other clients of the same
 * address, and the shared count includes other processes of this machine.
 */
export class WindowMeter implements Meter {
  #window = Number.NaN;
  #slowFrom: number | undefined;

  constructor(
    /** The exchange may tell a new one. */
    public budget: Budget,
    private readonly serverTime: (nowMs: number) => ServerTime,
    private readonly count: WindowCount,
  ) {}

  get most(): number {
    return this.budget.permits;
  }

  get isAsking(): boolean {
    return this.count.isAsking === true;
  }

  /** `leftMs`: milliseconds until the window ends. */
  state(nowMs: number) {
    const { window, leftMs } = this.#enter(nowMs);
    return { used: this.count.used(window), permits: this.budget.permits, leftMs: Math.round(leftMs) };
  }

  take(weight: number, nowMs: number): number {
    const { permits, windowMs } = this.budget;
    const { window, at, leftMs, isSure } = this.#enter(nowMs);
    // Near the boundary of a window, it is unknown in which window the server will count the request.
    if (!isSure) return leftMs;
    const used = this.count.used(window);
    const slow = permits * SLOW_FROM;
    const isSlow = used + weight > slow && used + weight <= permits && !this.count.holds?.(window, weight);
    // The first request of a window never waits here. Otherwise a heavy request would never be sent.
    if (isSlow && used > 0) {
      this.#slowFrom ??= at;
      const share = (used + weight - slow) / (permits - slow);
      const dueAt = this.#slowFrom + share * (windowMs - this.#slowFrom);
      if (dueAt > at && dueAt < windowMs) return dueAt - at;
    }
    const delayMs = this.count.take(window, weight, this.budget, at);
    return Math.min(delayMs, leftMs);
  }

  giveBack(weight: number, nowMs: number): void {
    this.count.giveBack(this.#enter(nowMs).window, weight);
  }

  /** Takes the server's count for its window at `dateMs` (NaN: unknown). It can only raise the count of this meter. */
  onUsed(used: number, dateMs: number, nowMs: number): void {
    const { window, isSure } = this.#enter(nowMs);
    // A count of the previous window is not valid for this one. A `Date` header has whole seconds; so have the windows.
    const isOfThis = Number.isNaN(dateMs) ? isSure : Math.floor(dateMs / this.budget.windowMs) === window;
    // A count beyond the budget has no further meaning.
    if (isOfThis) this.count.raise(window, Math.min(used, this.budget.permits));
  }

  onExhausted(nowMs: number): number {
    const { window, leftMs } = this.#enter(nowMs);
    this.count.raise(window, this.budget.permits);
    return leftMs;
  }

  /**
   * The current window by the earliest possible time of the server: `at` is the milliseconds since its beginning, `leftMs` those
   * until its end. `isSure`: the latest possible time of the server lies in the same window.
   */
  #enter(nowMs: number): { window: number; at: number; leftMs: number; isSure: boolean } {
    const { windowMs } = this.budget;
    const { from, to } = this.serverTime(nowMs);
    const window = Math.floor(from / windowMs);
    if (window !== this.#window) {
      this.#window = window;
      this.#slowFrom = undefined;
    }
    const at = from - window * windowMs;
    return { window, at, leftMs: windowMs - at, isSure: Math.floor(to / windowMs) === window };
  }
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

// The time of the server that counts the windows, estimated from its `Date` headers.

interface ServerTime {
  /** Epoch milliseconds. The time of the server lies between `from` and `to`. */
  readonly from: number;
  readonly to: number;
}

/** A `Date` header has whole seconds. */
const SECOND_MS = 1000;
/** Slower answers are ignored: with bounds as wide as a window, the current window would never be known. */
const SLOWEST_MS = 10_000;

/**
 * Each answer bounds the difference between the clocks of server and machine from both sides: its date was written after the
 * request was sent and before the answer arrived. Before the first answer, the clock of the machine or of Redis is used.
 */
export class ServerClock {
  #leastMs = Number.NEGATIVE_INFINITY;
  #mostMs = Number.POSITIVE_INFINITY;

  /** `localOffsetMs`: wall clock minus monotonic clock of this machine. */
  constructor(private readonly localOffsetMs: () => number) {}

  /** `dateMs`: the `Date` header; the other two are times of the monotonic clock. */
  onAnswer(dateMs: number, sentAt: number, receivedAt: number): void {
    if (receivedAt - sentAt > SLOWEST_MS) return;
    const least = dateMs - receivedAt;
    const most = dateMs + SECOND_MS - sentAt;
    this.#leastMs = Math.max(this.#leastMs, least);
    this.#mostMs = Math.min(this.#mostMs, most);
    // The bounds contradict each other, so one of the clocks was changed: only the last answer counts.
    if (this.#leastMs > this.#mostMs) {
      this.#leastMs = least;
      this.#mostMs = most;
    }
  }

  /** `nowMs`: time of the monotonic clock. */
  at(nowMs: number): ServerTime {
    if (this.#leastMs === Number.NEGATIVE_INFINITY) {
      const local = nowMs + this.localOffsetMs();
      return { from: local, to: local };
    }
    return { from: nowMs + this.#leastMs, to: nowMs + this.#mostMs };
  }
}
