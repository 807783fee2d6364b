/** Composition root of `cryptodl doctor`: starts the checks at once, yields their results in a fixed order, then the publication hours. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setMaxListeners } from 'node:events';
import { duckdbVersion } from '../convert/duckdb.js';
import { mostInFlight } from '../queue/concurrency.js';
import { Bans, placeOf } from '../http/bans.js';
import type { AttemptEnd, Fetch } from '../http/fetch.js';
import { createAttempt } from '../http/stack.js';
import { egressGroupOf } from '../http/throttle/group.js';
import { authoritiesOf } from '../http/transport/sockets.js';
import { tryBackingOut } from '../lake/backing.js';
import { lakePaths, refuseLinkedFolders, runFolder } from '../lake/layout.js';
import { CryptodlError } from '../model/errors.js';
import { SILENT_OBSERVER } from '../model/observer.js';
import { proxiesOf, stateFolder } from '../options/environment.js';
import { publicationHours, publicationText } from '../source/publication-hours.js';
import { exchangeHosts } from '../source/routes.js';
import { datasetsOf, marketNames } from '../source/venue.js';
import { absolutePath, shownPath } from '../text/printable.js';
import type { TimedFetch } from './check-endpoints.js';
import { checkBans, clearBans } from './check-endpoints.js';
import { hostsOf } from './check-hosts.js';
import type { CheckContext, DoctorRequest } from './check-hosts.js';
import { bucketResult, checkFolder, checkLeftovers, checkLock } from './check-lake.js';
import { checkVersions } from './check-machine.js';
import { checkRedis } from './check-redis.js';
import { asResult, checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';
import { checkSettings } from './check-settings.js';
import { checkNetwork } from './check-network.js';

/** The deadline of a request is this much later than that of one attempt, because other runs may use up the request limit. */
const PERMIT_WAIT_MS = 3000;
/** Far more than a listing page with a few keys needs. */
const MAX_BYTES = 1024 * 1024;

/** Yields each result as soon as it and all earlier ones are known. Throws usage errors before the first result. */
export async function* runChecks(request: DoctorRequest): AsyncGenerator<CheckResult> {
  // All checks listen for the abort; Node warns of more than 10 listeners.
  setMaxListeners(0, request.signal);
  const opened = openContext(request);
  const { context } = opened;
  try {
    const aborted = whenAborted(request.signal);
    for (const check of startChecks(context)) yield* await Promise.race([check, aborted]);
    yield* publicationResults(context);
  } finally {
    await context.bans.written();
    await opened.close();
  }
}

/** The publication hour of each dataset that has daily objects in the cached listings. */
async function* publicationResults(context: CheckContext): AsyncGenerator<CheckResult> {
  const hoursOf = publicationHours(context);
  for (const market of marketNames(context.source))
    for (const spec of datasetsOf(context.source, market)) {
      const hour = await hoursOf(market, spec);
      if (hour === undefined) continue;
      const { afterMs, by, objects, symbols } = hour;
      const words = {
        of: `${market} ${spec.name}`,
        figures: { afterMs, by, objects, symbols: symbols.join(',') },
      };
      yield checkResult('published', 'ok', publicationText(hour), words);
    }
}

/** `doctor --clear-bans HOST`: runs no check and sends no request. */
export async function* runClearBans(request: DoctorRequest, host: string): AsyncGenerator<CheckResult> {
  const { options, surroundings, clock, warn } = request;
  const group = egressGroupOf(options, { clock, warn });
  group?.enter();
  try {
    yield await clearBans(new Bans({ folder: stateFolder(options, surroundings), clock, warn, group }), host);
  } finally {
    await group?.leave();
  }
}

/** Rejects on abort, and never resolves. */
function whenAborted(signal: AbortSignal): Promise<never> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener(
      'abort',
      () => {
        reject(signal.reason as Error);
      },
      { once: true },
    );
  });
  aborted.catch(() => undefined);
  return aborted;
}

function openContext(request: DoctorRequest): { context: CheckContext; close: () => Promise<void> } {
  const { options, surroundings, clock, signal, warn } = request;
  const hosts = exchangeHosts(options, request.source);
  const folder = stateFolder(options, surroundings);
  const proxies = proxiesOf(options.proxy, surroundings);
  const group = egressGroupOf(options, { clock, warn });
  const bans = new Bans({ folder, clock, warn, group });
  const ended = new Map<string, AttemptEnd>();
  const stack = createAttempt(
    {
      options: {
        ...options,
        mostInFlight: mostInFlight(options.concurrency),
        // The timer of each request limits its wait for a permit.
        maxWaitMs: Number.MAX_SAFE_INTEGER,
        // With socket limits, the checks would wait for each other.
        poolLimit: undefined,
        poolLimitPerHost: undefined,
      },
      clock,
      hosts,
      bans,
      group,
      proxies,
      signal,
      // The checks create no folder. Without one, no other run counts there either.
      stateFolder: existsSync(folder) ? folder : undefined,
      observer: { ...SILENT_OBSERVER, warn },
    },
    {
      begun: () => undefined,
      ended: (attempt) => ended.set(attempt.attemptId, attempt),
    },
  );
  group?.enter();
  const context: CheckContext = {
    ...request,
    paths: lakePaths(absolutePath(options.out, surroundings.home)),
    proxies,
    group,
    authorities: authoritiesOf(options.caFile),
    bans,
    hosts: hostsOf(request),
    fetchTimed: createTimedFetch({ ...request, bans, fetch: stack.fetch, ended }),
  };
  return {
    context,
    close: async () => {
      await stack.close();
      await group?.leave();
    },
  };
}

interface FetchContext extends DoctorRequest {
  readonly bans: Bans;
  readonly fetch: Fetch;
  /** By the id of the attempt. */
  readonly ended: ReadonlyMap<string, AttemptEnd>;
}

function createTimedFetch({ options, clock, signal, bans, fetch, ended }: FetchContext): TimedFetch {
  return async (url, bucket) => {
    const leftMs = await bans.leftMs(placeOf(bucket, url));
    if (leftMs > 0)
      throw new CryptodlError('banned', 'no request sent: a ban is in force, see the line "bans"');
    const id = randomUUID();
    const limit = new AbortController();
    // The deadline of an attempt begins with its permit.
    const timer = clock.timer(options.totalTimeoutMs + PERMIT_WAIT_MS, () => {
      limit.abort(
        new CryptodlError(
          'wait-too-long',
          'no request sent: other runs on this machine use up the request limit of the host',
        ),
      );
    });
    try {
      const response = await fetch(
        { url, bucket, maxBytes: MAX_BYTES },
        { signal: AbortSignal.any([signal, limit.signal]), traceId: id, attemptId: id },
      );
      const { sentAt = 0, endedAt = 0, firstByteMs = 0 } = ended.get(id) ?? {};
      // Converts times of the monotonic clock to epoch milliseconds.
      const offset = clock.now() - clock.monotonic();
      const times = { sentAt: sentAt + offset, receivedAt: endedAt + offset };
      return { response, firstByteMs, wholeMs: endedAt - sentAt, ...times };
    } finally {
      timer.cancel();
    }
  };
}

/** Starts the checks that run at the same time. The array has the order of the printed lines. */
function startChecks(context: CheckContext): Promise<readonly CheckResult[]>[] {
  const { signal, paths, options } = context;
  const network = checkNetwork(context);
  const inside = refuseLinkedFolders(paths);
  const lock = inside.then(() => checkLock(paths));
  const disks = checkFolders(context, stateFolder(options, context.surroundings), inside);
  // The probe files of the folder checks must be removed before leftovers are counted.
  const leftovers = Promise.allSettled(disks.map(([, check]) => check)).then(async () =>
    checkLeftovers({
      paths,
      runFolder: runFolder(options, paths, context.surroundings.home),
      isLocked: (await lock).status !== 'ok',
    }),
  );
  const one = (name: string, check: Promise<CheckResult>): Promise<readonly CheckResult[]> =>
    asResult(name, check, signal).then((found) => [found]);
  const started = [
    one('versions', checkVersions(duckdbVersion)),
    Promise.resolve(checkSettings(context)),
    network,
    ...(options.redis === undefined
      ? []
      : [one('redis', checkRedis(options.redis, context.group, context.clock))]),
    ...disks.map(([name, check]) => one(name, check)),
    one('bans', checkBans(context.bans)),
    one('lock', lock),
    one('leftovers', leftovers),
  ];
  // The caller awaits the checks one after another; a rejection before that must not count as unhandled.
  for (const check of started) check.catch(() => undefined);
  return started;
}

function checkFolders(
  { options, paths, surroundings, clock }: CheckContext,
  state: string,
  inside: Promise<void>,
): [string, Promise<CheckResult>][] {
  const { root, internal, staging } = paths;
  const temp = options.tempDir;
  const spool = temp === undefined ? undefined : absolutePath(temp, surroundings.home);
  const disk = { probeBytes: PROBE_BYTES, clock };
  const out = inside.then(async () => {
    const trial = await tryBackingOut(root);
    if (trial !== undefined) return bucketResult(shownPath(root), trial);
    return checkFolder({
      ...disk,
      check: 'out',
      path: root,
      shown: shownPath(root),
      flag: '--out',
      tryIn: [staging, internal, root],
      unwritable: {
        status: 'fail',
        next: 'choose another --out, or make this folder writable',
      },
    });
  });
  const tempNext = 'choose another --temp-dir, or make this folder writable';
  const inTemp =
    spool === undefined
      ? Promise.resolve(checkResult('temp', 'ok', 'in the lake'))
      : checkFolder({
          ...disk,
          check: 'temp',
          path: spool,
          shown: shownPath(spool),
          flag: '--temp-dir',
          unwritable: { status: 'fail', next: tempNext },
        });
  const inState = checkFolder({
    check: 'state',
    path: state,
    shown: shownPath(state),
    flag: '--state-dir',
    probeBytes: 1,
    clock,
    unwritable: {
      status: 'warn',
      next: 'choose a writable --state-dir: without one, runs do not share bans, request limits and cached answers',
    },
  });
  return [
    ['out', out],
    ['temp', inTemp],
    ['state', inState],
  ];
}

/** Large enough to measure the disk and not its cache, small enough for any disk. */
const PROBE_BYTES = 4 * 1024 * 1024;
