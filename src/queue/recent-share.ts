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
