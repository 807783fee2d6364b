/** The ends of attempts before their answers. */

/** The end of one attempt: a deadline has passed, or the signal of its request has aborted. */
class Expiry {
  #over: { readonly reason: unknown } | undefined;
  #onOver: ((reason: unknown) => void) | undefined;

  /** Ends the attempt. Only the first reason counts. */
  end(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#over = { reason };
    this.#onOver?.(reason);
  }

  /** Calls `act` at the end of the attempt, at once if it is over. A later call replaces `act`, because an attempt has one exchange at a time. */
  onOver(act: (reason: unknown) => void): void {
    this.#onOver = act;
    if (this.#over !== undefined) act(this.#over.reason);
  }
}

/** Ends attempts when the signal of their request aborts. All attempts share one listener, because Node searches the listeners of a signal one by one. */
export class Expiries {
  readonly #running = new Map<
    AbortSignal,
    { readonly attempts: Set<Expiry>; readonly onAbort: () => void }
  >();

  /** `outer` has not aborted. `release` must follow, because `outer` outlives the attempt. */
  begin(outer: AbortSignal): Expiry {
    const { attempts } = this.#running.get(outer) ?? this.#listen(outer);
    const expiry = new Expiry();
    attempts.add(expiry);
    return expiry;
  }

  release(outer: AbortSignal, expiry: Expiry): void {
    const running = this.#running.get(outer);
    if (running?.attempts.delete(expiry) !== true || running.attempts.size > 0) return;
    outer.removeEventListener('abort', running.onAbort);
    this.#running.delete(outer);
  }

  #listen(outer: AbortSignal) {
    const attempts = new Set<Expiry>();
    const onAbort = (): void => {
      for (const expiry of attempts) expiry.end(outer.reason);
    };
    outer.addEventListener('abort', onAbort);
    const running = { attempts, onAbort };
    this.#running.set(outer, running);
    return running;
  }
}
