/** Session, progress and errors of verbs that ask hosts or the lake without running a plan. */
import { openSession } from '../download/session.js';
import type { Session } from '../download/session.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { exitCodeOfSignal } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io, watchSignals } from '../model/io.js';
import { SILENT_OBSERVER } from '../model/observer.js';
import { surroundingsOf } from '../options/environment.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { isListingFault } from '../source/listing.js';
import type { Source } from '../source/source.js';
import { printLines } from '../text/printable.js';
import { printError } from './print-error.js';
import type { Typed } from './print-error.js';

/** A verb that opens a session without running a plan. */
export interface LookUp {
  readonly source: Source;
  readonly resolved: Resolved;
  readonly io: Io;
  readonly typed: Typed;
}

export type Signals = ReturnType<typeof watchSignals>;

/** Opens a session that prints only warnings, to stderr. Stops listening to signals if no session is opened. */
export function openLookUp({ source, resolved, io }: LookUp, signals: Signals): Session {
  try {
    return openSession({
      source,
      resolved,
      surroundings: surroundingsOf(io.environment),
      observer: {
        ...SILENT_OBSERVER,
        warn: (message) => {
          printLines(io.stderr, [`warning: ${message}`]);
        },
      },
      clock: io.clock,
      signal: signals.signal,
      tell: () => Promise.resolve(),
    });
  } catch (error) {
    signals.release();
    throw error;
  }
}

/** The exit code of a verb that failed. Prints the error, unless a signal ended the verb. */
export function endLookUp(error: unknown, { typed }: LookUp, signals: Signals): ExitCode {
  const signal = signals.signalled();
  if (signal !== undefined) return exitCodeOfSignal(signal);
  return printError(toCryptodlError(error), typed);
}

/** Turns failures of the listing except `wait-too-long` into `unreachable`, for verbs that need it. Returns other errors unchanged. */
export function asUnreachable(error: unknown): unknown {
  if (!isListingFault(error) || error.code === 'wait-too-long') return error;
  return new CryptodlError('unreachable', `the listing is not available: ${error.message}`, {
    cause: error,
    hint: 'check the network, --archive-url and --listing-url',
  });
}

const PROGRESS_MS = 10_000;

/** Returns a function that prints the progress of long work, at most every ten seconds and never with `--quiet`. */
export function progressPrinter({ quiet }: Pick<Options, 'quiet'>, io: Io): (text: () => string) => void {
  let saidAt = io.clock.monotonic();
  return (text) => {
    const now = io.clock.monotonic();
    if (quiet || now - saidAt < PROGRESS_MS) return;
    saidAt = now;
    printLines(io.stderr, [`${text()} so far`]);
  };
}
