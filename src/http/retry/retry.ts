/** The retry layer and its delays. */
import type { Clock } from '../../model/clock.js';
import { CryptodlError, waitTooLong, type ErrorCode } from '../../model/errors.js';
import type { RetryEvent } from '../../model/observer.js';
import { durationText } from '../../model/units.js';
import type { Fetch, FetchContext, FetchRequest, Layer } from '../../model/fetch.js';
import type { Failover } from '../throttle/failover.js';
import { createBackoff, type BackoffOptions } from './backoff.js';

export interface RetryOptions extends BackoffOptions {
  readonly clock: Clock;
  readonly retries: number;
  /** Longest delay before a retry, and longest wait for a limit or an open breaker, in milliseconds. */
  readonly maxWaitMs: number;
  readonly failover?: Failover | undefined;
  /** Ends waits for permits, retries and bans when it aborts. The requests fail with its reason. */
  readonly waitSignal?: AbortSignal | undefined;
  readonly onRetry?: (event: RetryEvent) => void;
  /** Called once at the end of each request, with the number of its retries and its error. */
  readonly onEnd?: (retries: number, error?: unknown) => void;
}

/** After these errors, the request only waits, and no attempt is used up: nothing was sent, or the host serves nothing now. */
const WAITS: ReadonlySet<ErrorCode> = new Set(['breaker-open', 'rate-limited', 'banned', 'address-blocked']);
/** After these errors, the request fails at once if another source has the data. */
const NOT_SENT: ReadonlySet<ErrorCode> = new Set(['breaker-open', 'address-blocked']);
/** After these errors, the bucket itself waits. This layer adds only jitter, so that the requests do not start together. */
const PACED: ReadonlySet<ErrorCode> = new Set(['rate-limited', 'banned']);
/** An attempt that received at least so many new bytes of the body resets the count of retries. */
const PROGRESS_BYTES = 8 * 1024 * 1024;
/** After these errors, the content is requested twice more, past caches, even if `retries` is smaller. */
const WRONG_CONTENT: ReadonlySet<ErrorCode> = new Set([
  'checksum-mismatch',
  'sidecar-stale',
  'zip-truncated',
  'not-a-zip',
]);
const WRONG_CONTENT_RETRIES = 2;
/** After these errors, caches must revalidate, because a cache may have damaged the body. */
const BAD_CONTENT: ReadonlySet<ErrorCode> = new Set([...WRONG_CONTENT, 'body-damaged']);

export const isBadContent = ({ code }: CryptodlError): boolean => BAD_CONTENT.has(code);

/** The retry layer. An error after which it retries or gives up carries the number of attempts. */
export function retryLayer(options: RetryOptions): Layer {
  return (next) => async (request, context) => {
    const tries = new RequestAttempts(options, request, context);
    try {
      const response = await tries.run(next);
      options.onEnd?.(tries.retries);
      return response;
    } catch (error) {
      options.onEnd?.(tries.retries, error);
      throw error;
    }
  };
}

class RequestAttempts {
  readonly #context: FetchContext;
  readonly #backoff: () => number;
  #attempt = 1;
  #failures = 0;
  #wrongContents = 0;
  #bypassCache: boolean;
  #waitingSince: number | undefined;
  /** Attempts that this layer began, including those that only had to wait. */
  #begun = 0;
  #partial: FetchRequest['partial'];
  /** The received bytes of the body when progress last reset the count of retries. */
  #mostBytes = 0;

  constructor(
    private readonly options: RetryOptions,
    private readonly request: FetchRequest,
    context: FetchContext,
  ) {
    const { waitSignal } = options;
    this.#bypassCache = request.bypassCache === true;
    this.#context = waitSignal === undefined ? context : { ...context, waitSignal };
    this.#backoff = createBackoff(options, options.clock);
  }

  async run(next: Fetch): ReturnType<Fetch> {
    let again: FetchContext['again'];
    let failure: CryptodlError | undefined;
    for (;;) {
      this.#begun += 1;
      try {
        return await next(this.#nextRequest(), { ...this.#context, attemptId: this.#attemptId(), again });
      } catch (error) {
        if (!isRetried(error)) {
          if (wasSent(error) && !this.#context.signal.aborted)
            throw error.with({ attempts: Math.max(error.attempts, this.#attempt) });
          throw this.#endedWaiting(error, failure);
        }
        failure = error.with({ attempts: this.#attempt });
      }
      const delayMs = this.#delayAfter(failure);
      this.#report(failure, delayMs);
      await this.#sleep(delayMs, failure);
      again = pacedBy(failure) ?? 'retry';
    }
  }

  /** Sleeps; ends early when the reason to wait is over. */
  async #sleep(delayMs: number, failure: CryptodlError): Promise<void> {
    const { over } = failure;
    const { signal, waitSignal = signal, onWait } = this.#context;
    const endWait = onWait?.(
      pacedBy(failure) ?? (delayMs === failure.retryAfterMs ? 'retry-after' : 'back-off'),
    );
    const ended = over === undefined ? waitSignal : AbortSignal.any([waitSignal, over]);
    try {
      await this.options.clock.sleep(delayMs, ended);
    } catch {
      // If only `over` has aborted, the next attempt follows at once.
      if (waitSignal.aborted) throw this.#endedWaiting(waitSignal.reason, failure);
    } finally {
      endWait?.();
    }
  }

  /** An error for a wait that the wait signal ended, with the failure that caused the wait. Any other error is returned as it is. */
  #endedWaiting(reason: unknown, failure: CryptodlError | undefined): unknown {
    const { signal, waitSignal } = this.#context;
    const isOurs = reason === waitSignal?.reason && !signal.aborted;
    if (!isOurs || !(reason instanceof CryptodlError)) return reason;
    const what = failure === undefined ? 'waited to be sent' : `waited: ${failure.message}`;
    return new CryptodlError(reason.code, `${reason.message}; the request still ${what}`, {
      cause: failure,
      attempts: failure?.attempts ?? 1,
    });
  }

  get retries(): number {
    return this.#attempt - 1;
  }

  #attemptId(): string {
    return `${this.#context.traceId}/${this.#begun}`;
  }

  #nextRequest(): FetchRequest {
    if (!this.#bypassCache && this.#partial === undefined) return this.request;
    return { ...this.request, bypassCache: this.#bypassCache, partial: this.#partial };
  }

  /** Milliseconds before the next attempt. Throws if there is none. */
  #delayAfter(error: CryptodlError): number {
    const { retries, maxWaitMs, failover } = this.options;
    if (failover?.isPossible === true && NOT_SENT.has(error.code)) throw givenUp(error);
    if (WAITS.has(error.code)) return this.#waitMs(error);
    this.#waitingSince = undefined;
    this.#partial = error.partial;
    this.#forgiveProgress(error.partial?.bytes ?? 0);
    this.#bypassCache ||= isBadContent(error);
    if (WRONG_CONTENT.has(error.code)) {
      this.#wrongContents += 1;
      if (this.#wrongContents > WRONG_CONTENT_RETRIES) throw givenUp(error);
      this.#attempt += 1;
      return this.#backoff();
    }
    this.#failures += 1;
    if (this.#failures > retries) throw givenUp(error);
    const delayMs = Math.max(this.#backoff(), error.retryAfterMs ?? 0);
    if (failover !== undefined && delayMs > failover.longestWaitMs()) throw givenUp(error);
    if (delayMs > maxWaitMs) throw tooLong(error, maxWaitMs, this.#attempt);
    this.#attempt += 1;
    return delayMs;
  }

  /** Over a bad connection, a large body comes in pieces. Progress resets the count of retries. */
  #forgiveProgress(bytes: number): void {
    if (bytes < this.#mostBytes + PROGRESS_BYTES) return;
    this.#mostBytes = bytes;
    this.#failures = 0;
  }

  /** The wait for an open breaker is part of its error. Jitter spreads the requests. */
  #waitMs(error: CryptodlError): number {
    const { clock, retryDelayMs, maxWaitMs } = this.options;
    const leastMs = PACED.has(error.code) ? 0 : (error.retryAfterMs ?? 0);
    const delayMs = leastMs + clock.random() * retryDelayMs;
    this.#waitingSince ??= clock.monotonic();
    const waitedMs = clock.monotonic() - this.#waitingSince + delayMs;
    if (waitedMs > maxWaitMs) throw tooLong(error, maxWaitMs, this.#attempt);
    return delayMs;
  }

  #report(error: CryptodlError, delayMs: number): void {
    this.options.onRetry?.({
      traceId: this.#context.traceId,
      attemptId: this.#attemptId(),
      url: this.request.url,
      retry: this.#failures + this.#wrongContents,
      usesAttempt: !WAITS.has(error.code),
      error,
      delayMs: Math.max(delayMs, PACED.has(error.code) ? (error.retryAfterMs ?? 0) : 0),
    });
  }
}

/** The reason of a wait that uses no attempt. */
function pacedBy({ code }: CryptodlError): 'pause' | 'breaker' | undefined {
  if (PACED.has(code)) return 'pause';
  return WAITS.has(code) ? 'breaker' : undefined;
}

/** Codes that end all waiting. */
const FINAL: ReadonlySet<ErrorCode> = new Set(['wait-too-long', 'time-over']);

/** Whether the error is the result of an attempt, not of a wait that ended before it. */
const wasSent = (error: unknown): error is CryptodlError =>
  error instanceof CryptodlError && !FINAL.has(error.code);

const isRetried = (error: unknown): error is CryptodlError =>
  wasSent(error) && error.retryable && !error.isGivenUp;

const givenUp = (error: CryptodlError): CryptodlError => error.with({ isGivenUp: true });

function tooLong(error: CryptodlError, maxWaitMs: number, attempts: number): CryptodlError {
  return waitTooLong(
    `another attempt would wait longer than --max-wait ${durationText(maxWaitMs)} allows: ${error.message}`,
    error,
  ).with({ attempts });
}
