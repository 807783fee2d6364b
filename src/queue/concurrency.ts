/** How many objects are in flight: fixed, or found out by additive growth and multiplicative retreat. */
import type { Clock } from '../clock.js';

export type ConcurrencyChoice =
  { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };

/** Facts, mechanisms Z11: 30 to 50 suit the archive. */
const START = 30;
const LEAST = 4;
const RETREAT = 0.7;
/** One retreat per this long: a burst of refusals is one message. */
const RETREAT_EVERY_MS = 1000;

export class Concurrency {
  limit: number;
  readonly #max: number;
  readonly #clock: Clock;
  readonly #onChange: (limit: number) => void;
  readonly #isFixed: boolean;
  #successes = 0;
  #hasRetreated = false;
  #retreatedAt = Number.NEGATIVE_INFINITY;

  constructor(choice: ConcurrencyChoice, clock: Clock, onChange: (limit: number) => void) {
    this.#isFixed = choice.kind === 'fixed';
    this.#max = choice.kind === 'fixed' ? choice.limit : choice.max;
    this.limit = choice.kind === 'fixed' ? choice.limit : Math.min(START, choice.max);
    this.#clock = clock;
    this.#onChange = onChange;
  }

  /**
   * One more after each good answer, which doubles the limit in a round trip; from the first retreat on, one more after
   * as many good answers as are in flight.
   */
  onSuccess(): void {
    if (this.#isFixed || this.limit >= this.#max) return;
    this.#successes += 1;
    if (this.#hasRetreated && this.#successes < this.limit) return;
    this.#set(this.limit + 1);
  }

  /** The host said that it is too much. */
  onOverload(): void {
    const now = this.#clock.monotonic();
    if (this.#isFixed || now - this.#retreatedAt < RETREAT_EVERY_MS) return;
    this.#retreatedAt = now;
    this.#hasRetreated = true;
    this.#set(Math.max(Math.min(LEAST, this.#max), Math.floor(this.limit * RETREAT)));
  }

  #set(limit: number): void {
    this.#successes = 0;
    this.limit = limit;
    this.#onChange(limit);
  }
}
