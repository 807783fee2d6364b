/**
 * Failures of one kind: their share among the last results, and whether fewer in flight help. A host that is full refuses less when
 * fewer are in flight; where far more than usual fail all the same, the load is not the reason (mechanism Z6).
 */

/** A host refuses or breaks off as many on a bad day, whatever it is asked. */
const USUAL_SHARE = 0.1;
/** Results at the lower level that tell whether its share is lower too. */
export const RESULTS_AFTER_RETREAT = 60;
/** A host that refuses more than this is full, however few are in flight. */
const MOST_OF_A_BAD_DAY = 0.5;

/** A retreat whose effect is not known yet. */
interface Retreat {
  /** The level where the failures began. */
  readonly top: number;
  readonly from: number;
  /** Requests that were sent at the level that was left. */
  results: number;
  bad: number;
}

export class Failures {
  readonly recent = new RecentShare();
  readonly #least: number;
  readonly #mayBeFull: boolean;
  /** The share that has nothing to do with the load. */
  #usual = USUAL_SHARE;
  /** Up to this level as many failed with fewer in flight. */
  #harmlessUpTo = 0;
  #retreat: Retreat | undefined;

  /** `least`: results without which nothing is decided. `mayBeFull`: they are the answers of a host that is full. */
  constructor({ least, mayBeFull }: { readonly least: number; readonly mayBeFull: boolean }) {
    this.#least = least;
    this.#mayBeFull = mayBeFull;
  }

  /** Never while the effect of a retreat is not known: a host that answers none is down, whatever it is asked. */
  isMuch(inFlight: number): boolean {
    const { results } = this.recent;
    return (
      results >= this.#least && this.#retreat === undefined && this.recent.exceeds(this.#usual, inFlight)
    );
  }

  /** The level may grow up to this one. */
  get growTo(): number {
    if (this.recent.share <= USUAL_SHARE) return Number.POSITIVE_INFINITY;
    if (this.#mayBeFull) return this.#retreat === undefined ? Number.POSITIVE_INFINITY : 0;
    return this.#harmlessUpTo;
  }

  onRetreat(from: number): void {
    const { results, bad } = this.recent;
    this.#retreat = { top: this.#retreat?.top ?? from, from, results, bad };
  }

  /** The result of a request that was sent before the retreat. */
  addEarlier(isBad: boolean): void {
    if (this.#retreat === undefined) return;
    this.#retreat.results += 1;
    if (isBad) this.#retreat.bad += 1;
  }

  /** The level that was left, and how much of it was served: all of it, when nothing was. */
  get left(): { readonly level: number; readonly served: number } | undefined {
    if (this.#retreat === undefined) return undefined;
    const { from: level, results, bad } = this.#retreat;
    return { level, served: bad === results ? level : Math.floor((level * (results - bad)) / results) };
  }

  /**
   * A result at the level of now. When a host that was down answers again, the level to go back to: the time without an answer says
   * nothing about the load.
   */
  add(isBad: boolean): { readonly backTo: number } | undefined {
    const { results, share } = this.recent;
    const wasDown = !isBad && share === 1 && results >= RESULTS_AFTER_RETREAT ? this.#retreat : undefined;
    this.recent.add(isBad);
    if (wasDown !== undefined) this.#retreat = undefined;
    return wasDown && { backTo: wasDown.top };
  }

  /** At the lower level: undefined while little is known, or when no more than usual fail; otherwise the level to go back to, or `again`. */
  judge(): 'again' | { readonly backTo: number } | undefined {
    const before = this.#retreat;
    const { results, share } = this.recent;
    // A host that answers none is down, whatever it is asked.
    if (before === undefined || results < RESULTS_AFTER_RETREAT || share === 1) return undefined;
    if (!this.recent.exceeds(this.#usual, 0)) {
      this.#retreat = undefined;
      return undefined;
    }
    if (this.#mayBeFull && share > MOST_OF_A_BAD_DAY) return 'again';
    this.#retreat = undefined;
    this.#usual = Math.max(this.#usual, share);
    this.#harmlessUpTo = Math.max(this.#harmlessUpTo, before.top);
    return { backTo: before.top };
  }
}

/** The share of the last results that were bad. */

const RESULTS = 100;

class RecentShare {
  #results: boolean[] = [];
  #bad = 0;

  add(isBad: boolean): void {
    this.#results.push(isBad);
    if (isBad) this.#bad += 1;
    if (this.#results.length > RESULTS && this.#results.shift() === true) this.#bad -= 1;
  }

  get results(): number {
    return this.#results.length;
  }

  get bad(): number {
    return this.#bad;
  }

  get share(): number {
    return this.#results.length === 0 ? 0 : this.#bad / this.#results.length;
  }

  /**
   * More than a host brings whose share is `usual`, give or take three deviations. `inFlight`: requests whose results are not known
   * yet; they count as good while there are few results, because refusals come sooner than bodies.
   */
  exceeds(usual: number, inFlight: number): boolean {
    const expected = Math.max(this.#results.length, Math.min(inFlight, RESULTS)) * usual;
    return this.#bad > expected + 3 * Math.sqrt(expected) + 1;
  }

  clear(): void {
    this.#results = [];
    this.#bad = 0;
  }
}
