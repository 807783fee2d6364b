/** How an attempt ends before its answer. */

/** The end of one attempt: a deadline has passed, or the signal of its request has aborted. */
export class Expiry {
  readonly #outer: AbortSignal;
  #over: { readonly reason: unknown } | undefined;
  #onOver: ((reason: unknown) => void) | undefined;
  #controller: AbortController | undefined;
  readonly #onOuterAbort = (): void => {
    this.end(this.#outer.reason);
  };

  /** `outer` has not aborted. `release` must follow, because `outer` outlives the attempt. */
  constructor(outer: AbortSignal) {
    this.#outer = outer;
    outer.addEventListener('abort', this.#onOuterAbort, { once: true });
  }

  /** Ends the attempt. Only the first reason counts. */
  end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    this.#onOver?.(reason);
    this.#controller?.abort(reason);
  }

  /** Calls `act` at the end of the attempt, at once if it is over. A later call replaces `act`, because an attempt has one exchange at a time. */
  onOver(act: (reason: unknown) => void): void {
    this.#onOver = act;
    if (this.#over !== undefined) act(this.#over.reason);
  }

  /** A signal that aborts at the end of the attempt. It is made at the first call: most attempts need none, and one signal costs more than all deadlines. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#over !== undefined) this.#controller.abort(this.#over.reason);
    return this.#controller.signal;
  }

  release(): void {
    this.#outer.removeEventListener('abort', this.#onOuterAbort);
  }
}
