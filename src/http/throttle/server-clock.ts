/** The time of the server that counts the windows, estimated from its `Date` headers. */

export interface ServerTime {
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
