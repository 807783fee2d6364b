/** What time it is where the windows are counted, as far as its `Date` headers tell. */

export interface ServerTime {
  /** Epoch milliseconds: it is not earlier than `from` and not later than `to`. */
  readonly from: number;
  readonly to: number;
}

/** A `Date` header has whole seconds. */
const SECOND_MS = 1000;
/** What took longer hardly tells: with bounds as wide as a window nobody would ever know which one it is. */
const SLOWEST_MS = 10_000;

/**
 * Each answer bounds the difference between the server's clock and ours from both sides: it was written after the
 * request was sent and before the answer was here. Before the first answer our own clock must do.
 */
export class ServerClock {
  readonly #localOffsetMs: number;
  #leastMs = Number.NEGATIVE_INFINITY;
  #mostMs = Number.POSITIVE_INFINITY;

  /** `localOffsetMs`: wall clock minus monotonic clock of this machine. */
  constructor(localOffsetMs: number) {
    this.#localOffsetMs = localOffsetMs;
  }

  /** `dateMs` as in the header; the other two on the monotonic clock. */
  onAnswer(dateMs: number, sentAt: number, receivedAt: number): void {
    if (receivedAt - sentAt > SLOWEST_MS) return;
    const least = dateMs - receivedAt;
    const most = dateMs + SECOND_MS - sentAt;
    this.#leastMs = Math.max(this.#leastMs, least);
    this.#mostMs = Math.min(this.#mostMs, most);
    // A clock that was set: only the last answer counts.
    if (this.#leastMs > this.#mostMs) {
      this.#leastMs = least;
      this.#mostMs = most;
    }
  }

  at(nowMs: number): ServerTime {
    if (this.#leastMs === Number.NEGATIVE_INFINITY) {
      const local = nowMs + this.#localOffsetMs;
      return { from: local, to: local };
    }
    return { from: nowMs + this.#leastMs, to: nowMs + this.#mostMs };
  }
}
