/** What the jobs of one process have together, so that a limit of the process is not one of each job. */
export class SharedResources {
  /** Ends with the process, not with one of its jobs. */
  readonly signal: AbortSignal;
  readonly #made = new Map<string, unknown>();

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  /** Made by the first job that needs it. A name stands for one type. */
  once<T>(name: string, make: () => T): T {
    if (!this.#made.has(name)) this.#made.set(name, make());
    return this.#made.get(name) as T;
  }
}
