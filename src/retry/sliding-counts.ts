/** Results of the last while, in a tenth of it each: what it costs does not grow with their number. */

const SLOTS = 10;

interface Slot {
  readonly number: number;
  results: number;
  failures: number;
}

export class SlidingCounts {
  readonly #slotMs: number;
  #slots: Slot[] = [];

  constructor(windowMs: number) {
    this.#slotMs = windowMs / SLOTS;
  }

  /** Counts one result, and tells what the window holds with it. */
  add(nowMs: number, isFailure: boolean): { results: number; failures: number } {
    const number = Math.floor(nowMs / this.#slotMs);
    this.#slots = this.#slots.filter((slot) => slot.number > number - SLOTS);
    let last = this.#slots.at(-1);
    if (last?.number !== number) {
      last = { number, results: 0, failures: 0 };
      this.#slots.push(last);
    }
    last.results += 1;
    if (isFailure) last.failures += 1;
    const sum = (of: (slot: Slot) => number): number =>
      this.#slots.reduce((total, slot) => total + of(slot), 0);
    return { results: sum((slot) => slot.results), failures: sum((slot) => slot.failures) };
  }
}
