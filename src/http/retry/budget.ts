/** The retry budget of a host: successes and time fill it, retries empty it. While it is empty, retries wait. It also limits the retries in flight. */
import type { Clock } from '../../model/clock.js';
import { waitTooLong } from '../../model/errors.js';
import { hostOf, type Layer, type OnWait } from '../../model/fetch.js';
import { RateMeter } from '../throttle/meter.js';
import { QuotaBucket } from '../throttle/quota-bucket.js';
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

/**
 * The layer that takes each retry from the budget of its host. It stands inside `verify`: while a retry waits for its sidecar, it
 * holds no budget. Otherwise retries of zips and of sidecars would wait for each other. `budgets`: the budgets by host, for readers.
 */
export function budgetLayer(options: BudgetOptions, budgets = new Map<string, RetryBudget>()): Layer {
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

/** The budget of one host. Retries wait in a bucket. Attempts without cost do not wait behind them. */
export class RetryBudget {
  readonly #rate: RateMeter;
  readonly #bucket: QuotaBucket;
  #running = 0;

  constructor(private readonly options: BudgetOptions) {
    const { clock } = options;
    const permitsPerSecond = (RETRY_COST * 1000) / GAIN_MS;
    const rate = new RateMeter({ permitsPerSecond, burst: CAPACITY }, clock.monotonic());
    const meter = {
      most: CAPACITY,
      take: (cost: number, now: number) => {
        // The next one becomes free when a retry ends.
        if (this.#running >= options.mostAtOnce()) return Number.POSITIVE_INFINITY;
        const delayMs = rate.take(cost, now);
        if (delayMs === 0) this.#running += 1;
        return delayMs;
      },
      giveBack: (gain: number) => rate.giveBack(gain),
    };
    this.#rate = rate;
    this.#bucket = new QuotaBucket({ clock, name: 'retries', meter, maxWaitMs: Number.POSITIVE_INFINITY });
  }

  /** `retriesLeft`: those that the budget allows at once now. */
  get state() {
    return {
      retriesLeft: Math.floor(this.#rate.permitsAt(this.options.clock.monotonic()) / RETRY_COST),
      runningRetries: this.#running,
      mostRunningRetries: this.options.mostAtOnce(),
      waitingRetries: this.#bucket.state.waiting,
    };
  }

  /** Takes the success of a request, and the cost that it paid. A successful retry gets its cost back, because its host has recovered. */
  onSuccess(cost = 0): void {
    this.#bucket.giveBack(Math.max(cost, SUCCESS_GAIN));
  }

  /** Resolves with the function that ends a retry when it may start. Rejects with the reason of the signal, or with `wait-too-long`. */
  async take(
    signal: AbortSignal,
    cost = RETRY_COST,
    onWait?: () => ReturnType<OnWait> | undefined,
  ): Promise<() => void> {
    const { clock, maxWaitMs, onWaiting } = this.options;
    const end = new AbortController();
    const tooLong = clock.timer(maxWaitMs, () => {
      const most = durationText(maxWaitMs);
      end.abort(waitTooLong(`no retry was granted within --max-wait ${most}: too many retries fail`));
    });
    const priority = cost === 0 ? 'high' : 'normal';
    const beginWait = (): (() => void) => {
      onWaiting?.(1);
      const endWait = onWait?.();
      return () => {
        onWaiting?.(-1);
        endWait?.();
      };
    };
    // More may go at once than when the others were refused.
    this.#bucket.wake();
    try {
      const permit = { weight: cost, priority, onWait: beginWait } as const;
      await this.#bucket.take(permit, signal, AbortSignal.any([signal, end.signal]));
    } finally {
      tooLong.cancel();
    }
    return () => {
      this.#running -= 1;
      this.#bucket.wake();
    };
  }
}
