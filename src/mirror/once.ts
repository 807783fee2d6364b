/** Work that is done once for each name, and work that is done one after the other for each name. */

export class Once {
  readonly #begun = new Map<string, Promise<void>>();

  /** Calls `act` once for a name. A failed call may be repeated. */
  async do(name: string, act: () => Promise<void>): Promise<void> {
    const begun = this.#begun.get(name) ?? act();
    this.#begun.set(name, begun);
    try {
      await begun;
    } catch (error) {
      this.forget(name);
      throw error;
    }
  }

  /** The next call of `do` does the work again. */
  forget(name: string): void {
    this.#begun.delete(name);
  }
}

export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** Calls `act` after the earlier calls for this name have ended. */
  take<T>(name: string, act: () => Promise<T>): Promise<T> {
    const earlier = this.#last.get(name);
    const result = earlier === undefined ? act() : earlier.then(act);
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(name, ended);
    return result;
  }
}
