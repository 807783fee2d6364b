/** Resources that the jobs of a process or its library calls share: one limit for all of them together, or work that is done once. */

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
