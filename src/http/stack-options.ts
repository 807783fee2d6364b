/** What a stack of layers is made from, and what it is. */
import type { Proxies } from '../files/proxies.js';
import type { Observer, RetryEvent } from '../model/observer.js';
import type { AttemptEnd, Fetch, Layer } from '../model/fetch.js';
import type { ProxyFigures } from './proxies/proxy-lane.js';
import type { BreakerLimits, BreakerState } from './retry/host-breaker.js';
import type { RetryBudget } from './retry/budget.js';
import type { BackoffOptions } from './retry/backoff.js';
import type { Throttle } from './throttle/throttle.js';
import type { ThrottleSetup } from './throttle/server-buckets.js';
import type { RequestFollower } from './transport/measure.js';
import type { LoadSign } from './load-sign.js';
import type { Pools } from './transport/pool.js';
import type { SocketOptions } from './transport/sockets.js';
import type { Deadlines } from './transport/attempt-watch.js';

type HttpOptions = ThrottleSetup['options'] &
  SocketOptions &
  BackoffOptions &
  Deadlines &
  BreakerLimits & { readonly retries: number; readonly bwlimitBytesPerSecond: number | undefined };

// The observers of the requests of a run: they count, measure, and set the concurrency.

export interface RequestFigures {
  begun?(): void;
  ended?(attempt: AttemptEnd): void;
  onRetry?(event: RetryEvent): void;
  onRequestEnd?(retries: number, error?: unknown): void;
  onBreaker?(host: string, state: BreakerState, leftMs: () => number): void;
}

/** Sets the number of objects in flight from the results of attempts. */
interface LoadObserver {
  /** Objects in flight, at most. */
  readonly limit: number;
  onBegun(): void;
  onEnded(sign: LoadSign): void;
  /** `now`: time of the monotonic clock. */
  onBadContent(now: number): void;
  /** A retry begins (1) or stops (-1) waiting for the retry budget. */
  onWaiting(change: 1 | -1): void;
}

export interface StackOptions extends ThrottleSetup {
  readonly options: HttpOptions;
  readonly observer: Observer;
  readonly figures: RequestFigures;
  readonly followers: readonly RequestFollower[];
  /** Undefined: nothing sets the number of requests at once. */
  readonly concurrency?: LoadObserver;
  /** The retry budgets by host, for readers. */
  readonly budgets?: Map<string, RetryBudget>;
  readonly proxies: Proxies;
  /** Whether the event loop of this process is late. */
  readonly isLate: () => boolean;
  readonly signal: AbortSignal;
  /** Aborts when the run may no longer wait. */
  readonly waitSignal?: AbortSignal | undefined;
  /** Signs each attempt, because a signature has a date. Innermost, so that no observer sees it. */
  readonly sign?: Layer | undefined;
  /** One attempt; by default through the sockets of undici. */
  readonly wire?: Fetch | undefined;
}

export interface Stack {
  readonly fetch: Fetch;
  readonly throttle: Pick<Throttle, 'figures' | 'setBudget' | 'states'>;
  readonly pools: Pick<Pools, 'close' | 'dns' | 'use'>;
  /** One for each of several proxies. */
  readonly proxies: () => readonly ProxyFigures[];
  close(): Promise<void>;
}

export type AttemptOptions = Omit<
  StackOptions,
  'figures' | 'followers' | 'concurrency' | 'isLate' | 'waitSignal'
>;
