/** Composition root of a run: one request stack, one tally, one stop switch. */
import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { Bans } from '../http/bans.js';
import type { Fetch } from '../http/fetch.js';
import { warnOfMany } from '../http/limits.js';
import { Copies } from '../http/response-cache.js';
import { Failover } from '../http/retry/fallback-host.js';
import { createStack } from '../http/stack.js';
import type { StackOptions } from '../http/stack.js';
import type { Throttle, ThrottleFigures } from '../http/throttle/throttle.js';
import type { DnsFigures } from '../http/transport/dns-cache.js';
import type { PoolUse } from '../http/transport/pool.js';
import { socketUse } from '../http/transport/sockets.js';
import type { LakePaths } from '../lake/layout.js';
import { lakePaths } from '../lake/layout.js';
import type { Lock } from '../lake/lock.js';
import { Manifests } from '../lake/manifests.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError } from '../model/errors.js';
import type { Observer } from '../model/observer.js';
import type { Outcome, TaskOutcome } from '../model/outcome.js';
import { taskOutcome } from '../model/outcome.js';
import type { SharedResources } from '../model/shared-resources.js';
import type { ArchiveObject, PartitionPlan } from '../model/task.js';
import { proxiesOf, stateFolder } from '../options/environment.js';
import type { Surroundings } from '../options/environment.js';
import type { Verb } from '../options/flag-spec.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import type { Probe } from '../plan/series-listing.js';
import { Concurrency } from '../queue/concurrency.js';
import type { Settled } from '../queue/concurrency.js';
import { Costs, LoopDelay } from '../report/costs.js';
import type { CostFigures } from '../report/costs.js';
import { Figures } from '../report/figures.js';
import type { WireFigures } from '../report/figures.js';
import { StageTimes } from '../report/stage-times.js';
import { Tally } from '../report/tally.js';
import { marketsOf } from '../select/select-datasets.js';
import { archiveAnswers, probeSidecar } from '../source/archive-client.js';
import { openListing } from '../source/listing-session.js';
import type { Listing } from '../source/listing.js';
import { exchangeHosts, listingUrl, refuseBanned } from '../source/routes.js';
import type { Rest, Source } from '../source/source.js';
import { absolutePath } from '../text/printable.js';
import { Deadline } from './deadline.js';
import { runFolder } from './run-paths.js';

export interface Session {
  readonly options: Options;
  readonly clock: Clock;
  /** Wall clock, or what --now says. */
  readonly nowMs: number;
  readonly venue: Source;
  readonly paths: LakePaths;
  readonly manifests: Manifests;
  /** Spool of the run: one name per lake, so that the next run finds what a killed one left; another one when it belongs to another user. */
  runFolder: string;
  readonly observer: Observer;
  readonly tally: Tally;
  readonly times: StageTimes;
  readonly network: () => NetworkFigures;
  /** Counts the end of a task and passes it on; resolves when there is room for the next. */
  readonly tell: (plan: PartitionPlan, object: ArchiveObject, outcome: Outcome) => Promise<void>;
  readonly fetch: Fetch;
  readonly listing: Listing;
  readonly probe: Probe;
  /** Whether the archive, or its other host, says anything when it is asked for an object now. */
  readonly archiveAnswers: (key: string) => Promise<boolean>;
  readonly rest: Rest;
  /** Rejects while a place that the run will ask is banned. */
  readonly refuseBanned: (verb: Verb) => Promise<void>;
  readonly concurrency: Concurrency;
  readonly failover: Failover;
  readonly stop: AbortController;
  /** The right to write the lake; absent while it is only read. */
  readonly lock?: Lock;
  /** From when on nothing new is begun. */
  readonly deadline: Deadline;
  /** `nowMs`, and what has passed since the run began. */
  readonly currentMs: () => number;
  close(): Promise<void>;
}

/** Where `--concurrency auto` begins: 30 to 50 objects in flight suit the archive (facts, mechanism Z11). */
const ARCHIVE_START = 30;
/** What a run does on the wire, in numbers. */
export interface NetworkFigures extends WireFigures {
  /** Objects that may be in flight now, and how often that had to become less. */
  readonly concurrency: number;
  readonly retreats: number;
  /** Absent while nothing keeps the concurrency from growing. */
  readonly settled?: Settled;
  readonly limiter: ThrottleFigures & { readonly refusalsPerHour: number };
  readonly pool: PoolUse;
  readonly dns: DnsFigures;
  /** What waits and failures cost in wall time, in milliseconds. */
  readonly costMs: CostFigures;
  /** How late this process came to its own work. */
  readonly loopDelayMs: LoopDelay['figures'];
}

export interface SessionRequest {
  readonly source: Source;
  readonly resolved: Pick<Resolved, 'options'>;
  readonly surroundings: Surroundings;
  readonly observer: Observer;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Undefined for verbs that run no plan. */
  readonly verb?: Verb;
  readonly tell: (outcome: TaskOutcome) => Promise<void>;
  readonly wire?: Fetch;
  /** With the other jobs of the process. */
  readonly common?: SharedResources;
  /** Of the command; from now on when nothing is said. */
  readonly times?: StageTimes;
}

export function openSession(request: SessionRequest): Session {
  const { clock, observer, times = new StageTimes(clock) } = request;
  const { options } = request.resolved;
  const { home } = request.surroundings;
  const { source } = request;
  const paths = lakePaths(absolutePath(options.out, home));
  const stop = stopWith(request.signal);
  const tally = new Tally();
  const deadline = new Deadline({
    clock,
    maxDurationMs: options.maxDurationMs,
    stop,
    onOver: () => {
      observer.event('time-over', {});
    },
  });
  const failover = new Failover(options.fill !== undefined || options.join !== undefined);
  const wire = openWire(
    { ...request, times },
    {
      signal: stop.signal,
      waitSignal: deadline.waitSignal,
      failover,
    },
  );
  const nowMs = options.nowMs ?? clock.now();
  const openedAt = clock.monotonic();
  const copies = openCopies(request, nowMs);
  const { archive } = source;
  const asks = { fetch: wire.fetch, options, archive, failover, signal: stop.signal };
  return {
    options,
    clock,
    nowMs,
    currentMs: () => nowMs + clock.monotonic() - openedAt,
    venue: source,
    paths,
    manifests: new Manifests(),
    runFolder: runFolder(options, paths, home),
    observer,
    tally,
    times,
    network: wire.network,
    tell: (plan, object, outcome) => {
      tally.count({ symbol: plan.series.symbol, key: object.key }, outcome);
      return request.tell(taskOutcome(plan.series, object, outcome));
    },
    fetch: wire.fetch,
    listing: openListing({ asks, url: listingUrl(options, source), copies, nowMs, clock, observer }),
    probe: (key) => probeSidecar(asks, key),
    archiveAnswers: (key) => archiveAnswers(asks, key),
    rest: source.rest.open({
      options,
      fetch: wire.fetch,
      throttle: wire.throttle,
      copies,
      nowMs,
      observer,
      signal: stop.signal,
    }),
    refuseBanned: (verb) =>
      refuseBanned(wire.bans, source, options, { verb, markets: marketsOf(source, options) }),
    concurrency: wire.concurrency,
    failover,
    stop,
    deadline,
    close: async () => {
      deadline.close();
      stop.abort(new CryptodlError('interrupted', 'the run is over'));
      await copies.close();
      await wire.close();
    },
  };
}

function openCopies({ resolved, surroundings, clock, observer }: SessionRequest, nowMs: number): Copies {
  const { options } = resolved;
  return new Copies({
    folder: join(stateFolder(options, surroundings), 'cache'),
    nowMs,
    clock,
    isReadOnly: options.dryRun,
    warn: (message) => {
      observer.warn(message);
    },
  });
}

/** What is between a run and its hosts, and what is known of it. */
interface Wire {
  readonly fetch: Fetch;
  readonly concurrency: Concurrency;
  readonly bans: Bans;
  readonly throttle: Throttle;
  readonly network: () => NetworkFigures;
  close(): Promise<void>;
}

function openWire(
  request: SessionRequest & Pick<StackOptions, 'times'>,
  signals: Pick<StackOptions, 'signal' | 'waitSignal' | 'failover'>,
): Wire {
  const { clock, observer, surroundings } = request;
  const { options } = request.resolved;
  warnOfMany(request.verb, options, observer);
  const folder = stateFolder(options, surroundings);
  const warn = (text: string): void => {
    observer.warn(text);
  };
  const figures = new Figures();
  const costs = new Costs(clock);
  const loopDelay = new LoopDelay();
  const concurrency = new Concurrency({ choice: options.concurrency, start: ARCHIVE_START });
  concurrency.onLevel = (change) => {
    observer.event('concurrency', change);
  };
  const bans = new Bans({ folder, clock, warn });
  const stack = createStack({
    options,
    clock,
    hosts: exchangeHosts(options, request.source),
    observer,
    figures,
    costs,
    times: request.times,
    concurrency,
    bans,
    ...signals,
    proxies: proxiesOf(options.proxy, surroundings),
    wire: request.wire,
    common: request.common,
    stateFolder: folder,
    isLate: () => loopDelay.isLate(),
  });
  loopDelay.start();
  const openedAt = clock.monotonic();
  return {
    fetch: stack.fetch,
    throttle: stack.throttle,
    concurrency,
    bans,
    network: () => ({
      ...figures.figures,
      concurrency: concurrency.limit,
      retreats: concurrency.retreats,
      ...(concurrency.settled === undefined ? {} : { settled: concurrency.settled }),
      limiter: perHour(stack.throttle.figures, clock.monotonic() - openedAt),
      pool: socketUse(stack.pools, costs),
      dns: stack.pools.names(),
      costMs: costs.figures,
      loopDelayMs: loopDelay.figures,
    }),
    close: async () => {
      loopDelay.stop();
      await bans.written();
      await stack.close();
    },
  };
}

function perHour(figures: ThrottleFigures, elapsedMs: number): NetworkFigures['limiter'] {
  const hours = Math.max(elapsedMs, 1) / 3_600_000;
  return { ...figures, refusalsPerHour: Math.round(figures.refusals / hours) };
}

/** Aborts with a typed error, whatever the reason outside. */
function stopWith(signal: AbortSignal): AbortController {
  const stop = new AbortController();
  // Every request in flight listens.
  setMaxListeners(0, stop.signal);
  const abort = (): void => {
    const reason: unknown = signal.reason;
    const known = reason instanceof CryptodlError ? reason : undefined;
    stop.abort(known ?? new CryptodlError('interrupted', 'the run was ended from outside'));
  };
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true, signal: stop.signal });
  return stop;
}
