/** Puts the layers of one request together. Each attempt takes its own permit and has its own deadlines. */
import type { Clock } from '../model/clock.js';
import type { Observer } from '../model/observer.js';
import type { SharedResources } from '../model/shared-resources.js';
import type { Proxies } from '../options/environment.js';
import type { Options } from '../options/flags.js';
import type { Concurrency } from '../queue/concurrency.js';
import type { Costs } from '../report/costs.js';
import type { Figures } from '../report/figures.js';
import type { StageTimes } from '../report/stage-times.js';
import { loadRetryPresets } from '../source/facts.js';
import { placeOf } from './bans.js';
import type { Bans } from './bans.js';
import type { ExchangeHosts } from './exchange-hosts.js';
import type { Fetch, FetchRequest, Layer } from './fetch.js';
import { limitedBuckets } from './limits.js';
import { breaker } from './retry/breaker.js';
import { retryBudget } from './retry/budget.js';
import { fallbackHost } from './retry/fallback-host.js';
import type { Failover, FallbackHost } from './retry/fallback-host.js';
import type { BackoffOptions } from './retry/retry.js';
import { endWaits, retry } from './retry/retry.js';
import { Demand } from './throttle/priority-queue.js';
import { SharedCount } from './throttle/shared-count.js';
import { SharedBuckets, Throttle } from './throttle/throttle.js';
import { limitBandwidth, UNLIMITED } from './transport/bandwidth.js';
import { isBadContent, loadSignOf, measure } from './transport/measure.js';
import type { AttemptObserver } from './transport/measure.js';
import { createPools } from './transport/pool.js';
import type { Pools } from './transport/pool.js';
import { redirect } from './transport/redirect.js';
import { poolOptions, withSockets } from './transport/sockets.js';
import { timeout } from './transport/timeout.js';
import { createTransport } from './transport/transport.js';
import type { TransportOptions } from './transport/transport.js';
import { verify } from './transport/verify-body.js';

export interface StackOptions {
  readonly options: Options;
  readonly clock: Clock;
  readonly hosts: ExchangeHosts;
  readonly observer: Observer;
  readonly figures: Figures;
  readonly costs: Costs;
  readonly times: StageTimes;
  readonly concurrency: Concurrency;
  readonly bans: Pick<Bans, 'leftMs' | 'remember'>;
  readonly failover?: Failover;
  readonly proxies: Proxies;
  /** Folder that the runs of this machine share. */
  readonly stateFolder: string;
  /** Whether the event loop of this process is late. */
  readonly isLate: () => boolean;
  readonly signal: AbortSignal;
  /** Resources that the jobs of the process share. */
  readonly common?: SharedResources | undefined;
  /** Aborts when waiting ends. */
  readonly waitSignal?: AbortSignal | undefined;
  /** One attempt; by default through the sockets of undici. */
  readonly wire?: Fetch | undefined;
}

export interface Stack {
  readonly fetch: Fetch;
  readonly throttle: Throttle;
  readonly pools: Pools;
  close(): Promise<void>;
}

/** Least number of retries of one host at once, at any concurrency. */
const LEAST_RETRIES_AT_ONCE = 5;

/** Outermost first: endWaits (with a deadline), retry, verify, retryBudget, fallback host, breaker, throttle, sockets (if limited), timeout, measure, redirect, transport. */
export function createStack(stack: StackOptions): Stack {
  const pools = createPools(poolOptions(stack));
  const wire = stack.wire ?? createTransport({ ...wireOptions(stack), pools });
  return stackOf(pools, layersOver(wire, stack));
}

function stackOf(pools: Pools, layers: Pick<Stack, 'fetch' | 'throttle'>): Stack {
  return {
    ...layers,
    pools,
    close: async () => {
      layers.throttle.close();
      await pools.close();
    },
  };
}

function wireOptions(stack: AttemptOptions): Omit<TransportOptions, 'pools'> {
  const { clock, hosts } = stack;
  return { clock, bandwidth: bandwidthOf(stack), readRefusal: hosts.readRefusal };
}

type AttemptOptions = Omit<
  StackOptions,
  'figures' | 'costs' | 'times' | 'concurrency' | 'isLate' | 'waitSignal'
>;

/** A stack without retries: each request is one attempt with its deadlines. */
export function createAttempt(stack: AttemptOptions, observer: AttemptObserver): Stack {
  const pools = createPools(poolOptions(stack));
  const wire = createTransport({ ...wireOptions(stack), pools });
  return stackOf(pools, attemptOver(wire, stack, observer));
}

function attemptOver(
  wire: Fetch,
  stack: AttemptOptions,
  observer: AttemptObserver,
): Pick<Stack, 'fetch' | 'throttle'> {
  const { options, clock } = stack;
  const throttle = createThrottle(stack);
  const timed = timeout({
    clock,
    headersMs: options.headersTimeoutMs,
    idleMs: options.idleTimeoutMs,
    totalMs: options.totalTimeoutMs,
  });
  const measured = measure(clock, observer);
  const sent = timed(measured(redirect(knownHosts(stack.hosts))(wire)));
  return { throttle, fetch: throttle.layer(withSockets(stack)(sent)) };
}

export function layersOver(wire: Fetch, stack: StackOptions): Pick<Stack, 'fetch' | 'throttle'> {
  const { options, clock, observer, figures, costs, times, concurrency } = stack;
  const broken = breaker({
    clock,
    openMs: options.breakerOpenMs,
    blockedMs: options.blockedWaitMs,
    failuresToOpen: options.breakerFailures,
    successesToClose: options.breakerSuccesses,
    onChange: (host, state) => {
      observer.event('breaker', { host, state });
    },
    failover: stack.failover,
    hintOf: (host) => hintOf(stack.hosts, host),
  });
  const { throttle, fetch: once } = attemptOver(costs.wire(wire), stack, {
    begun: (request) => {
      figures.begun();
      if (isOfArchive(request)) concurrency.onBegun();
    },
    ended: (attempt) => {
      figures.ended(attempt);
      times.onAttempt(attempt);
      if (isOfArchive(attempt.request)) concurrency.onEnded(loadSignOf(attempt, stack.isLate()));
      observer.attempt(attempt);
    },
  });
  const budgeted = retryBudget({
    clock,
    maxWaitMs: options.maxWaitMs,
    mostAtOnce: () => Math.max(LEAST_RETRIES_AT_ONCE, Math.floor(concurrency.limit / 10)),
    onWaiting: (change) => {
      concurrency.onWaiting(change);
    },
  });
  const fetch = times.layer(
    costs.layer(retryLayer(stack)(verify(budgeted(fallbackHost(fallbackOf(stack.hosts))(broken(once)))))),
  );
  return { throttle, fetch: stack.waitSignal === undefined ? fetch : endWaits(stack.waitSignal)(fetch) };
}

function retryLayer({ options, clock, observer, figures, concurrency, failover }: StackOptions): Layer {
  return retry({
    clock,
    failover,
    ...backoffOf(options),
    maxWaitMs: options.maxWaitMs,
    onRetry: (event) => {
      figures.onRetry(event);
      if (isBadContent(event.error)) concurrency.onBadContent(clock.monotonic());
      observer.retry(event);
    },
    onEnd: (retries, error) => {
      figures.onRequestEnd(retries, error);
    },
  });
}

/** The retry preset, overridden by single flags. */
export function backoffOf(options: Options): BackoffOptions & { retries: number } {
  const preset = loadRetryPresets()[options.retryPreset];
  return {
    ...preset,
    retries: options.retries ?? preset.retries,
    baseDelayMs: options.retryDelayMs ?? preset.baseDelayMs,
    factor: options.retryFactor ?? preset.factor,
    maxDelayMs: options.retryMaxDelayMs ?? preset.maxDelayMs,
    strategy: options.retryStrategy ?? preset.strategy,
  };
}

function bandwidthOf({ options, clock, signal, common }: AttemptOptions): TransportOptions['bandwidth'] {
  const { bwlimitBytesPerSecond } = options;
  if (bwlimitBytesPerSecond === undefined) return UNLIMITED;
  if (common === undefined) return limitBandwidth(bwlimitBytesPerSecond, clock, signal);
  return common.once(`bandwidth ${bwlimitBytesPerSecond}`, () =>
    limitBandwidth(bwlimitBytesPerSecond, clock, common.signal),
  );
}

function createThrottle(stack: AttemptOptions): Throttle {
  const { options, clock, hosts, bans, observer, stateFolder, failover } = stack;
  const warn = (text: string): void => {
    observer.warn(text);
  };
  return new Throttle({
    clock,
    buckets: limitedBuckets(hosts, options),
    usedPermits: hosts.usedPermits,
    maxWaitMs: options.maxWaitMs,
    shared: sharedBuckets(stack),
    // Buckets of REST are budgets, so waiting for them is usual.
    longestWaitMs: { archive: failover?.longestWaitMs, listing: failover?.longestWaitMs },
    countOf: (name) => new SharedCount({ folder: stateFolder, name, warn }),
    demandOf: (name) => new Demand({ folder: stateFolder, name, clock, warn }),
    banLeftMs: ({ bucket, url }) => bans.leftMs(placeOf(bucket, url)),
    onBan: ({ bucket, url }, error, delayMs) => {
      const until = clock.now() + delayMs;
      for (const kin of hosts.bannedWith(url))
        bans.remember(placeOf(bucket, kin), { until, why: error.message });
    },
  });
}

/** Buckets that the jobs of one process share, if they ask the same hosts. */
function sharedBuckets({ common, hosts, stateFolder }: AttemptOptions): SharedBuckets | undefined {
  const urls = [hosts.archiveUrl, hosts.listingUrl, ...Object.values(hosts.restUrls)];
  const name = `buckets ${JSON.stringify([stateFolder, ...urls])}`;
  return common?.once(name, () => new SharedBuckets());
}

function fallbackOf({ archiveUrl: first, fallbackUrl: other }: ExchangeHosts): FallbackHost | undefined {
  return other === undefined || other === first ? undefined : { first, other };
}

function hintOf({ restUrls }: ExchangeHosts, host: string): string {
  const ofRest = Object.entries(restUrls).filter(([, url]) => new URL(url).host === host);
  if (ofRest.length === 0) return 'check the network, --archive-url and --listing-url';
  return `check the network and ${ofRest.map(([name]) => `--${name}`).join(', ')}`;
}

function knownHosts({
  archiveUrl,
  listingUrl,
  fallbackUrl,
  restUrls,
  knownUrls,
}: ExchangeHosts): ReadonlySet<string> {
  const fallback = fallbackUrl === undefined ? [] : [fallbackUrl];
  const urls = [archiveUrl, listingUrl, ...fallback, ...Object.values(restUrls), ...knownUrls];
  return new Set(urls.map((url) => new URL(url).host));
}

/** The concurrency is that of the archive. Its listing and REST have other hosts with limits of their own. */
function isOfArchive({ bucket }: Pick<FetchRequest, 'bucket'>): boolean {
  return bucket === 'archive';
}
