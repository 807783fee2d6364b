/** Limits of the user besides the meter of a bucket: `--request-interval`, `--requests-per-minute`, and `--limits` of a rate. */

/** At most `requests` requests in any `spanMs` milliseconds. */
export interface Pace {
  readonly requests: number;
  readonly spanMs: number;
}

/** The requests of one bucket, which obey each of its paces. */
export class Paces {
  /** With the times of the last requests, as many as the pace allows in one span. */
  readonly #paces: readonly (Pace & { readonly times: number[] })[];
  #taken = 0;

  constructor(paces: readonly Pace[]) {
    this.#paces = paces.map((pace) => ({ ...pace, times: [] }));
  }

  /** Milliseconds until the next request may be sent; 0 for now. */
  delayMs(nowMs: number): number {
    const delays = this.#paces.map(
      ({ requests, spanMs, times }) => (times[this.#taken % requests] ?? -Infinity) + spanMs - nowMs,
    );
    return Math.max(0, ...delays);
  }

  take(nowMs: number): void {
    for (const { requests, times } of this.#paces) times[this.#taken % requests] = nowMs;
    this.#taken += 1;
  }

  /** The last request was not sent. The times that it overwrote need not be restored, because they were older than a span. */
  giveBack(): void {
    this.#taken -= 1;
    for (const { requests, times } of this.#paces) times[this.#taken % requests] = -Infinity;
  }
}
