import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import type { ErrorCode } from '../errors.js';
import type { FetchRequest, Layer } from '../fetch.js';
import type { RetryEvent } from '../errors.js';
import { durationText } from '../units.js';

export interface RetryOptions {
  readonly clock: Clock;
  /** Extra tries. */
  readonly retries: number;
  readonly baseDelayMs: number;
  readonly factor: number;
  readonly maxDelayMs: number;
  /** Longest time a request may spend waiting for a limit or an open breaker. */
  readonly maxWaitMs: number;
  readonly onRetry?: (event: RetryEvent) => void;
}

/** Refusals before anything was sent, or by a limit: they use up no attempt, they only wait. */
const WAITS: ReadonlySet<ErrorCode> = new Set(['breaker-open', 'rate-limited']);
/** Content that its publisher contradicts is asked for again twice, past caches, however few retries there are. */
const ASK_AGAIN: ReadonlySet<ErrorCode> = new Set(['checksum-mismatch', 'zip-truncated', 'not-a-zip']);
const ASK_AGAIN_TIMES = 2;

/** The one retry layer. The rejected error carries the number of attempts. */
export function retry(options: RetryOptions): Layer {
  return (next) => async (request, context) => {
    let current: FetchRequest = request;
    let failures = 0;
    let refusals = 0;
    let refusedSince: number | undefined;
    for (let attempt = 1; ;) {
      try {
        return await next(current, { ...context, attempt });
      } catch (error) {
        if (!isRetried(error)) throw error;
        error.attempts = attempt;
        let delayMs: number;
        if (WAITS.has(error.code)) {
          delayMs = waitMs(error, options);
          refusedSince ??= options.clock.monotonic();
          const waitedMs = options.clock.monotonic() - refusedSince + delayMs;
          if (waitedMs > options.maxWaitMs) throw tooLong(error, options.maxWaitMs, attempt);
        } else if (ASK_AGAIN.has(error.code)) {
          refusals += 1;
          if (refusals > ASK_AGAIN_TIMES) throw givenUp(error);
          delayMs = backoffMs(refusals, options);
          attempt += 1;
          current = { ...request, bypassCache: true };
        } else {
          failures += 1;
          if (failures > options.retries) throw givenUp(error);
          delayMs = Math.max(backoffMs(failures, options), error.retryAfterMs ?? 0);
          if (delayMs > options.maxWaitMs) throw tooLong(error, options.maxWaitMs, attempt);
          attempt += 1;
        }
        options.onRetry?.({
          traceId: context.traceId,
          url: request.url,
          retry: failures + refusals,
          usesAttempt: !WAITS.has(error.code),
          error,
          delayMs,
        });
        await options.clock.sleep(delayMs, context.signal);
      }
    }
  };
}

function isRetried(error: unknown): error is CryptodlError {
  return (
    error instanceof CryptodlError && error.retryable && error.code !== 'wait-too-long' && !error.isGivenUp
  );
}

function givenUp(error: CryptodlError): CryptodlError {
  error.isGivenUp = true;
  return error;
}

/** Full jitter: uniform between nothing and the exponential step (AWS, "Exponential backoff and jitter"). */
function backoffMs(retryNumber: number, options: RetryOptions): number {
  const step = Math.min(options.maxDelayMs, options.baseDelayMs * options.factor ** (retryNumber - 1));
  return options.clock.random() * step;
}

/** The bucket paces a 429 by itself; the breaker says when it may be asked again. Jitter spreads the herd. */
function waitMs(error: CryptodlError, options: RetryOptions): number {
  const asked = error.code === 'breaker-open' ? (error.retryAfterMs ?? 0) : 0;
  return asked + options.clock.random() * options.baseDelayMs;
}

function tooLong(error: CryptodlError, maxWaitMs: number, attempts: number): CryptodlError {
  const longer = new CryptodlError(
    'wait-too-long',
    `waited as long as --max-wait ${durationText(maxWaitMs)} allows: ${error.message}`,
    {
      cause: error,
      hint: 'run the same command later, or with a longer --max-wait',
    },
  );
  longer.attempts = attempts;
  return longer;
}
