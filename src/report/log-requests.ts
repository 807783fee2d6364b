/** The lines of the log about requests: one per attempt, and one per retry. */
import type { AttemptEnd } from '../http/fetch.js';
import { CryptodlError } from '../model/errors.js';
import type { RetryEvent } from '../model/observer.js';
import type { Log } from './log.js';

export function logAttempt(
  { logger }: Log,
  { request, attemptId, sentAt, endedAt, firstByteMs, error }: AttemptEnd,
): void {
  if (!logger.isLevelEnabled('debug')) return;
  const code = error instanceof CryptodlError ? error.code : undefined;
  const upstream = new URL(request.url).host;
  const traceId = attemptId.split('/')[0];
  const ms = Math.round(endedAt - sentAt);
  logger.debug({ traceId, attemptId, upstream, url: request.url, ms, firstByteMs, error: code }, 'attempt');
}

/** Returns the fields of the line, which are also those of the event of `--json`. */
export function logRetry({ logger }: Log, event: RetryEvent): object {
  const fields = {
    traceId: event.traceId,
    attemptId: event.attemptId,
    retry_attempt: event.retry,
    original_error: event.error.code,
    upstream: new URL(event.url).host,
    url: event.url,
    delayMs: Math.round(event.delayMs),
  };
  logger.info({ ...fields, message: event.error.message }, 'retry');
  return fields;
}
