/** Limits the requests in flight, because each one needs a socket. */
import type { FetchRequest, Layer, OnWait, Priority, Wait } from '../fetch.js';
import { PriorityQueue, Shares } from './priority-queue.js';

export interface UnderWayOptions {
  /** Requests in flight at most. */
  readonly most: number;
  /** Requests with different names are counted separately. */
  readonly placeOf: (request: FetchRequest) => string;
  /** The reason that a wait reports. */
  readonly wait: Wait;
}

/** A layer that limits the requests in flight, because each one needs a socket. Waiting spends no timeout. */
export function underWay({ most, placeOf, wait }: UnderWayOptions): Layer {
  const places = new Map<string, Place>();
  return (next) => async (request, context) => {
    const name = placeOf(request);
    const place = places.get(name) ?? new Place(most);
    places.set(name, place);
    const { signal, waitSignal = signal, onWait } = context;
    await place.enter(request.priority ?? 'normal', waitSignal, () => onWait?.(wait));
    try {
      signal.throwIfAborted();
      return await next(request, context);
    } finally {
      place.leave();
    }
  };
}

interface Waiter {
  readonly grant: () => void;
  readonly priority: Priority;
}

class Place {
  readonly #waiters = new PriorityQueue<Waiter>();
  readonly #shares = new Shares();
  #free: number;

  constructor(most: number) {
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
    this.#shares.earn(1, this.#waiters.wanting(), 1);
    const [first] = this.#waiters.heads(this.#shares);
    if (first === undefined) {
      this.#free += 1;
      return;
    }
    this.#shares.spend({ weight: 1, priority: first.priority });
    first.grant();
  }

  /** The end of a request gives its place to the next one. */
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
      const leaveLine = this.#waiters.add({ grant, priority });
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
