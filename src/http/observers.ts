/** The observers of the requests of a run: they count, measure, and set the concurrency. */
import type { RetryEvent } from '../model/observer.js';
import type { AttemptEnd, Layer } from './fetch.js';
import type { BreakerState } from './retry/breaker.js';
import type { LoadSign } from './transport/measure.js';

/** Counts attempts and requests, for the figures of the run. */
export interface RequestFigures {
  begun?(): void;
  ended?(attempt: AttemptEnd): void;
  onRetry?(event: RetryEvent): void;
  /** `error`: the error of a failed request. */
  onRequestEnd?(retries: number, error?: unknown): void;
  onBreaker?(host: string, state: BreakerState, leftMs: () => number): void;
}

/** Measures the time of waits and failed attempts. */
export interface RequestCosts {
  /** The layer around all attempts of a request. */
  readonly layer: Layer;
  /** The layer around one attempt. */
  readonly wire: Layer;
}

/** Measures the time of objects by stage. */
export interface RequestTimes {
  readonly layer: Layer;
  onAttempt(attempt: AttemptEnd): void;
}

/** Sets the number of objects in flight from the results of attempts. */
export interface LoadObserver {
  /** Objects in flight, at most. */
  readonly limit: number;
  onBegun(): void;
  onEnded(sign: LoadSign): void;
  /** `now`: time of the monotonic clock. */
  onBadContent(now: number): void;
  /** A retry begins (1) or stops (-1) waiting for the retry budget. */
  onWaiting(change: 1 | -1): void;
}
