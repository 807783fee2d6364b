/** Limits of the user besides the meter of a bucket: `--request-interval`, `--requests-per-minute`, and `--limits` of a rate. */
import type { Meter } from './meter.js';

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

/** A meter that also obeys each of these paces. */
export class PacedMeter implements Meter {
  readonly #meter: Meter;
  readonly #recent: readonly Recent[];
  /** Milliseconds of waits for the paces and for the meter. */
  readonly #heldMs = { byPaces: 0, byMeter: 0 };

  constructor(meter: Meter, paces: readonly Pace[]) {
    this.#meter = meter;
    this.#recent = paces.map((pace) => new Recent(pace));
  }

  get most(): number {
    return this.#meter.most;
  }

  get taken(): number {
    return this.#meter.taken;
  }

  get isAsking(): boolean {
    return this.#meter.isAsking === true;
  }

  isSpare(weight: number, nowMs: number): boolean {
    return this.#meter.isSpare(weight, nowMs);
  }

  get isPaced(): boolean {
    return this.#heldMs.byPaces > this.#heldMs.byMeter;
  }

  take(weight: number, nowMs: number): number {
    const delayMs = Math.max(...this.#recent.map((recent) => recent.delayMs(nowMs)));
    const leftMs = delayMs > 0 ? delayMs : this.#meter.take(weight, nowMs);
    this.#heldMs[delayMs > 0 ? 'byPaces' : 'byMeter'] += leftMs;
    if (leftMs === 0) for (const recent of this.#recent) recent.take(nowMs);
    return leftMs;
  }

  giveBack(weight: number, nowMs: number): void {
    this.#meter.giveBack(weight, nowMs);
    for (const recent of this.#recent) recent.giveBack();
  }

  onUsed(used: number, dateMs: number, nowMs: number): void {
    this.#meter.onUsed(used, dateMs, nowMs);
  }

  onExhausted(nowMs: number): number | undefined {
    return this.#meter.onExhausted(nowMs);
  }
}
