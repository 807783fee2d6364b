/** The structured log of a run (pino), for `--log-file` and `--log-level`. */
import { closeSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { destination, pino, type Logger } from 'pino';
import { makeFolderSync } from '../../files/disk.js';
import type { AttemptEnd } from '../../model/fetch.js';
import { CryptodlError, usage } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import type { RetryEvent, Observer } from '../../model/observer.js';
import type { Options, FlagName } from '../../plan/options/flags.js';
import { reasonOf } from '../../text/path-faults.js';
import { linesText, printLines, shownPath } from '../../text/printable.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';

export interface Log {
  readonly logger: Logger;
  close(): void;
}

/** The log of `--log-file` and `--log-level`; without a file, a level other than info goes to stderr. Its warnings go to stderr. */
export function openLogOf(
  { logFile, logLevel: level }: Options<'log-file' | 'log-level'>,
  { stderr }: Pick<Io, 'stderr'>,
): Log {
  if (logFile === undefined && level === 'info')
    return { logger: pino({ level: 'silent' }), close: () => undefined };
  const file = logFile === undefined ? undefined : openForAppend(logFile);
  const output = destination({ dest: file ?? 2, sync: true });
  let isBroken = false;
  // The first failed write ends the log; the run goes on.
  const onError = (error: unknown): void => {
    if (isBroken) return;
    isBroken = true;
    const why = reasonOf(error);
    printLines(stderr, [`warning: --log-file ${logFile} cannot be written (${why}): the log ends here`]);
  };
  if (file !== undefined) output.on('error', onError);
  // linesText masks passwords and escapes control characters.
  const write = (line: string): void => {
    if (!isBroken) output.write(linesText([JSON.parse(line) as object]));
  };
  return {
    logger: pino({ level, base: null }, { write }),
    close: () => {
      if (!isBroken) output.flushSync();
      if (file !== undefined) closeSync(file);
    },
  };
}

function openForAppend(path: string): number {
  try {
    makeFolderSync(dirname(path));
    return openSync(path, 'a');
  } catch (error) {
    throw usage(
      `--log-file ${shownPath(path)} cannot be written (${reasonOf(error)})`,
      'choose another --log-file, or leave it out',
    );
  }
}

// The lines about requests: one per attempt, and one per retry.

export function logAttempt(
  { logger }: Log,
  { request, attemptId, sentAtMs, endedAtMs, firstByteMs, error }: AttemptEnd,
): void {
  if (!logger.isLevelEnabled('debug')) return;
  const code = error instanceof CryptodlError ? error.code : undefined;
  const upstream = new URL(request.url).host;
  const traceId = attemptId.split('/')[0];
  const ms = Math.round(endedAtMs - sentAtMs);
  logger.debug({ traceId, attemptId, upstream, url: request.url, ms, firstByteMs, error: code }, 'attempt');
}

/** Returns the fields of the `retry` event of `--json`. The line has the message of the error, too. */
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

/** Calls `act` with the request of a verb that runs no plan. The requests that it sends are logged. */
export async function withLog<Names extends FlagName, Result>(
  request: VerbRequest<Names> & VerbRequest<'log-file' | 'log-level'>,
  io: Io,
  act: (logged: VerbRequest<Names>) => Promise<Result>,
): Promise<Result> {
  const log = openLogOf(request.resolved.options, io);
  const observer: Observer = {
    ...request.observer,
    retry: (event) => void logRetry(log, event),
    attempt: (attempt) => logAttempt(log, attempt),
  };
  try {
    return await act({ ...request, observer });
  } finally {
    log.close();
  }
}
