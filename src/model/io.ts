/**
 * The interface between the program and its process (streams, environment, signals), and the resources that its jobs
 * share.
 */
import type { Clock } from './clock.js';
import { CryptodlError } from './errors.js';
import { exitCodeOfSignal } from './exit-code.js';

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
  readonly startedAt: number;
  readonly stdin: NodeJS.ReadableStream;
  /** The words of the command that starts this program, with absolute paths. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
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
    if (first !== undefined) io.exit(exitCodeOfSignal(signal));
    first = signal;
    stop.abort(new CryptodlError('interrupted', `ended by ${signal}`));
  });
  return { signal: stop.signal, signalled: () => first, release };
}

/** Resources that the jobs of a process or its library calls share, so that a limit applies to all of them together, or work that is done once. */
export class SharedResources {
  readonly #made = new Map<string, unknown>();

  /** The resource of this name; the first caller creates it, or the next one if it was a promise that rejected. All callers of a name must use the same type. */
  once<T>(name: string, make: () => T): T {
    if (!this.#made.has(name)) {
      const made = make();
      this.#made.set(name, made);
      if (made instanceof Promise) made.catch(() => this.#made.delete(name));
    }
    return this.#made.get(name) as T;
  }

  /** The next caller creates it again. */
  forget(name: string): void {
    this.#made.delete(name);
  }
}
