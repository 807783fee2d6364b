/** The results at one level of concurrency: objects per second, and the share of failures. */

export interface Measurement {
  /** Objects in flight, at most. */
  readonly level: number;
  readonly perSecond: number;
  /** Mean time from the request to the end of the body. */
  readonly meanMs: number;
  /** Refused requests as a share of all requests of the measurement. */
  readonly refusedShare: number;
  /** The event loop of this process was late: the figures describe this machine, not the host. */
  readonly isLocal: boolean;
}

/** A measurement has at least this many objects, because their times vary by half of the mean. */
const LEAST_OBJECTS = 30;

/** Measures the objects per second at one level, after the objects of the earlier level have ended. */
export class Throughput {
  readonly #objects: number;
  #fromMs: number | undefined;
  #skip: number;
  #count = 0;
  #sumMs = 0;
  #isLocal = false;
  #requests = 0;
  #refused = 0;

  /**
   * `turns`: objects of the measurement, as a multiple of the level. `skip`: objects that were in flight when the level rose.
   * `fromMs`: the beginning of the measurement when no object is skipped; by default the request of its first object.
   */
  constructor(
    private readonly level: number,
    turns: number,
    skip: number,
    fromMs?: number,
  ) {
    this.#objects = Math.max(LEAST_OBJECTS, level) * turns;
    this.#skip = skip;
    this.#fromMs = fromMs;
  }

  /** Counts a request that ended at the level of the measurement. */
  count(isRefused: boolean): void {
    this.#requests += 1;
    if (isRefused) this.#refused += 1;
  }

  /** Counts an object that arrived. Returns the measurement when it is complete. Times are of the monotonic clock. */
  add(sentAtMs: number, endedAtMs: number, isLate: boolean): Measurement | undefined {
    if (this.#skip > 0) {
      this.#skip -= 1;
      this.#fromMs = endedAtMs;
      return undefined;
    }
    this.#fromMs ??= sentAtMs;
    this.#count += 1;
    this.#sumMs += endedAtMs - sentAtMs;
    this.#isLocal ||= isLate;
    if (this.#count < this.#objects) return undefined;
    const seconds = Math.max(1, endedAtMs - this.#fromMs) / 1000;
    return {
      level: this.level,
      perSecond: this.#count / seconds,
      meanMs: this.#sumMs / this.#count,
      refusedShare: this.#requests === 0 ? 0 : this.#refused / this.#requests,
      isLocal: this.#isLocal,
    };
  }
}
