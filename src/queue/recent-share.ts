/** The share of the last results that were bad. */

const RESULTS = 100;

export class RecentShare {
  #results: boolean[] = [];
  #bad = 0;

  add(isBad: boolean): void {
    this.#results.push(isBad);
    if (isBad) this.#bad += 1;
    if (this.#results.length > RESULTS && this.#results.shift() === true) this.#bad -= 1;
  }

  get isFull(): boolean {
    return this.#results.length === RESULTS;
  }

  get results(): number {
    return this.#results.length;
  }

  get share(): number {
    return this.#results.length === 0 ? 0 : this.#bad / this.#results.length;
  }

  /** More than a host brings whose share is `usual`, give or take two deviations. */
  exceeds(usual: number): boolean {
    const expected = this.#results.length * usual;
    return this.#bad > expected + 2 * Math.sqrt(expected) + 1;
  }

  clear(): void {
    this.#results = [];
    this.#bad = 0;
  }
}
