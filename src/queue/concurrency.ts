/** How many objects are in flight: fixed, or found out by growth, and by retreat where the host bears no more (mechanisms Z6, K5). */
import { LatencyBaseline } from './latency-baseline.js';
import { RefusalWatch } from './refusal-watch.js';

export type ConcurrencyChoice =
  { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };

/** What an attempt on the wire says about the load. */
export interface LoadSign {
  /** On the monotonic clock. */
  readonly sentAt: number;
  readonly endedAt: number;
  /**
   * `refused`: the host said that it is too much, or did not take the connection. `troubled`: the line or the content
   * was bad, which may have nothing to do with the load.
   */
  readonly result: 'good' | 'refused' | 'troubled';
  readonly firstByteMs: number | undefined;
}

export interface ConcurrencyOptions {
  readonly choice: ConcurrencyChoice;
  /** Where `auto` begins. */
  readonly start: number;
}

const LEAST = 4;
const RETREAT = 0.7;
/** Below this part of a level that was too much, refusals need another reason. */
const LOW = 0.85;
/** Trouble of the line makes it shrink from this share of the last results on. */
const TROUBLE_SHARE = 0.1;
const TROUBLE_RESULTS = 500;
/** A zip and its sidecar. */
const ANSWERS_PER_OBJECT = 2;
/** Good answers at the highest bearable level, before one more is tried. */
const PROBE_AFTER = 1000;

export class Concurrency {
  /** Of requests on the wire, as objects. */
  limit: number;
  /** Retreats so far: what the host could not bear. */
  retreats = 0;
  /** Told of every new number of places. */
  onChange: (places: number) => void = () => undefined;
  readonly #max: number;
  readonly #least: number;
  readonly #isFixed: boolean;
  readonly #refusals = new RefusalWatch();
  readonly #latency = new LatencyBaseline();
  /** What was sent before says nothing about the limit of now. */
  #since = Number.NEGATIVE_INFINITY;
  /** The last level that was too much. */
  #ceiling = Number.POSITIVE_INFINITY;
  #hasRetreated = false;
  #isProbing = false;
  #successes = 0;
  #waiting = 0;
  #troubles: boolean[] = [];

  constructor({ choice, start }: ConcurrencyOptions) {
    this.#isFixed = choice.kind === 'fixed';
    this.#max = choice.kind === 'fixed' ? choice.limit : choice.max;
    this.#least = Math.min(LEAST, this.#max);
    this.limit = choice.kind === 'fixed' ? choice.limit : Math.min(start, choice.max);
  }

  /**
   * Objects that may be under way: those that only wait for a retry to be granted leave their place to others, unless the
   * user fixed how many there are.
   */
  get places(): number {
    if (this.#isFixed) return this.limit;
    return this.limit + Math.min(Math.floor(this.#waiting / ANSWERS_PER_OBJECT), this.#max);
  }

  onWaiting(change: 1 | -1): void {
    this.#waiting += change;
    this.onChange(this.places);
  }

  onAttempt(sign: LoadSign): void {
    if (this.#isFixed) return;
    this.#countTrouble(sign.result === 'troubled', sign.endedAt);
    const isRefused = sign.result === 'refused';
    if (sign.sentAt < this.#since) {
      this.#refusals.addLate(isRefused);
      return;
    }
    if (isRefused && this.#isProbing) {
      this.#stepBack(sign.endedAt);
      return;
    }
    const verdict = this.#refusals.add(isRefused, this.#isLow());
    if (verdict === 'overload') this.#retreat(sign.endedAt);
    else if (verdict === 'not-the-load') this.#forgetCeiling();
    else if (sign.result === 'good') this.#onGood(sign);
  }

  /** Content that was not what was published: known only after its attempt. */
  onBadContent(now: number): void {
    if (!this.#isFixed) this.#countTrouble(true, now);
  }

  /** Clearly below the last level that was too much. */
  #isLow(): boolean {
    return this.limit <= this.#ceiling * LOW;
  }

  #onGood({ firstByteMs, endedAt }: LoadSign): void {
    const mayShrink = this.limit > this.#least;
    const speed =
      firstByteMs === undefined ? 'usual' : this.#latency.judge(firstByteMs, this.limit, mayShrink);
    if (speed === 'too-slow') this.#retreat(endedAt);
    else if (speed === 'slow-anyway') this.#forgetCeiling();
    else this.#grow();
  }

  #retreat(now: number): void {
    // Nothing less can be asked: then more may be tried again.
    const isLeast = this.limit <= this.#least;
    this.#ceiling = isLeast ? Number.POSITIVE_INFINITY : this.limit;
    this.retreats += 1;
    this.#shrink(now, Math.floor(this.limit * RETREAT));
  }

  /** One more was one too many, as expected: no reason to retreat far. */
  #stepBack(now: number): void {
    this.#ceiling = this.limit;
    this.#shrink(now, this.limit - 1);
  }

  #shrink(now: number, limit: number): void {
    this.#since = now;
    this.#hasRetreated = true;
    this.#isProbing = false;
    this.#refusals.begin();
    this.#latency.begin();
    this.#set(Math.max(this.#least, limit));
  }

  /** It was not the load: nothing is known any more of what is too much. */
  #forgetCeiling(): void {
    this.#ceiling = Number.POSITIVE_INFINITY;
    this.#hasRetreated = false;
  }

  /**
   * One more after each object, which doubles the limit in a round trip; from the first retreat on, one more after a round
   * trip of them all, and below the ceiling, but for a rare probe.
   */
  #grow(): void {
    this.#successes += 1;
    const roundTrip = ANSWERS_PER_OBJECT * (this.#hasRetreated ? this.limit : 1);
    if (this.#isProbing) {
      // A whole round trip went well where it did not before.
      if (this.#successes < ANSWERS_PER_OBJECT * this.limit) return;
      this.#isProbing = false;
      this.#ceiling = Number.POSITIVE_INFINITY;
    }
    if (this.limit >= this.#max) return;
    const isAtCeiling = this.limit + 1 >= this.#ceiling;
    if (this.#successes < (isAtCeiling ? PROBE_AFTER : roundTrip)) return;
    this.#isProbing = isAtCeiling;
    this.#set(this.limit + 1);
  }

  /** Shrinks when the last results are bad enough; they count once. */
  #countTrouble(isTroubled: boolean, now: number): void {
    this.#troubles.push(isTroubled);
    if (this.#troubles.length > TROUBLE_RESULTS) this.#troubles.shift();
    if (!isTroubled || this.#troubles.length < TROUBLE_RESULTS) return;
    if (this.#troubles.filter(Boolean).length <= TROUBLE_RESULTS * TROUBLE_SHARE) return;
    this.#troubles = [];
    this.#shrink(now, Math.floor(this.limit * RETREAT));
  }

  #set(limit: number): void {
    this.#successes = 0;
    if (limit === this.limit) return;
    this.limit = limit;
    this.onChange(this.places);
  }
}
