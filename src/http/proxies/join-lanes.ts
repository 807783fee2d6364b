/** Several lanes as one stack: their permits, connections and figures together. */
import type { Clock } from '../../model/clock.js';
import type { Observer } from '../../model/observer.js';
import type { Bans } from '../bans.js';
import type { Fetch } from '../fetch.js';
import { banPlace } from '../throttle/create-throttle.js';
import type { Throttle, ThrottleFigures } from '../throttle/throttle.js';
import type { Pools, PoolUse } from '../transport/pool.js';
import { proxyOf } from './no-proxy.js';
import type { ProxyRules } from './no-proxy.js';
import { Spread } from './spread.js';

export type Limits = Pick<Throttle, 'figures' | 'setBudget' | 'states'>;

interface MadeLane {
  /** Undefined for the lane without a proxy. */
  readonly label: string | undefined;
  readonly fetch: Fetch;
  readonly throttle: Throttle;
  readonly pools: Pools;
}

interface Joined {
  readonly spread: Spread;
  readonly throttle: Limits;
  readonly pools: Pick<Pools, 'close' | 'dns' | 'use'>;
}

interface Setup {
  readonly clock: Clock;
  readonly bans: Pick<Bans, 'leftMs'>;
  readonly observer: Pick<Observer, 'event' | 'warn'>;
  readonly proxies: ProxyRules;
}

/** The first lane has no proxy. */
export function joinLanes(lanes: readonly MadeLane[], { clock, bans, observer, proxies }: Setup): Joined {
  const [direct] = lanes;
  if (direct === undefined) throw new RangeError('no lane');
  const spread = new Spread({
    clock,
    direct: direct.fetch,
    isDirect: (url) => proxyOf(url, proxies) === undefined,
    lanes: lanes.flatMap(({ label, fetch, throttle }) => {
      if (label === undefined) return [];
      const pausedMs = (bucket: string): number =>
        throttle.states.find(({ name }) => name === bucket)?.pausedMs ?? 0;
      const pauseMs = async ({ bucket, url }: { bucket: string; url: string }): Promise<number> =>
        Math.max(pausedMs(bucket), await bans.leftMs(banPlace(label, bucket, url)));
      return [{ label, fetch, pauseMs }];
    }),
    observer,
  });
  return { spread, throttle: joinLimits(lanes), pools: joinPools(lanes, direct.pools) };
}

function joinLimits(lanes: readonly MadeLane[]): Limits {
  return {
    setBudget: (bucket, budget) => {
      for (const { throttle } of lanes) throttle.setBudget(bucket, budget);
    },
    get states() {
      return lanes.flatMap(({ label, throttle }) =>
        throttle.states.map((state) =>
          label === undefined ? state : { ...state, name: `${state.name} via ${label}` },
        ),
      );
    },
    get figures() {
      return lanes.map(({ throttle }) => throttle.figures).reduce(sumOfFigures);
    },
  };
}

function sumOfFigures(a: ThrottleFigures, b: ThrottleFigures): ThrottleFigures {
  const buckets = { ...a.buckets };
  for (const [name, { waits, waitedMs, refusals, isChosen }] of Object.entries(b.buckets)) {
    const { waits: w = 0, waitedMs: ms = 0, refusals: r = 0, isChosen: c = false } = buckets[name] ?? {};
    buckets[name] = {
      waits: w + waits,
      waitedMs: ms + waitedMs,
      refusals: r + refusals,
      isChosen: c || isChosen,
    };
  }
  return {
    waits: a.waits + b.waits,
    waitedMs: a.waitedMs + b.waitedMs,
    refusals: a.refusals + b.refusals,
    buckets,
  };
}

function joinPools(lanes: readonly MadeLane[], direct: Pools): Joined['pools'] {
  return {
    dns: () => direct.dns(),
    use: () => lanes.map(({ pools }) => pools.use()).reduce(sumOfUse),
    close: async () => {
      await Promise.all(lanes.map(({ pools }) => pools.close()));
    },
  };
}

function sumOfUse(a: PoolUse, b: PoolUse): PoolUse {
  return {
    sockets: a.sockets + b.sockets,
    busy: a.busy + b.busy,
    queued: a.queued + b.queued,
    most: a.most + b.most,
  };
}
