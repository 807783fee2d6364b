/**
 * The retry budget of a host: successes fill it, retries empty it, and the number of retries at once is limited. With an
 * empty budget, retries wait; they do not fail.
 */
import type { Clock, Timer } from '../../model/clock.js';
import { waitTooLong } from '../../model/errors.js';
import { hostOf } from '../fetch.js';
import type { Layer, OnWait } from '../fetch.js';
import { durationText } from '../../model/units.js';

export interface BudgetOptions {
  readonly clock: Clock;
  /** Retries at once; read for each retry. */
  readonly mostAtOnce: () => number;
  /** A longer wait is refused with `wait-too-long`. */
  readonly maxWaitMs: number;
  /** Called when a retry begins to wait (1) or stops waiting (-1). */
  readonly onWaiting?: (change: 1 | -1) => void;
}

const CAPACITY = 100;
const RETRY_COST = 10;
const SUCCESS_GAIN = 1;
/** Milliseconds per retry without any success. Without this trickle, a bad host would stop the run. */
const TRICKLE_MS = 200;

interface Waiter {
  readonly cost: number;
  readonly grant: () => void;
}

/**
 * The layer that takes each retry from the budget of its host. It stands inside the check of the content: a retry that
 * waits for its sidecar holds no budget, because otherwise retries of zips and of sidecars would wait for each other.
 */
export function retryBudget(options: BudgetOptions): Layer {
  const budgets = new Map<string, RetryBudget>();
  return (next) => async (request, context) => {
    const host = hostOf(request.url);
    const budget = budgets.get(host) ?? new RetryBudget(options);
    budgets.set(host, budget);
    const { again, signal, waitSignal = signal, onWait } = context;
    const cost = again === 'retry' ? RETRY_COST : 0;
    const release = again === undefined ? undefined : await budget.take(waitSignal, cost, onWait);
    try {
      const response = await next(request, context);
      budget.onSuccess(cost);
      return response;
    } finally {
      release?.();
    }
  };
}

/** The budget of one host. */
export class RetryBudget {
  readonly #options: BudgetOptions;
  readonly #waiters = new Set<Waiter>();
  #tokens = CAPACITY;
  #filledAt: number;
  #running = 0;
  #wakeUp: Timer | undefined;

  constructor(options: BudgetOptions) {
    this.#options = options;
    this.#filledAt = options.clock.monotonic();
  }

  /** Retries that wait. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** An answered retry gets its cost back, so that a recovered host need not wait for the trickle. */
  onSuccess(cost = 0): void {
    this.#tokens = Math.min(CAPACITY, this.#tokens + Math.max(cost, SUCCESS_GAIN));
    this.#grant();
  }

  /** Resolves when a retry may start, with the function that ends it. Rejects with the reason of the signal. */
  async take(signal: AbortSignal, cost = RETRY_COST, onWait?: OnWait): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#waiters.size > 0 || !this.#tryTake(cost)) {
      // A retry without cost waits because the host asked for a pause.
      const endWait = onWait?.(cost === 0 ? 'pause' : 'retry-budget');
      this.#options.onWaiting?.(1);
      try {
        await this.#wait(signal, cost);
      } finally {
        this.#options.onWaiting?.(-1);
        endWait?.();
      }
    }
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#running -= 1;
      this.#grant();
    };
  }

  #wait(signal: AbortSignal, cost: number): Promise<void> {
    const { clock, maxWaitMs } = this.#options;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        cost,
        grant: () => {
          leave();
          resolve();
        },
      };
      const leave = (): void => {
        tooLong.cancel();
        signal.removeEventListener('abort', onAbort);
        this.#waiters.delete(waiter);
        if (this.#waiters.size === 0) this.#rest();
      };
      const onAbort = (): void => {
        leave();
        reject(signal.reason as Error);
      };
      const tooLong = clock.timer(maxWaitMs, () => {
        leave();
        reject(
          waitTooLong(
            `no retry was granted within --max-wait ${durationText(maxWaitMs)}: too many of them fail`,
          ),
        );
      });
      signal.addEventListener('abort', onAbort);
      this.#waiters.add(waiter);
      this.#grant();
    });
  }

  #tryTake(cost: number): boolean {
    const now = this.#options.clock.monotonic();
    this.#tokens = Math.min(CAPACITY, this.#tokens + ((now - this.#filledAt) / TRICKLE_MS) * RETRY_COST);
    this.#filledAt = now;
    if (this.#tokens < cost || this.#running >= this.#options.mostAtOnce()) return false;
    this.#tokens -= cost;
    this.#running += 1;
    return true;
  }

  #grant(): void {
    // In the order of arrival. A retry without cost does not wait for the budget.
    for (const waiter of this.#waiters) {
      if (!this.#tryTake(waiter.cost)) continue;
      this.#waiters.delete(waiter);
      waiter.grant();
    }
    if (this.#waiters.size === 0) this.#rest();
    else this.#wake();
  }

  /** Sets the timer for the moment when the trickle allows one retry. The end of a retry wakes the next one by itself. */
  #wake(): void {
    if (this.#wakeUp !== undefined || this.#tokens >= RETRY_COST) return;
    const delayMs = Math.ceil(((RETRY_COST - this.#tokens) / RETRY_COST) * TRICKLE_MS);
    this.#wakeUp = this.#options.clock.timer(Math.max(1, delayMs), () => {
      this.#wakeUp = undefined;
      this.#grant();
    });
  }

  #rest(): void {
    this.#wakeUp?.cancel();
    this.#wakeUp = undefined;
  }
}
