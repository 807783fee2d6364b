/** SIGINT and SIGTERM during a run. */
import { CryptodlError } from '../model/errors.js';
import type { Io } from '../model/io.js';

export type Signalled = 'SIGINT' | 'SIGTERM' | undefined;

/** The first signal ends the run, the second one ends the process. */
export function watchSignals(io: Io): {
  signal: AbortSignal;
  signalled: () => Signalled;
  release: () => void;
} {
  const stop = new AbortController();
  let first: Signalled;
  const release = io.onSignal((signal) => {
    if (first !== undefined) io.exit(signal === 'SIGINT' ? 130 : 143);
    first = signal;
    stop.abort(new CryptodlError('interrupted', `ended by ${signal}`));
  });
  return { signal: stop.signal, signalled: () => first, release };
}
