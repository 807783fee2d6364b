import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import type { ErrorCode } from '../errors.js';
import type { Layer } from '../fetch.js';
import { SlidingCounts } from './sliding-counts.js';

export interface BreakerOptions {
  readonly clock: Clock;
  readonly openMs: number;
}

/** Failures in a row, with no success between, that open the breaker. */
const FAILURES_TO_OPEN = 5;
/** Or this share of the results within a window, when there are enough to tell. */
const WINDOW_MS = 10_000;
const RESULTS_TO_TELL = 20;
const SHARE_TO_OPEN = 0.5;
/** Requests that may be under way while it is half-open. */
const PROBES = 3;

/** The state of one host: closed, open until a moment, or half-open with a few probes. */
class Breaker {
  readonly #options: BreakerOptions;
  #failures = 0;
  #recent = new SlidingCounts(WINDOW_MS);
  #openUntil: number | undefined;
  #probes = 0;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  /** Throws `breaker-open`, or returns the function that takes the result. */
  enter(host: string): (result: 'success' | 'failure' | 'neutral') => void {
    if (this.#openUntil === undefined) {
      return (result) => {
        this.#closedResult(result);
      };
    }
    const waitMs = this.#openUntil - this.#options.clock.monotonic();
    if (waitMs > 0 || this.#probes >= PROBES) {
      throw new CryptodlError('breaker-open', `${host} keeps failing and is left alone`, {
        retryAfterMs: Math.max(waitMs, this.#options.openMs / 10),
      });
    }
    this.#probes += 1;
    return (result) => {
      this.#probes -= 1;
      if (result === 'success') this.#close();
      // A late probe does not open again what another one has closed.
      else if (result === 'failure' && this.#openUntil !== undefined) this.#open();
    };
  }

  #closedResult(result: 'success' | 'failure' | 'neutral'): void {
    if (result === 'neutral') return;
    this.#failures = result === 'success' ? 0 : this.#failures + 1;
    const recent = this.#recent.add(this.#options.clock.monotonic(), result === 'failure');
    const failsTooOften =
      recent.results >= RESULTS_TO_TELL && recent.failures >= recent.results * SHARE_TO_OPEN;
    // Requests that were under way when it opened do not open it again.
    if (this.#openUntil === undefined && (this.#failures >= FAILURES_TO_OPEN || failsTooOften)) this.#open();
  }

  #open(): void {
    this.#openUntil = this.#options.clock.monotonic() + this.#options.openMs;
  }

  #close(): void {
    this.#openUntil = undefined;
    this.#failures = 0;
    this.#recent = new SlidingCounts(WINDOW_MS);
  }
}

const NEVER_ANSWERED: ReadonlySet<ErrorCode> = new Set([
  'connect-failed',
  'dns-failed',
  'connect-timeout',
  'interrupted',
]);

function enterOrGiveUp(known: Breaker, host: string, isOnline: boolean): ReturnType<Breaker['enter']> {
  try {
    return known.enter(host);
  } catch (error) {
    if (isOnline) throw error;
    throw new CryptodlError('unreachable', `${host} cannot be reached, and no other host answered either`, {
      cause: error,
      hint: 'check the network, --archive-url and --listing-url',
    });
  }
}

/** Stops asking a host that keeps failing. A 404 is an answer; refused content and aborts say nothing about a host. */
export function breaker(options: BreakerOptions): Layer {
  const breakers = new Map<string, Breaker>();
  // While no host has ever answered, it is our network that is down: waiting for it would look like hanging.
  let isOnline = false;
  return (next) => async (request, context) => {
    const { host } = new URL(request.url);
    const known = breakers.get(host) ?? new Breaker(options);
    breakers.set(host, known);
    const leave = enterOrGiveUp(known, host, isOnline);
    try {
      const response = await next(request, context);
      isOnline = true;
      leave('success');
      return response;
    } catch (error) {
      if (!(error instanceof CryptodlError) || !NEVER_ANSWERED.has(error.code)) isOnline = true;
      leave(error instanceof CryptodlError && error.hostFault ? 'failure' : 'neutral');
      throw error;
    }
  };
}
