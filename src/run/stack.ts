/** The layers of one request, put together: every attempt takes its own permit and its own deadlines. */
import { CryptodlError } from '../errors.js';
import type { AttemptEnd, Fetch, FetchRequest, Layer } from '../fetch.js';
import type { Clock } from '../clock.js';
import type { Observer } from '../observer.js';
import type { Options } from '../options/flags.js';
import type { Proxies } from '../options/surroundings.js';
import type { Concurrency, LoadSign } from '../queue/concurrency.js';
import type { Costs } from '../report/costs.js';
import type { Figures } from '../report/figures.js';
import type { StageTimes } from '../report/stage-times.js';
import type { BackoffOptions } from '../retry/backoff.js';
import { breaker } from '../retry/breaker.js';
import { retryBudget } from '../retry/budget.js';
import { elsewhere } from '../retry/elsewhere.js';
import type { Twin } from '../retry/elsewhere.js';
import type { Failover } from '../retry/failover.js';
import { patience } from '../retry/patience.js';
import { retry } from '../retry/retry.js';
import type { Common } from './common.js';
import { limitedBuckets } from './limits.js';
import { bannedWith } from './rest-session.js';
import { poolOptions, withSockets } from './sockets.js';
import { placeOf } from '../state/bans.js';
import type { Bans } from '../state/bans.js';
import { Demand } from '../throttle/demand.js';
import { SharedCount } from '../throttle/shared-count.js';
import { SharedBuckets, Throttle } from '../throttle/throttle.js';
import { limitBandwidth, UNLIMITED } from '../transport/bandwidth.js';
import { measure } from '../transport/measure.js';
import type { AttemptObserver } from '../transport/measure.js';
import { createPools } from '../transport/pool.js';
import type { Pools } from '../transport/pool.js';
import { redirect } from '../transport/redirect.js';
import { timeout } from '../transport/timeout.js';
import { createTransport } from '../transport/transport.js';
import { verify } from '../transport/verify.js';
import { loadRetryPresets } from '../venue/facts.js';
import type { Venue } from '../venue/venue.js';

export interface StackOptions {
  readonly options: Options;
  readonly clock: Clock;
  readonly venue: Venue;
  readonly observer: Observer;
  readonly figures: Figures;
  readonly costs: Costs;
  readonly times: StageTimes;
  readonly concurrency: Concurrency;
  readonly bans: Pick<Bans, 'leftMs' | 'remember'>;
  readonly failover?: Failover;
  readonly proxies: Proxies;
  /** What the runs of this machine share. */
  readonly stateFolder: string;
  readonly listingUrl: string;
  /** This process comes late to its own work. */
  readonly isLate: () => boolean;
  readonly signal: AbortSignal;
  /** With the other jobs of the process. */
  readonly common?: Common | undefined;
  /** Aborts when nothing is waited for any more. */
  readonly patience?: AbortSignal | undefined;
  /** One attempt on the wire; through sockets when nothing is said. */
  readonly wire?: Fetch | undefined;
}

export interface Stack {
  readonly fetch: Fetch;
  readonly throttle: Throttle;
  readonly pools: Pools;
  close(): Promise<void>;
}

type Layers = Pick<Stack, 'fetch' | 'throttle'>;

/** Retries of one host at once, however low the concurrency is (mechanism A3). */
const LEAST_RETRIES_AT_ONCE = 5;

/** Outermost first: patience (when there is a last moment), retry, verify, retryBudget, elsewhere, breaker, throttle, sockets (when they are limited), timeout, measure, redirect, transport. */
export function createStack(stack: StackOptions): Stack {
  const pools = createPools(poolOptions(stack));
  const wire = stack.wire ?? createTransport({ pools, clock: stack.clock, bandwidth: bandwidthOf(stack) });
  return stackOf(pools, layersOver(wire, stack));
}

function stackOf(pools: Pools, layers: Layers): Stack {
  return {
    ...layers,
    pools,
    close: async () => {
      layers.throttle.close();
      await pools.close();
    },
  };
}

type AttemptOptions = Omit<
  StackOptions,
  'figures' | 'costs' | 'times' | 'concurrency' | 'isLate' | 'patience'
>;

/** A request as one attempt, which is counted and has its deadlines; nothing is asked twice. */
export function createAttempt(stack: AttemptOptions, observer: AttemptObserver): Stack {
  const pools = createPools(poolOptions(stack));
  const wire = createTransport({ pools, clock: stack.clock, bandwidth: bandwidthOf(stack) });
  return stackOf(pools, attemptOver(wire, stack, observer));
}

function attemptOver(wire: Fetch, stack: AttemptOptions, observer: AttemptObserver): Layers {
  const { options, clock } = stack;
  const throttle = createThrottle(stack);
  const timed = timeout({
    clock,
    headersMs: options['headers-timeout'],
    idleMs: options['idle-timeout'],
    totalMs: options['total-timeout'],
  });
  const measured = measure(clock, observer);
  const sent = timed(measured(redirect(knownHosts(stack))(wire)));
  return { throttle, fetch: throttle.layer(withSockets(stack)(sent)) };
}

export function layersOver(wire: Fetch, stack: StackOptions): Layers {
  const { options, clock, observer, figures, costs, times, concurrency } = stack;
  const twin = twinOf(stack);
  const broken = breaker({
    clock,
    openMs: options['breaker-open'],
    blockedMs: options['blocked-wait'],
    failuresToOpen: options['breaker-failures'],
    successesToClose: options['breaker-successes'],
    onChange: (host, state) => {
      observer.event('breaker', { host, state });
    },
    failover: stack.failover,
    hintOf: (host) => hintOf(options, host),
  });
  const { throttle, fetch: once } = attemptOver(costs.wire(wire), stack, {
    begun: (request) => {
      figures.begun();
      if (isOfArchive(request)) concurrency.onBegun();
    },
    ended: (attempt) => {
      figures.ended(attempt);
      times.onAttempt(attempt);
      if (isOfArchive(attempt.request)) concurrency.onEnded(signOf(attempt, stack.isLate()));
      observer.attempt(attempt);
    },
  });
  const budgeted = retryBudget({
    clock,
    maxWaitMs: options['max-wait'],
    mostAtOnce: () => Math.max(LEAST_RETRIES_AT_ONCE, Math.floor(concurrency.limit / 10)),
    onWaiting: (change) => {
      concurrency.onWaiting(change);
    },
  });
  const tried = retryLayer(stack);
  const fetch = times.layer(costs.layer(tried(verify(budgeted(elsewhere(twin)(broken(once)))))));
  return { throttle, fetch: stack.patience === undefined ? fetch : patience(stack.patience)(fetch) };
}

function retryLayer({ options, clock, observer, figures, concurrency, failover }: StackOptions): Layer {
  return retry({
    clock,
    failover,
    ...backoffOf(options),
    maxWaitMs: options['max-wait'],
    onRetry: (event) => {
      figures.onRetry(event);
      if (BAD_CONTENT.has(event.error.code)) concurrency.onBadContent(clock.monotonic());
      observer.retry(event);
    },
    onEnd: (retries, error) => {
      figures.onRequestEnd(retries, error);
    },
  });
}

/** The preset, and what was asked for by itself. */
export function backoffOf(options: Options): BackoffOptions & { retries: number } {
  const preset = loadRetryPresets()[options['retry-preset']];
  return {
    ...preset,
    retries: options.retries ?? preset.retries,
    baseDelayMs: options['retry-delay'] ?? preset.baseDelayMs,
    factor: options['retry-factor'] ?? preset.factor,
    maxDelayMs: options['retry-max-delay'] ?? preset.maxDelayMs,
    strategy: options['retry-strategy'] ?? preset.strategy,
  };
}

function bandwidthOf({
  options,
  clock,
  signal,
  common,
}: AttemptOptions): Parameters<typeof createTransport>[0]['bandwidth'] {
  const { bwlimit } = options;
  if (bwlimit === undefined) return UNLIMITED;
  if (common === undefined) return limitBandwidth(bwlimit, clock, signal);
  return common.once(`bandwidth ${bwlimit}`, () => limitBandwidth(bwlimit, clock, common.signal));
}

function createThrottle(stack: AttemptOptions): Throttle {
  const { options, clock, venue, bans, observer, stateFolder, failover } = stack;
  const warn = (text: string): void => {
    observer.warn(text);
  };
  return new Throttle({
    clock,
    buckets: limitedBuckets(venue, options),
    maxWaitMs: options['max-wait'],
    shared: sharedBuckets(stack),
    // Those of REST are budgets: runs wait for them all the time.
    longestWaitMs: { archive: failover?.longestWaitMs, listing: failover?.longestWaitMs },
    countOf: (name) => new SharedCount({ folder: stateFolder, name, warn }),
    demandOf: (name) => new Demand({ folder: stateFolder, name, clock, warn }),
    banLeftMs: ({ bucket, url }) => bans.leftMs(placeOf(bucket, url)),
    onBan: ({ bucket, url }, error, delayMs) => {
      const until = clock.now() + delayMs;
      for (const kin of bannedWith(options, url))
        bans.remember(placeOf(bucket, kin), { until, why: error.message });
    },
  });
}

/** Jobs of one process that ask the same hosts. */
function sharedBuckets({
  common,
  options,
  listingUrl,
  stateFolder,
}: AttemptOptions): SharedBuckets | undefined {
  const hosts = [options['archive-url'], listingUrl, ...REST_URLS.map((name) => options[name])];
  const name = `buckets ${JSON.stringify([stateFolder, ...hosts])}`;
  return common?.once(name, () => new SharedBuckets());
}

/** Whoever moved the archive has no other host, unless it is given. */
function twinOf({ options, venue }: AttemptOptions): Twin | undefined {
  const first = options['archive-url'];
  const other = options['fallback-url'] ?? (first === venue.hosts.archive ? venue.hosts.origin : undefined);
  return other === undefined || other === first ? undefined : { first, other };
}

function hintOf(options: StackOptions['options'], host: string): string {
  const ofRest = REST_URLS.filter((name) => new URL(options[name]).host === host);
  if (ofRest.length === 0) return 'check the network, --archive-url and --listing-url';
  return `check the network and ${ofRest.map((name) => `--${name}`).join(', ')}`;
}

const REST_URLS = ['fapi-url', 'dapi-url', 'spot-url'] as const;

function knownHosts(stack: AttemptOptions): ReadonlySet<string> {
  const { options, venue, listingUrl } = stack;
  const twin = twinOf(stack);
  const urls = [
    options['archive-url'],
    listingUrl,
    ...Object.values(venue.hosts),
    ...REST_URLS.map((name) => options[name]),
    ...(twin === undefined ? [] : [twin.other]),
  ];
  return new Set(urls.map((url) => new URL(url).host));
}

const REFUSED: ReadonlySet<string> = new Set([
  'rate-limited',
  'banned',
  'http-server-error',
  'connect-timeout',
]);
const BAD_CONTENT: ReadonlySet<string> = new Set([
  'body-damaged',
  'checksum-mismatch',
  'sidecar-stale',
  'zip-truncated',
  'not-a-zip',
]);

/** The level of concurrency is that of the archive: its listing and REST have other hosts, with limits of their own. */
function isOfArchive({ bucket }: Pick<FetchRequest, 'bucket'>): boolean {
  return bucket === 'archive';
}

function signOf({ request, begunAt, sentAt, endedAt, error }: AttemptEnd, isLate: boolean): LoadSign {
  // A sidecar is expected to be nothing in particular.
  return {
    begunAt,
    sentAt,
    endedAt,
    result: resultOf(error),
    isObject: request.expect !== undefined,
    isLate,
  };
}

function resultOf(error: unknown): LoadSign['result'] {
  if (error === undefined) return 'good';
  if (!(error instanceof CryptodlError)) return 'other';
  if (REFUSED.has(error.code)) return 'refused';
  return error.hostFault ? 'troubled' : 'other';
}
