/** The share of failures among the last results of requests, and whether it calls for a lower level of concurrency. */

/** A host on a bad day fails this share of all requests at any load. */
const USUAL_SHARE = 0.1;
/** Results at the lower level that are enough to compare the shares. */
export const RESULTS_AFTER_RETREAT = 60;
/** A host that refuses a larger share is full, even with few requests in flight. */
const MOST_OF_A_BAD_DAY = 0.5;

/** A retreat with an effect that is not known yet. */
interface Retreat {
  /** The level where the failures began. */
  readonly top: number;
  readonly fromLevel: number;
  /** Results of requests at the level before the retreat. */
  results: number;
  bad: number;
}

/**
 * The share of failures of one kind among the last results. A full host refuses less with fewer requests in flight. If the
 * share stays high with fewer requests, the load is not the reason.
 */
export class Failures {
  readonly recent = new RecentShare();
  /** The share at any load. */
  #usual = USUAL_SHARE;
  /** Up to this level, the load is not the reason for the failures. */
  #harmlessUpTo = 0;
  #retreat: Retreat | undefined;

  /** `least`: results that a decision needs. `mayBeFull`: failures of this kind are answers of a full host. */
  constructor(private readonly kind: { readonly least: number; readonly mayBeFull: boolean }) {}

  /** Whether the share calls for a retreat. False while the effect of the last retreat is not known. */
  isMuch(inFlight: number): boolean {
    const { results } = this.recent;
    const isEnough = results >= this.kind.least && this.#retreat === undefined;
    return isEnough && this.recent.exceeds(this.#usual, inFlight);
  }

  get growTo(): number {
    if (this.recent.share <= USUAL_SHARE) return Number.POSITIVE_INFINITY;
    if (this.kind.mayBeFull) return this.#retreat === undefined ? Number.POSITIVE_INFINITY : 0;
    return this.#harmlessUpTo;
  }

  onRetreat(fromLevel: number): void {
    const { results, bad } = this.recent;
    this.#retreat = { top: this.#retreat?.top ?? fromLevel, fromLevel, results, bad };
  }

  addEarlier(isBad: boolean): void {
    if (this.#retreat === undefined) return;
    this.#retreat.results += 1;
    if (isBad) this.#retreat.bad += 1;
  }

  /** The level before the retreat, and how much of it the host served. If it served nothing, the host was down, and the whole level counts. */
  get left(): { readonly level: number; readonly served: number } | undefined {
    if (this.#retreat === undefined) return undefined;
    const { fromLevel: level, results, bad } = this.#retreat;
    return { level, served: bad === results ? level : Math.floor((level * (results - bad)) / results) };
  }

  /** Counts a result at the present level. Returns the level before the retreat if a host answers again: the outage says nothing about the load. */
  add(isBad: boolean): { readonly backTo: number } | undefined {
    const { results, share } = this.recent;
    const wasDown = !isBad && share === 1 && results >= RESULTS_AFTER_RETREAT ? this.#retreat : undefined;
    this.recent.add(isBad);
    if (wasDown !== undefined) this.#retreat = undefined;
    return wasDown && { backTo: wasDown.top };
  }

  /** The verdict on a retreat: undefined if it helped or too few results are known, `again` for a further retreat, or the level to go back to. */
  judge(): 'again' | { readonly backTo: number } | undefined {
    const before = this.#retreat;
    const { results, share } = this.recent;
    // A host that answers nothing is down. Its load does not matter.
    if (before === undefined || results < RESULTS_AFTER_RETREAT || share === 1) return undefined;
    if (!this.recent.exceeds(this.#usual, 0)) {
      this.#retreat = undefined;
      return undefined;
    }
    // One retreat may be too small.
    const isFirst = before.fromLevel === before.top;
    if (this.kind.mayBeFull && (share > MOST_OF_A_BAD_DAY || isFirst)) return 'again';
    this.#retreat = undefined;
    this.#usual = Math.max(this.#usual, share);
    this.#harmlessUpTo = Math.max(this.#harmlessUpTo, before.top);
    return { backTo: before.top };
  }
}

const RESULTS = 100;

class RecentShare {
  #results: boolean[] = [];
  bad = 0;

  add(isBad: boolean): void {
    this.#results.push(isBad);
    if (isBad) this.bad += 1;
    if (this.#results.length > RESULTS && this.#results.shift() === true) this.bad -= 1;
  }

  get results(): number {
    return this.#results.length;
  }

  get share(): number {
    return this.#results.length === 0 ? 0 : this.bad / this.#results.length;
  }

  /**
   * Whether there are more bad results than expected at the share `usual`, plus three standard deviations and one. `inFlight`:
   * requests without a result yet; they count as good while there are few results, because refusals arrive sooner than bodies.
   */
  exceeds(usual: number, inFlight: number): boolean {
    const expected = Math.max(this.#results.length, Math.min(inFlight, RESULTS)) * usual;
    return this.bad > expected + 3 * Math.sqrt(expected) + 1;
  }

  clear(): void {
    this.#results = [];
    this.bad = 0;
  }
}
