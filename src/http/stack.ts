/** The request stack of a run: layers over one wire, or over a lane of layers for each of several proxies. */
import { banKey } from './throttle/bans.js';
import { proxyLabels, proxyOf } from '../files/proxies.js';
import { Spread } from './proxies/spread.js';
import { socketLayer } from './throttle/in-flight.js';
import type { StackOptions, Stack, AttemptOptions } from './stack-options.js';
import { Throttle } from './throttle/throttle.js';
import { createPools, type Pools } from './transport/pool.js';
import { hostOf, type AttemptEnd, type Fetch, type FetchRequest, type Layer } from '../model/fetch.js';
import { breakerLayer } from './retry/breaker.js';
import { budgetLayer } from './retry/budget.js';
import { fallbackLayer } from './retry/fallback-host.js';
import { isBadContent, retryLayer } from './retry/retry.js';
import { followLayer, measureLayer, type RequestFollower } from './transport/measure.js';
import { loadSignOf } from './load-sign.js';
import { verifyLayer } from './transport/verify-body.js';
import { redirectLayer } from './transport/redirect.js';
import { poolOptions } from './transport/sockets.js';
import { limitBandwidth, UNLIMITED, type Bandwidth } from './transport/bandwidth.js';
import { timeoutLayer } from './transport/timeout.js';
import { createTransport } from './transport/transport.js';

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

// The order of the layers of a request.

/** Retries in flight that the retry budget of a host allows at any concurrency. */
const LEAST_RETRIES_AT_ONCE = 5;

/** Outermost first: follow, retry, verify, budget, fallback, breaker, throttle, sockets, timeout, measure, redirect, sign, wire. */
export function layersOver(wire: Fetch, stack: StackOptions) {
  const { throttle, fetch } = laneOver(wire, stack);
  return { throttle, fetch: around(fetch, stack) };
}

/** The layers from the breaker inward. */
function laneOver(wire: Fetch, stack: StackOptions, sockets?: Layer) {
  const { options, clock, observer, figures, followers, concurrency, via } = stack;
  const broken = breakerLayer({
    ...options,
    clock,
    onChange: (of, state, leftMs) => {
      const host = via === undefined ? of : `${of} via ${via}`;
      figures.onBreaker?.(host, state, leftMs);
      observer.event('breaker', { host, state });
    },
    failover: stack.failover,
    hint: stack.hosts.hint,
  });
  const onAttempt = (request: FetchRequest): ((attempt: AttemptEnd) => void) => {
    const ends = followers.map((follower) => follower.onAttempt?.(request));
    figures.begun?.();
    // The listing and REST have other hosts and limits than objects and sidecars.
    const load = request.bucket === 'archive' ? concurrency : undefined;
    load?.onBegun();
    return (attempt) => {
      for (const end of ends) end?.(attempt);
      figures.ended?.(attempt);
      load?.onEnded(loadSignOf(attempt, stack.isLate()));
      observer.attempt(attempt);
    };
  };
  const { throttle, fetch } = attemptOver(wire, stack, onAttempt, sockets);
  return { throttle, fetch: broken(fetch) };
}

/** The layers above the breakers. */
function around(lanes: Fetch, stack: StackOptions): Fetch {
  const { options, clock, observer, figures, concurrency, failover, waitSignal } = stack;
  const budgeted = budgetLayer(
    {
      clock,
      maxWaitMs: options.maxWaitMs,
      mostAtOnce: () => Math.max(LEAST_RETRIES_AT_ONCE, Math.floor((concurrency?.limit ?? 0) / 10)),
      onWaiting: (change) => concurrency?.onWaiting(change),
    },
    stack.budgets,
  );
  const fallback = fallbackLayer(stack.hosts.archiveUrl, stack.hosts.fallbackUrl);
  const retried = retryLayer({
    ...options,
    clock,
    failover,
    waitSignal,
    onRetry: (event) => {
      figures.onRetry?.(event);
      if (isBadContent(event.error)) concurrency?.onBadContent(clock.monotonic());
      observer.retry(event);
    },
    onEnd: (retries, error) => figures.onRequestEnd?.(retries, error),
  });
  return followLayer(stack.followers)(retried(verifyLayer(budgeted(fallback(lanes)))));
}

/** The layers of one attempt, from the permit to the wire. */
function attemptOver(
  wire: Fetch,
  stack: AttemptOptions,
  onAttempt: NonNullable<RequestFollower['onAttempt']>,
  sockets = socketLayer(stack),
) {
  const { options, clock, hosts } = stack;
  const { archiveUrl, listingUrl, fallbackUrl = archiveUrl, restUrls, knownUrls } = hosts;
  const urls = [archiveUrl, listingUrl, fallbackUrl, ...Object.values(restUrls), ...knownUrls];
  const throttle = new Throttle(stack);
  const signed = stack.sign?.(wire) ?? wire;
  const redirected = redirectLayer(new Set(urls.map(hostOf)))(signed);
  const sent = timeoutLayer(clock, options)(measureLayer(clock, onAttempt)(redirected));
  return { throttle, fetch: throttle.layer(sockets(sent)) };
}

function openWire(stack: AttemptOptions, bandwidth = bandwidthOf(stack)) {
  const pools = createPools(poolOptions(stack));
  const { readRefusal } = stack.hosts;
  return {
    pools,
    wire: stack.wire ?? createTransport({ clock: stack.clock, pools, bandwidth, readRefusal }),
  };
}

function bandwidthOf({ options, clock, signal, common }: AttemptOptions): Bandwidth {
  const { bwlimitBytesPerSecond: limit } = options;
  if (limit === undefined) return UNLIMITED;
  const used = common?.once(`bandwidth ${limit}`, () => ({ untilMs: clock.monotonic() }));
  return limitBandwidth(limit, clock, signal, used);
}
