/** Limits of the user besides the meter of a bucket: `--request-interval`, `--requests-per-minute`, and `--limits` of a rate. */

/** At most `requests` requests in any `spanMs` milliseconds. */
export interface Pace {
  readonly requests: number;
  readonly spanMs: number;
}

/** The times of the last requests, as many as the pace allows in one span. */
class Recent {
  readonly #pace: Pace;
  readonly #times: number[] = [];
  #taken = 0;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  delayMs(nowMs: number): number {
    const oldest = this.#times[this.#taken % this.#pace.requests] ?? Number.NEGATIVE_INFINITY;
    return Math.max(0, oldest + this.#pace.spanMs - nowMs);
  }

  take(nowMs: number): void {
    this.#times[this.#taken % this.#pace.requests] = nowMs;
    this.#taken += 1;
  }

  /** Removes the last request. The time that it overwrote need not be restored, because it was older than a span. */
  giveBack(): void {
    this.#taken -= 1;
    this.#times[this.#taken % this.#pace.requests] = Number.NEGATIVE_INFINITY;
  }
}

/** The requests of one bucket, which obey each of its paces. */
export class Paces {
  readonly #recent: readonly Recent[];

  constructor(paces: readonly Pace[]) {
    this.#recent = paces.map((pace) => new Recent(pace));
  }

  /** Milliseconds until the next request may be sent; 0 for now. */
  delayMs(nowMs: number): number {
    return Math.max(0, ...this.#recent.map((recent) => recent.delayMs(nowMs)));
  }

  take(nowMs: number): void {
    for (const recent of this.#recent) recent.take(nowMs);
  }

  /** The last request was not sent. */
  giveBack(): void {
    for (const recent of this.#recent) recent.giveBack();
  }
}
