/** Puts the layers of one request together. Each attempt takes its own permit and has its own deadlines. */
import { placeOf } from './bans.js';
import { proxyLabels, proxyOf } from './proxies/no-proxy.js';
import { Spread } from './proxies/spread.js';
import { withSockets } from './transport/in-flight.js';
import { joinLimits, joinPools } from './lanes.js';
import type { StackOptions, Stack, AttemptOptions } from './stack-options.js';
import { openWire, attemptOver, bandwidthOf } from './attempt.js';
import { layersOver, laneOver, around } from './layers.js';

/** The request stack of a run. `layersOver` has the order of its layers. */
export function createStack(stack: StackOptions): Stack {
  if (stack.wire === undefined && stack.proxies.several.length > 1) return createLanes(stack);
  const { pools, wire } = openWire(stack);
  return stackOf(pools, layersOver(wire, stack));
}

/** The layers up to the breaker once per proxy, and once for the hosts without a proxy. */
function createLanes(stack: StackOptions): Stack {
  const sockets = withSockets(stack);
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
        return Math.max(pausedMs, await stack.bans.leftMs(placeOf(bucket, url, label)));
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
