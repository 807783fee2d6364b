/** How long to wait before each retry of a request (mechanisms A1, A2, Q4). */
import type { Clock } from '../clock.js';

/** The last three spread the herd: uniform over all of the step, over its upper half, or from the delay before. */
export type Strategy = 'fixed' | 'linear' | 'exponential' | 'full' | 'equal' | 'decorrelated';

export interface BackoffOptions {
  readonly strategy: Strategy;
  readonly baseDelayMs: number;
  /** From step to step, for all but fixed, linear and decorrelated. */
  readonly factor: number;
  readonly maxDelayMs: number;
}

/** Milliseconds before the next retry; to be called once per retry of one request. */
export function createBackoff(options: BackoffOptions, clock: Pick<Clock, 'random'>): () => number {
  const { strategy, baseDelayMs, factor, maxDelayMs } = options;
  let retry = 0;
  let before = baseDelayMs;
  return () => {
    retry += 1;
    const step = Math.min(maxDelayMs, baseDelayMs * factor ** (retry - 1));
    switch (strategy) {
      case 'fixed':
        return Math.min(maxDelayMs, baseDelayMs);
      case 'linear':
        return Math.min(maxDelayMs, baseDelayMs * retry);
      case 'exponential':
        return step;
      case 'full':
        return clock.random() * step;
      case 'equal':
        return step / 2 + (clock.random() * step) / 2;
      case 'decorrelated':
        before = Math.min(maxDelayMs, baseDelayMs + clock.random() * Math.max(0, before * 3 - baseDelayMs));
        return before;
    }
  };
}
