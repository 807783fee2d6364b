/** The breaker of one host: closed, open until a time, half-open with a few probes, or stopped until the end of the run. */
import type { Clock } from '../../model/clock.js';
import { CryptodlError } from '../../model/errors.js';
import type { Failover } from '../throttle/failover.js';

export interface BreakerLimits {
  /** Failures in a row that open the breaker. */
  readonly breakerFailures: number;
  /** Successes in a row that close the breaker. */
  readonly breakerSuccesses: number;
  readonly breakerOpenMs: number;
  /** Least wait after a firewall refused this address, in milliseconds. A second refusal ends all requests to the host. */
  readonly blockedWaitMs: number;
}

export interface BreakerOptions extends BreakerLimits {
  readonly clock: Clock;
  /** `leftMs`: milliseconds before an open breaker lets a request through. */
  readonly onChange?: (host: string, state: BreakerState, leftMs: () => number) => void;
  readonly failover?: Failover | undefined;
  /** Advice for a host that cannot be reached. */
  readonly hint?: string | undefined;
}

export type BreakerState = 'closed' | 'open' | 'half-open' | 'stopped';

/** The breaker also opens at this share of failures within the window, if the window has enough results. */
const SHARE_TO_OPEN = 0.5;
const LEAST_RESULTS = 20;
const WINDOW_MS = 10_000;
/** Requests in flight at most while the breaker is half-open. */
const PROBES = 3;

/** `neutral`: a result that says nothing about the host, such as a 429, a refusal of one object (403) or an abort. */
export type Result = 'success' | 'failure' | 'blocked' | 'neutral';

export class Breaker {
  #state: BreakerState = 'closed';
  #failures = 0;
  /** Successes since the breaker opened, or since the last failure. */
  #successes = 0;
  #recent = new SlidingCounts();
  #openUntil = 0;
  #isBlocked = false;
  #probes = 0;
  /** Aborts when the breaker becomes `closed` or `stopped`, and so ends the waits for the breaker. */
  #over = new AbortController();

  constructor(
    private readonly host: string,
    private readonly options: BreakerOptions,
  ) {}

  readonly #leftMs = (): number => Math.max(0, this.#openUntil - this.options.clock.monotonic());

  /** Returns the function that takes the result of the request. Throws `breaker-open`, or `wait-too-long` for a stopped host. */
  enter(): (result: Result) => void {
    if (this.#state === 'stopped')
      throw new CryptodlError('wait-too-long', `${this.host} refuses this address, also after a wait`, {
        hint: 'a firewall in front of it answers 403: try again later, or from another network',
      });
    if (this.#state === 'closed') return (result) => this.#closedResult(result);
    const waitMs = this.#leftMs();
    if (waitMs > 0 || this.#probes >= PROBES) {
      const state = `${this.host} ${this.#isBlocked ? 'refuses this address' : 'keeps failing'}`;
      throw new CryptodlError('breaker-open', `${state}: the host gets no requests for now`, {
        ...(this.#isBlocked ? { cause: new CryptodlError('address-blocked', state) } : {}),
        retryAfterMs: Math.max(waitMs, this.options.breakerOpenMs / 10),
        over: this.#over.signal,
      });
    }
    this.#become('half-open');
    this.#probes += 1;
    const isAfterBlock = this.#isBlocked;
    return (result) => {
      this.#probes -= 1;
      this.#probeResult(result, isAfterBlock);
    };
  }

  #closedResult(result: Result): void {
    if (result === 'neutral') return;
    if (this.#state !== 'closed') {
      // The request was in flight when the breaker opened. Its failure does not open the breaker again. Its success counts:
      // it shows that the host refused only a surplus of requests, and the load is lower by now.
      if (result !== 'success') this.#successes = 0;
      else if (!this.#isBlocked) this.#onServed();
      return;
    }
    this.#failures = result === 'success' ? 0 : this.#failures + 1;
    const recent = this.#recent.add(this.options.clock.monotonic(), result === 'failure');
    const failsTooOften =
      recent.results >= LEAST_RESULTS && recent.failures >= recent.results * SHARE_TO_OPEN;
    if (result === 'blocked') this.#block();
    else if (this.#failures >= this.options.breakerFailures || failsTooOften)
      this.#open(this.options.breakerOpenMs);
  }

  /**
   * Takes the result of a probe. If other probes have closed the breaker, the result is ignored. If they have opened it
   * again, a failure counts, but a success does not. `isAfterBlock`: the probe was sent after the wait that follows a refusal
   * of this address. Refusals of probes that were sent together count as one.
   */
  #probeResult(result: Result, isAfterBlock: boolean): void {
    if (this.#state === 'closed' || this.#state === 'stopped' || result === 'neutral') return;
    if (result === 'failure') this.#open(this.options.breakerOpenMs);
    else if (result === 'blocked' && isAfterBlock && this.#isBlocked) this.#become('stopped');
    else if (result === 'blocked') this.#block();
    else if (this.#state === 'half-open') {
      this.#isBlocked = false;
      this.#onServed();
    }
  }

  #onServed(): void {
    this.#successes += 1;
    if (this.#successes < this.options.breakerSuccesses) return;
    this.#failures = 0;
    this.#recent = new SlidingCounts();
    this.#become('closed');
  }

  #block(): void {
    this.#isBlocked = true;
    this.#open(Math.max(this.options.breakerOpenMs, this.options.blockedWaitMs));
  }

  #open(delayMs: number): void {
    // A late failure does not shorten the wait after a refusal of this address.
    this.#openUntil = Math.max(this.#openUntil, this.options.clock.monotonic() + delayMs);
    this.#successes = 0;
    this.#become('open');
  }

  #become(state: BreakerState): void {
    if (state === this.#state) return;
    this.#state = state;
    if (state === 'closed' || state === 'stopped') {
      this.#over.abort();
      this.#over = new AbortController();
    }
    this.options.onChange?.(this.host, state, this.#leftMs);
  }
}

const SLOTS = 10;
const SLOT_MS = WINDOW_MS / SLOTS;

interface Slot {
  readonly number: number;
  results: number;
  failures: number;
}

/** Counts results within a sliding window, in ten slots, so that the cost does not grow with the number of results. */
class SlidingCounts {
  #slots: Slot[] = [];

  add(nowMs: number, isFailure: boolean): { results: number; failures: number } {
    const number = Math.floor(nowMs / SLOT_MS);
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
