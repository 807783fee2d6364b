/** Time, randomness and sleeping, injected everywhere so that tests can own them. */
export interface Clock {
  /** Wall clock in epoch milliseconds: only for stamps and for what a server says in dates. */
  now(): number;
  /** Milliseconds that never jump: for every duration. */
  monotonic(): number;
  /** Resolves after `delayMs`; rejects with the signal's reason as soon as it aborts. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `delayMs`, counted anew from every `restart`. */
  timer(delayMs: number, callback: () => void): Timer;
  /** Uniform in [0, 1). */
  random(): number;
}

export interface Timer {
  restart(): void;
  cancel(): void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  random: () => Math.random(),
  timer: (delayMs, callback) => {
    const timer = setTimeout(callback, Math.min(delayMs, 2 ** 31 - 1));
    return {
      restart: () => {
        timer.refresh();
      },
      cancel: () => {
        clearTimeout(timer);
      },
    };
  },
  sleep: (delayMs, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        clearTimeout(timer);
        reject(signal?.reason as Error);
      };
      // setTimeout fires at once for delays of 2^31 ms and more.
      const timer = setTimeout(
        () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        Math.min(delayMs, 2 ** 31 - 1),
      );
      signal?.addEventListener('abort', onAbort, { once: true });
    }),
};
