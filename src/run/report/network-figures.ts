/** All network figures of a run at a moment. */
import { HOUR_MS } from '../../model/units.js';
import type { RequestCount } from '../../model/observer.js';
import type { Throttle } from '../../http/throttle/throttle.js';
import type { Clock } from '../../model/clock.js';
import type { Concurrency } from '../pacing/concurrency.js';
import type { Costs, LoopDelay } from './costs.js';
import { Figures } from './figures.js';
import type { Stack } from '../../http/stack-options.js';

interface Measured {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly stack: Pick<Stack, 'throttle' | 'pools' | 'proxies'>;
  readonly figures: Figures;
  readonly costs: Costs;
  readonly concurrency: Pick<Concurrency, 'limit' | 'retreats' | 'settled'>;
  readonly loopDelay: LoopDelay;
}

/** The requests of a run, in numbers. `lake`: those to its bucket since the last run of the command. */
export type NetworkFigures = Readonly<ReturnType<ReturnType<typeof networkFigures>>> & {
  readonly lake?: RequestCount | undefined;
};

/** Returns the function that reads the figures at the moment of its call. */
export function networkFigures({ clock, stack, figures, costs, concurrency, loopDelay }: Measured) {
  const { throttle, pools } = stack;
  const openedAt = clock.monotonic();
  return () => {
    const hours = Math.max(clock.monotonic() - openedAt, 1) / HOUR_MS;
    const sockets = pools.use();
    const refusalsPerHour = Math.round(throttle.figures.refusals / hours);
    const limiter: Throttle['figures'] & { refusalsPerHour: number } = {
      ...throttle.figures,
      refusalsPerHour,
    };
    return {
      ...figures.figures,
      /** Objects that may be in flight now, and how often failures lowered this number. */
      concurrency: concurrency.limit,
      retreats: concurrency.retreats,
      /** Present if the concurrency settled below its maximum. */
      settled: concurrency.settled,
      limiter,
      // With a limit of sockets, requests wait in a layer above the pool: they count as queued too.
      pool: {
        ...sockets,
        queued: sockets.queued + costs.waiting('socket') + costs.waiting('socket-of-host'),
      },
      /** One for each of several proxies; otherwise empty. */
      proxies: stack.proxies(),
      dns: pools.dns(),
      /** Wall time of waits and failures, in milliseconds. */
      costMs: costs.figures,
      loopDelayMs: loopDelay.figures,
    };
  };
}

/** The requests of a run, or of all workers of a queue. */
export type NetworkTotals = Pick<NetworkFigures, 'requests'> & {
  readonly retries: Pick<NetworkFigures['retries'], 'total'>;
};
