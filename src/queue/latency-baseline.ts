/** Is the first byte late, compared with how it used to be? Body time depends on the size and says nothing. */

/** Twice the baseline, and noticeably so: on a fast line the work of our own machine is most of it. */
const TOO_SLOW = 2;
const NOTICEABLE_MS = 100;
const SAMPLES = 30;
/** With half as many in flight, queueing would have become this much less at least. */
const HALF = 0.5;
const IMPROVED = 0.85;

export class LatencyBaseline {
  #baselineMs = Number.POSITIVE_INFINITY;
  #samples: number[] = [];
  /** Where it was found too slow first. */
  #slow: { readonly ms: number; readonly inFlight: number } | undefined;

  /**
   * By the median of the last few, `inFlight` being the limit, and `mayShrink` whether there can be fewer.
   * `slow-anyway`: also with half as many, so that it is the new baseline.
   */
  judge(firstByteMs: number, inFlight: number, mayShrink: boolean): 'usual' | 'too-slow' | 'slow-anyway' {
    this.#samples.push(firstByteMs);
    if (this.#samples.length < SAMPLES) return 'usual';
    const ms = median(this.#samples);
    this.#samples = [];
    if (ms <= this.#baselineMs * TOO_SLOW || ms - this.#baselineMs <= NOTICEABLE_MS) {
      this.#baselineMs = Math.min(ms, this.#baselineMs);
      this.#slow = undefined;
      return 'usual';
    }
    this.#slow ??= { ms, inFlight };
    const isHalf = !mayShrink || inFlight <= this.#slow.inFlight * HALF;
    if (!isHalf) return 'too-slow';
    const isAnyway = ms > this.#slow.ms * IMPROVED;
    this.#slow = isAnyway ? undefined : { ms, inFlight };
    if (isAnyway) this.#baselineMs = ms;
    return isAnyway ? 'slow-anyway' : 'too-slow';
  }

  /** After a retreat: what comes now was sent with fewer in flight. */
  begin(): void {
    this.#samples = [];
  }
}

function median(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[samples.length >> 1] ?? 0;
}
