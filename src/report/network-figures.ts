/** The figures of the network of a run, at a moment or at its end. */
import type { Settled } from '../http/host-states.js';
import type { ProxyFigures } from '../http/proxies/spread.js';
import type { RequestCount } from '../http/request-counts.js';
import type { ThrottleFigures } from '../http/throttle/throttle.js';
import type { DnsFigures } from '../http/transport/dns-cache.js';
import type { PoolUse } from '../http/transport/pool.js';
import type { CostFigures, LoopDelay } from './costs.js';
import type { WireFigures } from './figures.js';

/** The requests of a run, in numbers. */
export interface NetworkFigures extends WireFigures {
  /** Objects that may be in flight now, and how often failures lowered this number. */
  readonly concurrency: number;
  readonly retreats: number;
  /** Present if the concurrency settled below its maximum. */
  readonly settled?: Settled | undefined;
  readonly limiter: ThrottleFigures & { readonly refusalsPerHour: number };
  readonly pool: PoolUse;
  /** One for each of several proxies; otherwise empty. */
  readonly proxies: readonly ProxyFigures[];
  readonly dns: DnsFigures;
  /** Present for a lake in a bucket: the requests to it since the last run of the command. */
  readonly lake?: RequestCount | undefined;
  /** Wall time of waits and failures, in milliseconds. */
  readonly costMs: CostFigures;
  /** Delay of the event loop of this process. */
  readonly loopDelayMs: LoopDelay['figures'];
}

/** The requests of a run, or of all workers of a queue. */
export type NetworkTotals = Pick<NetworkFigures, 'requests' | 'settled'> & {
  readonly retries: Pick<NetworkFigures['retries'], 'total'>;
};
