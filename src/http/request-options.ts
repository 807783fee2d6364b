/** The options of requests and of their retries, as a user gives them. */
import type { LimitOptions } from './exchange-hosts.js';
import type { BackoffOptions } from './retry/retry.js';
import type { SocketOptions } from './transport/sockets.js';

/** The options of requests. */
export interface HttpOptions extends LimitOptions, SocketOptions {
  readonly headersTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly totalTimeoutMs: number;
  /** The longest pause of a bucket, and the longest wait for a retry or a breaker. */
  readonly maxWaitMs: number;
  readonly breakerFailures: number;
  readonly breakerSuccesses: number;
  readonly breakerOpenMs: number;
  readonly blockedWaitMs: number;
  readonly bwlimitBytesPerSecond: number | undefined;
}

/** The options of retries, as the user gives them. */
interface RetryChoice {
  readonly retryStrategy: BackoffOptions['strategy'];
  readonly retries: number;
  readonly retryDelayMs: number;
  readonly retryFactor: number;
  readonly retryMaxDelayMs: number;
}

export function backoffOf(options: RetryChoice): BackoffOptions & { readonly retries: number } {
  return {
    strategy: options.retryStrategy,
    retries: options.retries,
    baseDelayMs: options.retryDelayMs,
    factor: options.retryFactor,
    maxDelayMs: options.retryMaxDelayMs,
  };
}
