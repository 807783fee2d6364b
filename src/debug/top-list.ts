/** A list of the largest entries, of a limited length. */

export class TopList<T> {
  readonly #most: number;
  /** Largest first. */
  readonly #entries: { readonly value: number; readonly entry: T }[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** Calls `make` only if the value is among the largest ones. Of equal values, the earlier ones stay. */
  add(value: number, make: () => T): void {
    const least = this.#entries.at(-1);
    if (this.#entries.length >= this.#most && (least === undefined || value <= least.value)) return;
    const at = this.#entries.findIndex((other) => other.value < value);
    this.#entries.splice(at < 0 ? this.#entries.length : at, 0, { value, entry: make() });
    if (this.#entries.length > this.#most) this.#entries.pop();
  }

  /** Largest first. */
  get entries(): readonly T[] {
    return this.#entries.map(({ entry }) => entry);
  }
}
