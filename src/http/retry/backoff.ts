/** The delays before the retries of a request. */
import type { Clock } from '../../model/clock.js';

/** `full` has a random delay between 0 and the step of `exponential`. */
export type Strategy = 'fixed' | 'linear' | 'exponential' | 'full';

export interface BackoffOptions {
  readonly retryStrategy: Strategy;
  readonly retryDelayMs: number;
  /** Growth per step, for `exponential` and `full`. */
  readonly retryFactor: number;
  readonly retryMaxDelayMs: number;
}

/** Returns a function that gives the milliseconds before the next retry; it is called once per retry of one request. */
export function createBackoff(options: BackoffOptions, clock: Pick<Clock, 'random'>): () => number {
  const { retryStrategy, retryDelayMs, retryFactor, retryMaxDelayMs } = options;
  let retries = 0;
  return () => {
    retries += 1;
    const step = Math.min(retryMaxDelayMs, retryDelayMs * retryFactor ** (retries - 1));
    switch (retryStrategy) {
      case 'fixed':
        return Math.min(retryMaxDelayMs, retryDelayMs);
      case 'linear':
        return Math.min(retryMaxDelayMs, retryDelayMs * retries);
      case 'exponential':
        return step;
      case 'full':
        return clock.random() * step;
    }
  };
}
