/**
 * The retry budget of a host: successes and time fill it, retries empty it. The number of retries in flight is limited too.
 * While the budget is empty, retries wait.
 */
import type { Clock, Timer } from '../../model/clock.js';
import { waitTooLong } from '../../model/errors.js';
import { hostOf } from '../fetch.js';
import type { Layer, OnWait } from '../fetch.js';
import { durationText } from '../../model/units.js';

export interface BudgetOptions {
  readonly clock: Clock;
  /** Retries in flight at most. Called for each retry, because the limit changes. */
  readonly mostAtOnce: () => number;
  /** A longer wait is refused with `wait-too-long`. */
  readonly maxWaitMs: number;
  /** Called when a retry begins to wait (1) or stops waiting (-1). */
  readonly onWaiting?: (change: 1 | -1) => void;
}

const CAPACITY = 100;
const RETRY_COST = 10;
const SUCCESS_GAIN = 1;
/** The budget gains one retry in each such time, even if no request succeeds. Otherwise a failing host would stop the run. */
const GAIN_MS = 200;

export interface RetryBudgetState {
  /** Retries that the budget allows at once now. */
  readonly retriesLeft: number;
  readonly runningRetries: number;
  readonly mostRunningRetries: number;
  readonly waitingRetries: number;
}

interface Waiter {
  readonly cost: number;
  readonly grant: () => void;
}

/**
 * The layer that takes each retry from the budget of its host. It stands inside `verify`: while a retry waits for its sidecar, it
 * holds no budget. Otherwise retries of zips and of sidecars would wait for each other. `budgets`: the budgets by host, for readers.
 */
export function retryBudget(options: BudgetOptions, budgets = new Map<string, RetryBudget>()): Layer {
  return (next) => async (request, context) => {
    const host = hostOf(request.url);
    const budget = budgets.get(host) ?? new RetryBudget(options);
    budgets.set(host, budget);
    const { again, signal, waitSignal = signal, onWait } = context;
    const cost = again === 'retry' ? RETRY_COST : 0;
    const release =
      again === undefined
        ? undefined
        : await budget.take(waitSignal, cost, () => onWait?.(again === 'retry' ? 'retry-budget' : again));
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
  #timer: Timer | undefined;

  constructor(options: BudgetOptions) {
    this.#options = options;
    this.#filledAt = options.clock.monotonic();
  }

  get state(): RetryBudgetState {
    return {
      retriesLeft: Math.floor(this.#filled(this.#options.clock.monotonic()) / RETRY_COST),
      runningRetries: this.#running,
      mostRunningRetries: this.#options.mostAtOnce(),
      waitingRetries: this.#waiters.size,
    };
  }

  /** Takes the success of a request, and the cost that it paid. A successful retry gets its cost back, because its host has recovered. */
  onSuccess(cost = 0): void {
    this.#tokens = Math.min(CAPACITY, this.#tokens + Math.max(cost, SUCCESS_GAIN));
    this.#grant();
  }

  /**
   * Resolves when a retry may start, with the function that ends it. Rejects with the reason of the signal, or with
   * `wait-too-long`.
   */
  async take(
    signal: AbortSignal,
    cost = RETRY_COST,
    onWait?: () => ReturnType<OnWait> | undefined,
  ): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#waiters.size > 0 || !this.#tryTake(cost)) {
      const endWait = onWait?.();
      this.#options.onWaiting?.(1);
      try {
        await this.#wait(signal, cost);
      } finally {
        this.#options.onWaiting?.(-1);
        endWait?.();
      }
    }
    return () => {
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
        if (this.#waiters.size === 0) this.#stopTimer();
      };
      const onAbort = (): void => {
        leave();
        reject(signal.reason as Error);
      };
      const tooLong = clock.timer(maxWaitMs, () => {
        leave();
        reject(
          waitTooLong(
            `no retry was granted within --max-wait ${durationText(maxWaitMs)}: too many retries fail`,
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
    this.#tokens = this.#filled(now);
    this.#filledAt = now;
    if (this.#tokens < cost || this.#running >= this.#options.mostAtOnce()) return false;
    this.#tokens -= cost;
    this.#running += 1;
    return true;
  }

  #filled(now: number): number {
    return Math.min(CAPACITY, this.#tokens + ((now - this.#filledAt) / GAIN_MS) * RETRY_COST);
  }

  #grant(): void {
    // In the order of arrival. An attempt without cost overtakes retries that wait for the budget.
    for (const waiter of this.#waiters) {
      if (!this.#tryTake(waiter.cost)) continue;
      this.#waiters.delete(waiter);
      waiter.grant();
    }
    if (this.#waiters.size === 0) this.#stopTimer();
    else this.#startTimer();
  }

  /** Sets the timer for the time at which the budget allows one retry. Without it, waiting retries would stay blocked until another request succeeds or ends. */
  #startTimer(): void {
    if (this.#timer !== undefined || this.#tokens >= RETRY_COST) return;
    const delayMs = Math.ceil(((RETRY_COST - this.#tokens) / RETRY_COST) * GAIN_MS);
    this.#timer = this.#options.clock.timer(Math.max(1, delayMs), () => {
      this.#timer = undefined;
      this.#grant();
    });
  }

  #stopTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
