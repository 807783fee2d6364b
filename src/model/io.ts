/** What the system lets this process have. */
export interface ProcessLimits {
  /** Memory that is free for it; of its container when that has less. */
  readonly availableBytes: number;
  /** Of its container; undefined when it has none. */
  readonly limitBytes: number | undefined;
  /** Undefined where there is no limit, or the system does not tell. */
  readonly openFiles: number | undefined;
  /** Size of the thread pool, as the environment has it. */
  readonly threads: string | undefined;
}

/** The world outside, as the program gets it: streams, environment, signals. */
export interface Io {
  /** `columns`: how wide a terminal is. */
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: NodeJS.WritableStream & { readonly isTTY?: boolean };
  /** False once the reader of stdout has gone away (`| head`). */
  readonly isRead: () => boolean;
  /** When this program was started, on the monotonic clock. */
  readonly startedAt: number;
  readonly stdin: NodeJS.ReadableStream;
  /** How this program is started, word by word, with absolute paths. */
  readonly program: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly limits: () => ProcessLimits;
  /** Calls back on SIGINT and SIGTERM until the returned function is called. */
  readonly onSignal: (act: (signal: 'SIGINT' | 'SIGTERM') => void) => () => void;
  /** Ends the process by this signal, also while a thread of it is blocked. */
  readonly kill: (signal: 'SIGINT' | 'SIGTERM') => void;
  /** Ends the process at once: what a second signal asks for. */
  readonly exit: (code: number) => never;
}
