import type { Clock } from '../clock.js';
import type { FetchRequest, Layer, OnWait, Priority, Wait } from '../fetch.js';
import { Lanes } from './lanes.js';

export interface UnderWayOptions {
  readonly clock: Clock;
  /** Requests that are under way at once. */
  readonly most: number;
  /** Requests of different places are counted apart. */
  readonly placeOf: (request: FetchRequest) => string;
  /** As what a wait is told. */
  readonly wait: Wait;
}

/** So many requests are under way at once: each of them needs a socket. The others wait, which spends no timeout. */
export function underWay({ clock, most, placeOf, wait }: UnderWayOptions): Layer {
  const places = new Map<string, Place>();
  return (next) => async (request, context) => {
    const name = placeOf(request);
    const place = places.get(name) ?? new Place(clock, most);
    places.set(name, place);
    const { signal, patience = signal, onWait } = context;
    await place.enter(request.priority ?? 'normal', patience, () => onWait?.(wait));
    try {
      signal.throwIfAborted();
      return await next(request, context);
    } finally {
      place.leave();
    }
  };
}

class Place {
  readonly #clock: Clock;
  readonly #waiters = new Lanes<() => void>();
  #free: number;

  constructor(clock: Clock, most: number) {
    this.#clock = clock;
    this.#free = most;
  }

  async enter(
    priority: Priority,
    signal: AbortSignal,
    beginWait: () => ReturnType<OnWait> | undefined,
  ): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const endWait = beginWait();
    try {
      await this.#wait(priority, signal);
    } finally {
      endWait?.();
    }
  }

  leave(): void {
    const grant = this.#waiters.first();
    if (grant === undefined) this.#free += 1;
    else grant();
  }

  /** Whoever leaves gives its place to the one that is granted. */
  #wait(priority: Priority, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        leaveLine();
        reject(signal.reason as Error);
      };
      const grant = (): void => {
        leaveLine();
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const leaveLine = this.#waiters.add(grant, priority, this.#clock.monotonic());
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
