/** What waits and failed attempts cost a run in wall time (mechanisms Z15, Z18). */
import type { Clock } from '../model/clock.js';
import { CryptodlError } from '../model/errors.js';
import type { ErrorCode } from '../model/errors.js';
import type { Fetch, Layer, OnWait, Wait } from '../http/fetch.js';

/** Whole milliseconds. All of them together are at most the time in which there was any request. */
export interface CostFigures {
  readonly waits: Readonly<Partial<Record<Wait, number>>>;
  /** Attempts on the wire that failed. */
  readonly failures: Readonly<Partial<Record<ErrorCode, number>>>;
}

/** No failures of the wire: the run was ended, or the host asked to wait. */
const NO_FAILURES: ReadonlySet<ErrorCode> = new Set(['interrupted', 'rate-limited', 'banned']);

/**
 * The sum of waits that are side by side is no wall time. Here the requests that are on the wire or wait divide each moment
 * among them: of thirty requests of which 29 wait for a permit, a second of waiting costs 29/30 s; a request that waits
 * alone costs the whole second.
 */
export class Costs {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Requests that are on the wire or wait. */
  #requests = 0;
  /** The share of one request that has been there all the time. */
  #shareMs = 0;
  #at: number;
  readonly #waiting: Partial<Record<Wait, number>> = {};
  readonly #waits: Partial<Record<Wait, number>> = {};
  readonly #failures: Partial<Record<ErrorCode, number>> = {};

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#at = clock.monotonic();
  }

  /** Requests that wait for it now. */
  waiting(what: Wait): number {
    return this.#waiting[what] ?? 0;
  }

  get figures(): CostFigures {
    return { waits: rounded(this.#waits), failures: rounded(this.#failures) };
  }

  /** Outermost: the layers below tell of their waits. */
  readonly layer: Layer = (next) => (request, context) => next(request, { ...context, onWait: this.#onWait });

  /** Around one attempt on the wire. */
  readonly wire =
    (next: Fetch): Fetch =>
    async (request, context) => {
      const end = this.#begin();
      try {
        const response = await next(request, context);
        end();
        return response;
      } catch (error) {
        const ms = end();
        if (error instanceof CryptodlError && !NO_FAILURES.has(error.code))
          this.#failures[error.code] = (this.#failures[error.code] ?? 0) + ms;
        throw error;
      }
    };

  readonly #onWait: OnWait = (what) => {
    const end = this.#begin();
    this.#waiting[what] = this.waiting(what) + 1;
    return () => {
      this.#waiting[what] = this.waiting(what) - 1;
      this.#waits[what] = (this.#waits[what] ?? 0) + end();
    };
  };

  /** The returned function ends it and returns its share. */
  #begin(): () => number {
    const from = this.#advance();
    this.#requests += 1;
    return () => {
      const ms = this.#advance() - from;
      this.#requests -= 1;
      return ms;
    };
  }

  #advance(): number {
    const now = this.#clock.monotonic();
    if (this.#requests > 0) this.#shareMs += (now - this.#at) / this.#requests;
    this.#at = now;
    return this.#shareMs;
  }
}

/** Without what cost nothing. */
function rounded<Key extends string>(costs: Partial<Record<Key, number>>): Partial<Record<Key, number>> {
  const entries = (Object.entries(costs) as [Key, number][]).map(
    ([key, ms]) => [key, Math.round(ms)] as const,
  );
  return Object.fromEntries(entries.filter(([, ms]) => ms > 0)) as Partial<Record<Key, number>>;
}
