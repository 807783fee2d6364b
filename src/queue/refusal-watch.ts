/**
 * Tells refusals that come of the load from those that come anyway. A host that bears 40 at once refuses a third of 60
 * and none of 40; a host with a bad day refuses the same share of whatever it is asked, and asking less would only take
 * longer.
 */

export type Verdict = 'bearable' | 'overload' | 'not-the-load';

/** Results that are looked at. */
const RECENT = 100;
/** Results at a low level that tell what its share of refusals is. */
const LOW_RESULTS = 100;
/** A larger share at a low level is the load's, whatever it was above: of 100 and of 70, a host that bears 40 refuses much. */
const MOST_BACKGROUND = 0.1;
/** A low level that is refused less than this part of the share above was refused because of the load. */
const SAME_SHARE = 0.3;
/** So often the background is measured again: it may have become less. */
const MEASURE_AGAIN = 300;

interface Share {
  results: number;
  refused: number;
}

const shareOf = ({ results, refused }: Share): number => (results === 0 ? 0 : refused / results);

export class RefusalWatch {
  #recent: boolean[] = [];
  #measured: Share = { results: 0, refused: 0 };
  /** At the level that was too much: those under way when the first of them was refused, without that one. */
  #above: Share | undefined;
  #low: Share = { results: 0, refused: 0 };
  /** Share of refusals that has nothing to do with the load. */
  #background = 0;

  /** A result at the level of now; `isLow`: clearly below the level that was too much. */
  add(isRefused: boolean, isLow: boolean): Verdict {
    this.#recent.push(isRefused);
    if (this.#recent.length > RECENT) this.#recent.shift();
    this.#measure(isRefused);
    if (isLow) count(this.#low, isRefused);
    if (!isRefused) return 'bearable';
    if (isLow && this.#above !== undefined) return this.#lowVerdict(this.#above);
    return this.#isUsual() ? 'bearable' : 'overload';
  }

  /** A result of what was sent before the retreat. */
  addLate(isRefused: boolean): void {
    if (this.#above !== undefined) count(this.#above, isRefused);
  }

  /** After a retreat: what comes now is at another level. */
  begin(): void {
    this.#above = { results: 0, refused: 0 };
    this.#recent = [];
    this.#low = { results: 0, refused: 0 };
  }

  #lowVerdict(above: Share): Verdict {
    const share = shareOf(this.#low);
    const isMuch = this.#low.refused >= 3 && share > MOST_BACKGROUND * 2;
    if (this.#low.results < LOW_RESULTS) return isMuch ? 'overload' : 'bearable';
    if (share > MOST_BACKGROUND) return 'overload';
    if (share < shareOf(above) * SAME_SHARE) return this.#isUsual() ? 'bearable' : 'overload';
    this.#background = share;
    this.#measured = { results: 0, refused: 0 };
    this.#above = undefined;
    return 'not-the-load';
  }

  /** No more refusals than the background alone would bring, give or take two deviations. */
  #isUsual(): boolean {
    if (this.#background === 0) return false;
    const expected = this.#recent.length * this.#background;
    return this.#recent.filter(Boolean).length <= expected + 2 * Math.sqrt(expected) + 1;
  }

  #measure(isRefused: boolean): void {
    count(this.#measured, isRefused);
    if (this.#measured.results < MEASURE_AGAIN) return;
    const share = shareOf(this.#measured);
    if (share < this.#background / 2) this.#background = share;
    this.#measured = { results: 0, refused: 0 };
  }
}

function count(share: Share, isRefused: boolean): void {
  share.results += 1;
  if (isRefused) share.refused += 1;
}
