/** Puts the layers of one request together. Each attempt takes its own permit and has its own deadlines. */
import type { Proxies } from '../files/environment.js';
import type { Observer, RetryEvent } from '../model/observer.js';
import { placeOf } from './bans.js';
import type { ExchangeHosts } from './exchange-hosts.js';
import { hostOf } from '../model/fetch.js';
import type { AttemptEnd, Fetch, FetchRequest, Layer } from '../model/fetch.js';
import { proxyLabels, proxyOf } from './proxies/no-proxy.js';
import { Spread } from './proxies/spread.js';
import type { ProxyFigures } from './proxies/spread.js';
import { breaker } from './retry/breaker.js';
import type { BreakerLimits, BreakerState } from './retry/breaker.js';
import { retryBudget } from './retry/budget.js';
import type { RetryBudget } from './retry/budget.js';
import { fallbackHost } from './retry/fallback-host.js';
import type { BackoffOptions } from './retry/retry.js';
import { isBadContent, retry } from './retry/retry.js';
import { Throttle } from './throttle/throttle.js';
import type { ThrottleFigures, ThrottleSetup } from './throttle/throttle.js';
import { follow, loadSignOf, measure } from './transport/measure.js';
import type { LoadSign, RequestFollower } from './transport/measure.js';
import { createPools } from './transport/pool.js';
import type { Pools, PoolUse } from './transport/pool.js';
import { redirect } from './transport/redirect.js';
import { limitBandwidth, poolOptions, UNLIMITED, withSockets } from './transport/sockets.js';
import type { SocketOptions } from './transport/sockets.js';
import { timeout } from './transport/timeout.js';
import type { Deadlines } from './transport/timeout.js';
import { createTransport } from './transport/transport.js';
import type { TransportOptions } from './transport/transport.js';
import { verify } from './transport/verify-body.js';

type HttpOptions = ThrottleSetup['options'] &
  SocketOptions &
  BackoffOptions &
  Deadlines &
  BreakerLimits & {
    readonly retries: number;
    readonly bwlimitBytesPerSecond: number | undefined;
  };

// The observers of the requests of a run: they count, measure, and set the concurrency.

export interface RequestFigures {
  begun?(): void;
  ended?(attempt: AttemptEnd): void;
  onRetry?(event: RetryEvent): void;
  onRequestEnd?(retries: number, error?: unknown): void;
  onBreaker?(host: string, state: BreakerState, leftMs: () => number): void;
}

/** Sets the number of objects in flight from the results of attempts. */
interface LoadObserver {
  /** Objects in flight, at most. */
  readonly limit: number;
  onBegun(): void;
  onEnded(sign: LoadSign): void;
  /** `now`: time of the monotonic clock. */
  onBadContent(now: number): void;
  /** A retry begins (1) or stops (-1) waiting for the retry budget. */
  onWaiting(change: 1 | -1): void;
}

export interface StackOptions extends ThrottleSetup {
  readonly options: HttpOptions;
  readonly observer: Observer;
  readonly figures: RequestFigures;
  readonly followers: readonly RequestFollower[];
  /** Undefined: nothing sets the number of requests at once. */
  readonly concurrency?: LoadObserver;
  /** The retry budgets by host, for readers. */
  readonly budgets?: Map<string, RetryBudget>;
  readonly proxies: Proxies;
  /** Whether the event loop of this process is late. */
  readonly isLate: () => boolean;
  readonly signal: AbortSignal;
  /** Aborts when the run may no longer wait. */
  readonly waitSignal?: AbortSignal | undefined;
  /** Signs each attempt, because a signature has a date. Innermost, so that no observer sees it. */
  readonly sign?: Layer | undefined;
  /** One attempt; by default through the sockets of undici. */
  readonly wire?: Fetch | undefined;
}

export interface Stack {
  readonly fetch: Fetch;
  readonly throttle: Limits;
  readonly pools: Pick<Pools, 'close' | 'dns' | 'use'>;
  /** One for each of several proxies. */
  readonly proxies: () => readonly ProxyFigures[];
  close(): Promise<void>;
}

interface Layers {
  readonly throttle: Throttle;
  readonly fetch: Fetch;
}

/** Retries in flight that the retry budget of a host allows at any concurrency. */
const LEAST_RETRIES_AT_ONCE = 5;

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

function openWire(stack: AttemptOptions, bandwidth = bandwidthOf(stack)): { pools: Pools; wire: Fetch } {
  const { clock, hosts } = stack;
  const pools = createPools(poolOptions(stack));
  const own = createTransport({ clock, pools, bandwidth, readRefusal: hosts.readRefusal });
  return { pools, wire: stack.wire ?? own };
}

export type AttemptOptions = Omit<
  StackOptions,
  'figures' | 'followers' | 'concurrency' | 'isLate' | 'waitSignal'
>;

/** A stack without retries: each request is one attempt with its timeouts. */
export function createAttempt(stack: AttemptOptions): Stack {
  const { pools, wire } = openWire(stack);
  return stackOf(
    pools,
    attemptOver(wire, stack, () => () => undefined),
  );
}

function attemptOver(
  wire: Fetch,
  stack: AttemptOptions,
  onAttempt: NonNullable<RequestFollower['onAttempt']>,
  sockets = withSockets(stack),
): Layers {
  const { options, clock } = stack;
  const throttle = new Throttle(stack);
  const timed = timeout(clock, options);
  const measured = measure(clock, onAttempt);
  const signed = stack.sign?.(wire) ?? wire;
  const sent = timed(measured(redirect(knownHosts(stack.hosts))(signed)));
  return { throttle, fetch: throttle.layer(sockets(sent)) };
}

/** Outermost first: follow, retry, verify, retryBudget, fallbackHost, breaker, throttle, sockets, timeout, measure, redirect, sign, wire. */
export function layersOver(wire: Fetch, stack: StackOptions): Layers {
  const { throttle, fetch } = laneOver(wire, stack);
  return { throttle, fetch: around(fetch, stack) };
}

/** The layers from the breaker inward. */
function laneOver(wire: Fetch, stack: StackOptions, sockets?: Layer): Layers {
  const { options, clock, observer, figures, followers, concurrency, via } = stack;
  const broken = breaker({
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
    if (isOfArchive(request)) concurrency?.onBegun();
    return (attempt) => {
      for (const end of ends) end?.(attempt);
      figures.ended?.(attempt);
      if (isOfArchive(request)) concurrency?.onEnded(loadSignOf(attempt, stack.isLate()));
      observer.attempt(attempt);
    };
  };
  const { throttle, fetch } = attemptOver(wire, stack, onAttempt, sockets);
  return { throttle, fetch: broken(fetch) };
}

/** The layers above the breakers. */
function around(lanes: Fetch, stack: StackOptions): Fetch {
  const { options, clock, concurrency } = stack;
  const budgeted = retryBudget(
    {
      clock,
      maxWaitMs: options.maxWaitMs,
      mostAtOnce: () => Math.max(LEAST_RETRIES_AT_ONCE, Math.floor((concurrency?.limit ?? 0) / 10)),
      onWaiting: (change) => concurrency?.onWaiting(change),
    },
    stack.budgets,
  );
  const fallback = fallbackHost(stack.hosts.archiveUrl, stack.hosts.fallbackUrl);
  const retried = retryLayer(stack)(verify(budgeted(fallback(lanes))));
  return follow(stack.followers)(retried);
}

function retryLayer(stack: StackOptions): Layer {
  const { options, clock, observer, figures, concurrency, failover, waitSignal } = stack;
  return retry({
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
}

function bandwidthOf({ options, clock, signal, common }: AttemptOptions): TransportOptions['bandwidth'] {
  const { bwlimitBytesPerSecond: limit } = options;
  if (limit === undefined) return UNLIMITED;
  const used = common?.once(`bandwidth ${limit}`, () => ({ untilMs: clock.monotonic() }));
  return limitBandwidth(limit, clock, signal, used);
}

function knownHosts(hosts: ExchangeHosts): ReadonlySet<string> {
  const { archiveUrl, listingUrl, fallbackUrl = archiveUrl, restUrls, knownUrls } = hosts;
  return new Set([archiveUrl, listingUrl, fallbackUrl, ...Object.values(restUrls), ...knownUrls].map(hostOf));
}

/** Only attempts for objects and sidecars count for the concurrency. The listing and REST have other hosts and limits. */
function isOfArchive({ bucket }: Pick<FetchRequest, 'bucket'>): boolean {
  return bucket === 'archive';
}

// Several lanes as one stack: their permits, connections and figures together.

type Limits = Pick<Throttle, 'figures' | 'setBudget' | 'states'>;

interface Lane {
  /** Undefined for the lane without a proxy. */
  readonly label: string | undefined;
  readonly throttle: Throttle;
  readonly pools: Pools;
}

function joinLimits(lanes: readonly Lane[]): Limits {
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
      return lanes.map(({ throttle }) => throttle.figures).reduce((a, b) => sumOf<ThrottleFigures>(a, b));
    },
  };
}

/** Only the first lane looks up the names of hosts. */
function joinPools(lanes: readonly [Lane, ...Lane[]]): Pick<Pools, 'close' | 'dns' | 'use'> {
  return {
    dns: () => lanes[0].pools.dns(),
    use: () => lanes.map(({ pools }) => pools.use()).reduce((a, b) => sumOf<PoolUse>(a, b)),
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
