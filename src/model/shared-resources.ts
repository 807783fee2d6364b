/** Resources of one process with several jobs. */

/** The jobs share them, so that a limit of the process counts for all jobs together. */
export class SharedResources {
  /** Aborts when the process is ended, not when one of its jobs ends. */
  readonly signal: AbortSignal;
  readonly #made = new Map<string, unknown>();

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  /** The resource of this name; the first caller creates it. All callers of a name must use the same type. */
  once<T>(name: string, make: () => T): T {
    if (!this.#made.has(name)) this.#made.set(name, make());
    return this.#made.get(name) as T;
  }
}
