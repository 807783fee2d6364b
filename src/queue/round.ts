/** What one level of concurrency delivers: the objects per second of a round, once the answers to earlier levels are over. */

export interface Round {
  /** Objects in flight that were allowed. */
  readonly level: number;
  readonly perSecond: number;
  /** From the sending to the end of the body. */
  readonly meanMs: number;
  /** Of all requests of the round, those that the host refused. */
  readonly refusedShare: number;
  /** This process was late during the round: its figures tell about this machine. */
  readonly isLocal: boolean;
}

/** Fewer objects than this tell little: their times differ by half of the mean. */
const LEAST_OBJECTS = 30;

export class RoundMeter {
  readonly #level: number;
  readonly #objects: number;
  #from: number | undefined;
  #skip: number;
  #count = 0;
  #sumMs = 0;
  #isLocal = false;
  #requests = 0;
  #refused = 0;

  /**
   * `turns`: objects of the round, as a multiple of the level. `skip`: objects that were under way when the level rose;
   * `from`: when the round begins, if none are skipped; the sending of the first object when it is not known.
   */
  constructor(level: number, turns: number, skip: number, from?: number) {
    this.#level = level;
    this.#objects = Math.max(LEAST_OBJECTS, level) * turns;
    this.#skip = skip;
    this.#from = from;
  }

  /** A request that has ended at the level of the round. */
  count(isRefused: boolean): void {
    this.#requests += 1;
    if (isRefused) this.#refused += 1;
  }

  /** An object that arrived; the round, when it is complete. Moments are of the monotonic clock. */
  add(sentAt: number, endedAt: number, isLate: boolean): Round | undefined {
    if (this.#skip > 0) {
      this.#skip -= 1;
      this.#from = endedAt;
      return undefined;
    }
    this.#from ??= sentAt;
    this.#count += 1;
    this.#sumMs += endedAt - sentAt;
    this.#isLocal ||= isLate;
    if (this.#count < this.#objects) return undefined;
    const seconds = Math.max(1, endedAt - this.#from) / 1000;
    return {
      level: this.#level,
      perSecond: this.#count / seconds,
      meanMs: this.#sumMs / this.#count,
      refusedShare: this.#requests === 0 ? 0 : this.#refused / this.#requests,
      isLocal: this.#isLocal,
    };
  }
}
