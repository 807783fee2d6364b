/** The state of the hosts of a run at a moment: permits of the buckets, and breakers. */
import type { BreakerState } from './retry/host-breaker.js';
import type { RetryBudget } from './retry/budget.js';
import type { Throttle } from './throttle/throttle.js';

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

export interface HostStates {
  /** The buckets that the run has used. */
  readonly buckets: Throttle['states'];
  /** The breakers that are not closed. */
  readonly breakers: readonly OpenBreaker[];
  /** The proxies that do not work, of several. */
  readonly deadProxies?: readonly string[];
  /** By host. */
  readonly retryBudgets: Readonly<Record<string, RetryBudget['state']>>;
}
