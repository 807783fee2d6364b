/** The state of the hosts of a run at a moment: permits of the buckets, and breakers. */
import type { BreakerState } from './retry/breaker.js';

export interface BucketState {
  readonly name: string;
  /** Requests that wait for a permit. */
  readonly waiting: number;
  /** Milliseconds before the first of them can get its permit; 0 if no request waits. */
  readonly nextMs: number;
  /** Milliseconds of a pause that are left, after a refusal (429, 418). */
  readonly pausedMs: number;
  /** Undefined for a rate. */
  readonly window: WindowState | undefined;
  readonly group?: GroupState;
}

export interface GroupState {
  readonly name: string;
  /** Programs that were seen last, this one included. */
  readonly members: number;
  /** False while Redis cannot be used. */
  readonly isShared: boolean;
}

export interface WindowState {
  readonly used: number;
  readonly permits: number;
  /** Milliseconds until the window ends. */
  readonly leftMs: number;
}

export interface OpenBreaker {
  readonly host: string;
  readonly state: Exclude<BreakerState, 'closed'>;
  /** Milliseconds before the host gets a request again; 0 for a breaker that is not open. */
  readonly leftMs: number;
}

/** A number of objects in flight below the maximum, and the reason why it does not grow. */
export interface Settled {
  readonly level: number;
  readonly most: number;
  readonly why: 'refused' | 'troubled' | 'no-faster-with-more';
}

export interface RetryBudgetState {
  /** Retries that the budget allows at once now. */
  readonly retriesLeft: number;
  readonly runningRetries: number;
  readonly mostRunningRetries: number;
  readonly waitingRetries: number;
}

export interface HostStates {
  /** The buckets that the run has used. */
  readonly buckets: readonly BucketState[];
  /** The breakers that are not closed. */
  readonly breakers: readonly OpenBreaker[];
  /** The proxies that do not work, of several. */
  readonly deadProxies?: readonly string[];
  /** By host. */
  readonly retryBudgets: Readonly<Record<string, RetryBudgetState>>;
}
