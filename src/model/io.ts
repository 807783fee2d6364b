/** The interface between the program and its process: streams, environment, signals. */
import type { Clock } from './clock.js';
import { exitCode } from './exit-code.js';

/** `columns` and `rows`: the present size of the terminal. */
export type OutputStream = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export interface Io {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** False after the reader of stdout has closed it (`| head`). */
  readonly isRead: () => boolean;
  readonly clock: Clock;
  /** Start of the program on the monotonic clock, in milliseconds. */
  readonly startedAtMs: number;
  readonly stdin: NodeJS.ReadableStream;
  /** The words of the command that starts this program, with absolute paths. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Aborted, with an error `interrupted`, by the first signal that `onSignal` calls back on. */
  readonly signal: AbortSignal;
  /** Calls back on SIGINT and SIGTERM until the returned function is called. */
  readonly onSignal: (act: (signal: 'SIGINT' | 'SIGTERM') => void) => () => void;
  /** Calls back on SIGUSR2 until the returned function is called. The signal never ends the process. */
  readonly onDebugSignal: (act: () => void) => () => void;
  /** Ends the process by this signal, also while one of its threads is blocked. */
  readonly kill: (signal: 'SIGINT' | 'SIGTERM') => void;
  /** Ends the process at once, on a second signal. */
  readonly exit: (code: number) => never;
}

// The first signal of a run, SIGINT or SIGTERM.

export type Signalled = 'SIGINT' | 'SIGTERM' | undefined;

/** Watches SIGINT and SIGTERM until `release`. The first of them aborts `signal`, the second one ends the process. */
export function watchSignals(io: Io): {
  signal: AbortSignal;
  signalled: () => Signalled;
  release: () => void;
} {
  const stop = new AbortController();
  let first: Signalled;
  const release = io.onSignal((signal) => {
    if (first !== undefined) io.exit(exitCode({ signal }));
    first = signal;
    stop.abort(io.signal.reason);
  });
  return { signal: stop.signal, signalled: () => first, release };
}
