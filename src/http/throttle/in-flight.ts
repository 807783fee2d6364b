/** Limits the requests in flight, because each one needs a socket. */
import type { FetchRequest, Layer, OnWait, Priority, Wait } from '../fetch.js';
import { PriorityQueue, Shares } from './priority-queue.js';

export interface InFlightOptions {
  /** Requests in flight at most, in each group. */
  readonly most: number;
  /** The group of a request, for example its host. */
  readonly groupOf: (request: FetchRequest) => string;
  /** The reason that a wait reports. */
  readonly wait: Wait;
}

/** The layer. It stands outside of `timeout`, so waiting spends no timeout. */
export function limitInFlight({ most, groupOf, wait }: InFlightOptions): Layer {
  const groups = new Map<string, Slots>();
  return (next) => async (request, context) => {
    const name = groupOf(request);
    const slots = groups.get(name) ?? new Slots(most);
    groups.set(name, slots);
    const { signal, waitSignal = signal, onWait } = context;
    await slots.enter(request.priority ?? 'normal', waitSignal, () => onWait?.(wait));
    try {
      signal.throwIfAborted();
      return await next(request, context);
    } finally {
      slots.leave();
    }
  };
}

interface Waiter {
  readonly grant: () => void;
  readonly priority: Priority;
}

/** The slots of one group. Each request in flight has one. */
class Slots {
  readonly #waiters = new PriorityQueue<Waiter>();
  readonly #shares = new Shares();
  #free: number;

  constructor(most: number) {
    this.#free = most;
  }

  /** Resolves when the request has a slot. Rejects with the reason of the signal. */
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

  /** Gives the slot of a finished request to the next one. */
  leave(): void {
    this.#shares.earn(1, this.#waiters.waiting, 1);
    const [first] = this.#waiters.heads(this.#shares);
    if (first === undefined) {
      this.#free += 1;
      return;
    }
    this.#shares.spend({ weight: 1, priority: first.priority });
    first.grant();
  }

  #wait(priority: Priority, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        leaveQueue();
        reject(signal.reason as Error);
      };
      const grant = (): void => {
        leaveQueue();
        signal.removeEventListener('abort', onAbort);
        resolve();
      };
      const leaveQueue = this.#waiters.add({ grant, priority });
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
