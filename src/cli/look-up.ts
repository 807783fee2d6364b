/** What verbs have in common that ask hosts or the lake and run no plan: their session, and how they end when it is refused. */
import { systemClock } from '../clock.js';
import { CryptodlError, toCryptodlError } from '../errors.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { SILENT } from '../observer.js';
import type { Resolved } from '../options/resolve.js';
import { surroundingsOf } from '../options/surroundings.js';
import { printLines } from '../printable.js';
import { isListingFault } from '../plan/listing.js';
import { openSession } from '../run/session.js';
import type { Session } from '../run/session.js';
import { complain } from './complain.js';
import type { Typed } from './complain.js';
import type { watchSignals } from './watch-signals.js';

export interface LookUp {
  readonly resolved: Resolved;
  readonly io: Io;
  readonly typed: Typed;
}

export type Signals = ReturnType<typeof watchSignals>;

/** Warnings go to stderr, everything else to nobody. */
export function openLookUp({ resolved, io }: LookUp, { signal }: Signals): Session {
  return openSession({
    resolved,
    surroundings: surroundingsOf(io.environment),
    observer: {
      ...SILENT,
      warn: (message) => {
        printLines(io.stderr, [`warning: ${message}`]);
      },
    },
    clock: systemClock,
    signal,
    tell: () => Promise.resolve(),
  });
}

/** Says why it ended, unless a signal did it. */
export function endLookUp(error: unknown, { typed }: LookUp, signals: Signals): ExitCode {
  const signal = signals.signalled();
  if (signal !== undefined) return signal === 'SIGINT' ? 130 : 143;
  return complain(toCryptodlError(error), typed);
}

/** Where nothing can be said without the listing. */
export function withoutListing(error: unknown): unknown {
  if (!isListingFault(error) || error.code === 'wait-too-long') return error;
  return new CryptodlError('unreachable', `the listing cannot be had: ${error.message}`, {
    cause: error,
    hint: 'check the network, --archive-url and --listing-url',
  });
}
