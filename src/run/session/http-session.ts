/** The requests of a run to the hosts of an exchange: one stack of layers, and the listing, sidecars and REST that use it. */
import { join } from 'node:path';
import { Bans } from '../../http/throttle/bans.js';
import { MOST_AT_ONCE } from '../../plan/options/network-flags.js';
import type { Fetch } from '../../model/fetch.js';
import { ResponseCache } from '../../http/response-cache.js';
import { Failover } from '../../http/throttle/failover.js';
import type { RetryBudget } from '../../http/retry/budget.js';
import { createStack } from '../../http/stack.js';
import type { Stack } from '../../http/stack-options.js';
import { egressGroupOf } from '../../http/throttle/group.js';
import { usage } from '../../model/errors.js';
import { openFileLimit } from '../../files/machine.js';
import type { Observer } from '../../model/observer.js';
import { stateFolder } from '../../files/environment.js';
import { proxiesOf } from '../../files/proxies.js';
import type { VerbName } from '../../plan/options/verb-spec.js';
import type { Options } from '../../plan/options/flags.js';
import type { SessionFlag, VerbRequest } from '../../plan/options/verb-request.js';
import type { Probe } from '../../plan/series-listing.js';
import { Concurrency, allowedInFlight, mostInFlight } from '../pacing/concurrency.js';
import { Costs, LoopDelay } from '../report/costs.js';
import { Figures } from '../report/figures.js';
import { networkFigures } from '../report/network-figures.js';
import type { HostStates, LiveRun } from '../report/live-run.js';
import { marketsOf } from '../../plan/select/select-datasets.js';
import { archiveAnswers, probeSidecar } from '../../exchange/archive-client.js';
import { openListing } from '../../exchange/listing.js';
import { exchangeHosts, refuseBanned } from '../../exchange/hosts.js';

export interface HttpSessionRequest extends Omit<VerbRequest<SessionFlag>, 'read' | 'signal'> {
  /** Undefined for verbs that run no plan. */
  readonly verb?: VerbName | undefined;
  /** Sends one attempt of a request. Default: over sockets. */
  readonly wire?: Fetch | undefined;
  readonly live: LiveRun;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  /** The number of objects in flight. Default: the run has its own. */
  readonly concurrency?: Concurrency | undefined;
}

interface Signals {
  readonly signal: AbortSignal;
  /** Aborts when the waits of requests end. Undefined: `signal` ends them. */
  readonly waitSignal: AbortSignal | undefined;
}

/** The caller must close the requests. Throws usage errors for options that do not fit this machine or each other. */
export function openHttp(request: HttpSessionRequest, signals: Signals) {
  const { clock, observer, nowMs, exchange, surroundings } = request;
  const { options } = request.resolved;
  warnOfMany(request.verb, options, observer);
  const { stack, bans, hasLanes, failover, close, ...figures } = openStack(request, signals);
  const copies = new ResponseCache({
    folder: join(stateFolder(options, surroundings), 'cache'),
    nowMs,
    clock,
    isReadOnly: options.dryRun,
    warn: observer.warn.bind(observer),
  });
  const { fetch, throttle } = stack;
  const { signal } = signals;
  const access = { fetch, options, archive: exchange.archive, failover, signal };
  const http = {
    ...figures,
    fetch,
    listing: openListing({ access, url: options.listingUrl, copies, nowMs, clock, observer }),
    probe: ((key) => probeSidecar(access, key)) satisfies Probe,
    /** Whether the archive or its fallback host now answers a request for the sidecar of an object (the object itself, if there are no sidecars), also with 404. */
    archiveAnswers: (key: string) => archiveAnswers(access, key),
    rest: exchange.rest.open({ options, fetch, throttle, copies, nowMs, observer, signal }),
    refuseBanned: async (verb: VerbName): Promise<void> => {
      // Bans of this machine's address do not apply to proxies, and one of several may be banned.
      if (hasLanes) return;
      await refuseBanned(bans, exchange, options, {
        isRest: verb === 'metrics',
        markets: marketsOf(exchange, options),
      });
    },
    failover,
  };
  return {
    http,
    close: async (): Promise<void> => {
      await copies.close();
      await close();
    },
  };
}

/** The first level of `--concurrency auto`. The archive answers 30 to 50 objects in flight well. */
export const ARCHIVE_START = 30;

function openStack(request: HttpSessionRequest, signals: Signals) {
  const { clock, observer } = request;
  const { options } = request.resolved;
  const folder = stateFolder(options, request.surroundings);
  const { proxies, hasLanes } = lanesOf(request);
  const failover = new Failover(options.fill !== undefined || options.join !== undefined);
  const warn = observer.warn.bind(observer);
  const figures = new Figures(request.live.counts);
  const costs = new Costs(clock);
  const { concurrency = new Concurrency({ choice: options.concurrency, start: ARCHIVE_START }) } = request;
  concurrency.onLevel = (change) => observer.event('concurrency', change);
  const group = egressGroupOf(options, { clock, warn }, request.common);
  const bans = new Bans({ folder, clock, warn, group });
  const budgets = new Map<string, RetryBudget>();
  const stack = createStack({
    ...request,
    ...signals,
    budgets,
    options: { ...options, mostInFlight: mostInFlight(options.concurrency) },
    hosts: exchangeHosts(options, request.exchange),
    figures,
    followers: [request.live, costs],
    concurrency,
    bans,
    failover,
    proxies,
    stateFolder: folder,
    group,
    isLate: () => loopDelay.isLate(),
  });
  // Both begin after the stack, which may refuse an option: their timers would be left behind.
  group?.enter();
  const loopDelay = new LoopDelay();
  loopDelay.start();
  return {
    stack,
    bans,
    hasLanes,
    failover,
    concurrency,
    network: networkFigures({ clock, stack, figures, costs, concurrency, loopDelay }),
    hosts: () => hostStates(stack, figures, budgets),
    close: async (): Promise<void> => {
      loopDelay.stop();
      await bans.written();
      await stack.close();
      await group?.leave();
    },
  };
}

function lanesOf({ resolved: { options }, surroundings }: HttpSessionRequest) {
  const proxies = proxiesOf(options.proxy, surroundings);
  const hasLanes = proxies.several.length > 1;
  // The programs of a group share one public address, and each proxy has another one.
  if (options.egressGroup !== undefined && hasLanes)
    throw usage(
      '--egress-group is for one public address, and --proxy names several proxies',
      'leave one of them out',
    );
  return { proxies, hasLanes };
}

function hostStates(stack: Stack, figures: Figures, budgets: ReadonlyMap<string, RetryBudget>): HostStates {
  return {
    buckets: stack.throttle.states,
    breakers: figures.openBreakers,
    deadProxies: stack.proxies().flatMap(({ proxy, isDead }) => (isDead ? [proxy] : [])),
    retryBudgets: Object.fromEntries([...budgets].map(([host, { state }]) => [host, state])),
  };
}

/** More requests at once do not help: at 0.3 s per answer, 15 in flight use up the largest REST budget, that of spot. */
const REST_MOST = 20;

function warnOfMany(
  verb: VerbName | undefined,
  { concurrency, join: joined }: Options<'concurrency' | 'join'>,
  observer: Pick<Observer, 'warn'>,
): void {
  const [allowed, fits] = [allowedInFlight(concurrency), mostInFlight(concurrency)];
  if (fits < allowed)
    observer.warn(
      `--concurrency is ${fits} instead of ${allowed}: this process may open only ${openFileLimit()} files (ulimit -n)`,
    );
  const most = verb === 'metrics' && joined === undefined ? REST_MOST : MOST_AT_ONCE;
  if (concurrency.kind !== 'fixed' || concurrency.limit <= most) return;
  observer.warn(
    `--concurrency ${concurrency.limit}: more than ${most} objects in flight are not faster; the host may refuse this address`,
  );
}
