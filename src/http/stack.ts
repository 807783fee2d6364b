/** The request stack of a run: layers over one wire, or over a lane of layers for each of several proxies. */
import { banKey } from './throttle/bans.js';
import { proxyLabels, proxyOf } from '../files/proxies.js';
import { Spread } from './proxies/spread.js';
import { socketLayer } from './throttle/in-flight.js';
import type { StackOptions, Stack, AttemptOptions } from './stack-options.js';
import { openWire, attemptOver, bandwidthOf, layersOver, laneOver, around } from './layers.js';
import type { Throttle } from './throttle/throttle.js';
import type { Pools } from './transport/pool.js';

/** The request stack of a run. `layersOver` has the order of its layers. */
export function createStack(stack: StackOptions): Stack {
  if (stack.wire === undefined && stack.proxies.several.length > 1) return createLanes(stack);
  const { pools, wire } = openWire(stack);
  return stackOf(pools, layersOver(wire, stack));
}

/** The layers up to the breaker once per proxy, and once for the hosts without a proxy. */
function createLanes(stack: StackOptions): Stack {
  const sockets = socketLayer(stack);
  const bandwidth = bandwidthOf(stack);
  const { several } = stack.proxies;
  const laneOf = (proxy: string, via?: string) => {
    const own = { ...stack, via, proxies: { http: proxy, https: proxy, except: '', several: [] } };
    const { pools, wire } = openWire(own, bandwidth);
    return { label: via, pools, ...laneOver(wire, own, sockets) };
  };
  const direct = laneOf('');
  const proxied = proxyLabels(several).map((via, at) => laneOf(several[at] ?? '', via));
  const spread = new Spread({
    clock: stack.clock,
    direct: direct.fetch,
    isDirect: (url) => proxyOf(url, stack.proxies) === undefined,
    lanes: proxied.map(({ label = '', fetch, throttle }) => ({
      label,
      fetch,
      pauseMs: async ({ bucket, url }) => {
        const { pausedMs = 0 } = throttle.states.find(({ name }) => name === bucket) ?? {};
        return Math.max(pausedMs, await stack.bans.leftMs(banKey(bucket, url, label)));
      },
    })),
    observer: stack.observer,
  });
  const throttle = joinLimits([direct, ...proxied]);
  return {
    ...stackOf(joinPools([direct, ...proxied]), { throttle, fetch: around(spread.fetch, stack) }),
    proxies: () => spread.figures,
  };
}

function stackOf(pools: Stack['pools'], layers: Pick<Stack, 'fetch' | 'throttle'>): Stack {
  return { ...layers, pools, proxies: () => [], close: () => pools.close() };
}

/** A stack without retries: each request is one attempt with its timeouts. */
export function createAttempt(stack: AttemptOptions): Stack {
  const { pools, wire } = openWire(stack);
  return stackOf(
    pools,
    attemptOver(wire, stack, () => () => undefined),
  );
}

/** The requests through one proxy, or without one. The functions below join the permits and connections of several lanes. */
interface Lane {
  /** Undefined for the lane without a proxy. */
  readonly label: string | undefined;
  readonly throttle: Throttle;
  readonly pools: Pools;
}

function joinLimits(lanes: readonly Lane[]): Stack['throttle'] {
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
      return lanes.map(({ throttle }) => throttle.figures).reduce((a, b) => sumOf(a, b));
    },
  };
}

/** Only the first lane looks up the names of hosts. */
function joinPools(lanes: readonly [Lane, ...Lane[]]): Stack['pools'] {
  return {
    dns: () => lanes[0].pools.dns(),
    use: () => lanes.map(({ pools }) => pools.use()).reduce((a, b) => sumOf(a, b)),
    close: async () => {
      await Promise.all(lanes.map(({ pools }) => pools.close()));
    },
  };
}

/** The figures of two lanes together: numbers are added, also those within, and a flag holds if it holds for one of them. */
function sumOf<T extends object>(a: T, b: T): T {
  const sums = new Map<string, unknown>(Object.entries(a));
  for (const [name, value] of Object.entries(b) as [string, unknown][]) {
    const other = sums.get(name);
    if (typeof value === 'number') sums.set(name, Number(other ?? 0) + value);
    else if (typeof value === 'boolean') sums.set(name, other === true || value);
    else if (typeof value === 'object' && value !== null) sums.set(name, sumOf(other ?? {}, value));
  }
  return Object.fromEntries(sums) as T;
}
