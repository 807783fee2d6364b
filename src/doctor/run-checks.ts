/** Composition root of `cryptodl doctor`: what runs would use is looked at, all at once, told in a fixed order. */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { Ask } from './answers.js';
import { checkBans, clearBans } from './answers.js';
import { checkClock } from './clock-difference.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';
import { checkFolder } from './folders.js';
import { checkLeftovers, checkLock } from './lake-state.js';
import { checkVersions } from './machine.js';
import { CryptodlError } from '../model/errors.js';
import type { AttemptEnd, Fetch } from '../http/fetch.js';
import { lakePaths, refuseLinkedOwn } from '../lake/layout.js';
import { SILENT } from '../model/observer.js';
import type { Options } from '../options/flags.js';
import { proxiesOf, stateFolder } from '../options/environment.js';
import { absolutePath, shownPath } from '../text/paths.js';
import { Bans, placeOf } from '../http/bans.js';
import { loadVenue } from '../source/venue.js';
import type { Venue } from '../source/venue.js';
import { MARKETS } from '../source/names.js';
import { duckdbVersion } from '../convert/duckdb.js';
import { archiveOf, certificates, listingOf, names, proxyFinding, restOf } from './check-hosts.js';
import type { ExamineRequest, HostPlace, Scene } from './check-hosts.js';
import { examineSettings } from './request-settings.js';
import { runFolder } from '../download/run-paths.js';
import { listingUrl } from '../source/listing-session.js';
import { publicationHours, publicationText } from '../source/publication-hours.js';
import { authoritiesOf } from '../http/transport/sockets.js';
import { createAttempt } from '../http/stack.js';

/** How long a check waits for its permit: what other runs use up is said, not waited for. */
const PERMIT_WAIT_MS = 3000;
/** Far more than a page of the listing with a few keys. */
const MAX_BYTES = 1024 * 1024;

/** Findings in their order, each as soon as it and those before it are there. Throws usage errors at once. */
export async function* examine(request: ExamineRequest): AsyncGenerator<Finding> {
  // All checks listen at once.
  setMaxListeners(0, request.signal);
  const opened = openScene(request);
  const { scene } = opened;
  try {
    const aborted = whenAborted(request.signal);
    for (const check of begin(scene)) yield await Promise.race([check, aborted]);
    yield* published(scene);
  } finally {
    await scene.bans.written();
    await opened.close();
  }
}

/** A line for each dataset whose daily objects the kept listings have. */
async function* published(scene: Scene): AsyncGenerator<Finding> {
  const hoursOf = publicationHours(scene);
  for (const market of MARKETS)
    for (const spec of Object.values(scene.venue.markets[market].datasets)) {
      const hour = await hoursOf(market, spec);
      if (hour === undefined) continue;
      const { afterMs, by, objects, symbols } = hour;
      const words = {
        of: `${market} ${spec.name}`,
        figures: { afterMs, by, objects, symbols: symbols.join(',') },
      };
      yield finding('published', 'ok', publicationText(hour), words);
    }
}

/** `doctor --clear-bans HOST`: only that; no host is asked. */
export async function* forgetBans(request: ExamineRequest, host: string): AsyncGenerator<Finding> {
  const { options, surroundings, clock, warn } = request;
  yield await clearBans(new Bans({ folder: stateFolder(options, surroundings), clock, warn }), host);
}

/** Never resolves. */
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

function openScene(request: ExamineRequest): { scene: Scene; close: () => Promise<void> } {
  const { options, surroundings, clock, signal, warn } = request;
  const venue = loadVenue();
  const folder = stateFolder(options, surroundings);
  const proxies = proxiesOf(options.proxy, surroundings);
  const bans = new Bans({ folder, clock, warn });
  const ended = new Map<string, AttemptEnd>();
  const stack = createAttempt(
    {
      // How long a check waits, and for what, is its own affair: the limits of sockets are those of runs.
      options: {
        ...options,
        maxWaitMs: Number.MAX_SAFE_INTEGER,
        poolLimit: undefined,
        poolLimitPerHost: undefined,
      },
      clock,
      venue,
      bans,
      proxies,
      signal,
      stateFolder: folder,
      listingUrl: listingUrl(options, venue),
      observer: { ...SILENT, warn },
    },
    {
      begun: () => undefined,
      ended: (attempt) => ended.set(attempt.attemptId, attempt),
    },
  );
  const scene: Scene = {
    ...request,
    venue,
    paths: lakePaths(absolutePath(options.out, surroundings.home)),
    proxies,
    authorities: authoritiesOf(options.caFile),
    bans,
    hosts: hostsOf(options, venue),
    ask: askOf({ ...request, bans, fetch: stack.fetch, ended }),
  };
  return { scene, close: () => stack.close() };
}

interface Asking extends ExamineRequest {
  readonly bans: Bans;
  readonly fetch: Fetch;
  /** By attempt. */
  readonly ended: ReadonlyMap<string, AttemptEnd>;
}

function askOf({ options, clock, signal, bans, fetch, ended }: Asking): Ask {
  return async (url, bucket) => {
    const leftMs = await bans.leftMs(placeOf(bucket, url));
    if (leftMs > 0) throw new CryptodlError('banned', 'not asked: it is banned, see the line of bans');
    const id = randomUUID();
    const limit = new AbortController();
    // The deadline of an attempt begins with its permit.
    const timer = clock.timer(options.totalTimeoutMs + PERMIT_WAIT_MS, () => {
      limit.abort(
        new CryptodlError('wait-too-long', 'not asked: other runs of this machine use up what it allows'),
      );
    });
    try {
      const response = await fetch(
        { url, bucket, maxBytes: MAX_BYTES },
        { signal: AbortSignal.any([signal, limit.signal]), traceId: id, attemptId: id },
      );
      const { sentAt = 0, endedAt = 0, firstByteMs = 0 } = ended.get(id) ?? {};
      // From the monotonic clock to that of the wall.
      const offset = clock.now() - clock.monotonic();
      const times = { sentAt: sentAt + offset, receivedAt: endedAt + offset };
      return { response, firstByteMs, wholeMs: endedAt - sentAt, ...times };
    } finally {
      timer.cancel();
    }
  };
}

function hostsOf(options: Options, venue: Venue): HostPlace[] {
  return [
    { role: 'archive', address: options.archiveUrl, flag: '--archive-url' },
    { role: 'listing', address: listingUrl(options, venue), flag: '--listing-url' },
    { role: 'fapi', address: options.fapiUrl, flag: '--fapi-url' },
    { role: 'dapi', address: options.dapiUrl, flag: '--dapi-url' },
    { role: 'spot', address: options.spotUrl, flag: '--spot-url' },
  ];
}

/** All checks under way, in the order of their lines. */
function begin(scene: Scene): Promise<Finding>[] {
  const { signal, paths, options } = scene;
  const listing = listingOf(scene);
  const archive = archiveOf(scene, listing);
  const rest = (['fapi', 'dapi', 'spot'] as const).map((role) => restOf(scene, role));
  const heard = [archive, listing, ...rest];
  const answers = heard.map(async (hearing) => (await hearing).finding);
  const time = Promise.all(heard).then((all) => checkClock(all.flatMap(({ told }) => told)));
  const inside = refuseLinkedOwn(paths);
  const lock = inside.then(() => checkLock(paths));
  const disks = folders(scene, stateFolder(options, scene.surroundings), inside);
  // What the disks are tried with must be gone before anything is counted as left.
  const leftovers = Promise.allSettled(disks.map(([, check]) => check)).then(async () =>
    checkLeftovers({
      paths,
      runFolder: runFolder(options, paths, scene.surroundings.home),
      isLocked: (await lock).status !== 'ok',
    }),
  );
  const checks: [string, Promise<Finding>][] = [
    ['versions', checkVersions(duckdbVersion)],
    ...examineSettings(scene).map((found): [string, Promise<Finding>] => [
      found.check,
      Promise.resolve(found),
    ]),
    ['proxy', proxyFinding(scene)],
    ...names(scene).map((check): [string, Promise<Finding>] => ['dns', check]),
    ...certificates(scene).map((check): [string, Promise<Finding>] => ['tls', check]),
    ...answers.map((check): [string, Promise<Finding>] => ['hosts', check]),
    ['clock', time],
    ...disks,
    ['bans', checkBans(scene.bans)],
    ['lock', lock],
    ['leftovers', leftovers],
  ];
  return checks.map(([name, check]) => guarded(name, check, signal));
}

/** A check that itself fails is a line too; nothing rejects before somebody waits for it. */
function guarded(name: string, check: Promise<Finding>, signal: AbortSignal): Promise<Finding> {
  const found = check.catch((error: unknown) => {
    signal.throwIfAborted();
    const said = error instanceof Error ? error.message : String(error);
    const hint = error instanceof CryptodlError ? error.hint : undefined;
    return finding(name, 'fail', `could not be looked at: ${said}`, hint === undefined ? {} : { next: hint });
  });
  found.catch(() => undefined);
  return found;
}

function folders(
  { options, paths, surroundings, clock }: Scene,
  state: string,
  inside: Promise<void>,
): [string, Promise<Finding>][] {
  const { root, own, staging } = paths;
  const temp = options.tempDir;
  const spool = temp === undefined ? undefined : absolutePath(temp, surroundings.home);
  const disk = { probeBytes: PROBE_BYTES, clock };
  const out = inside.then(() =>
    checkFolder({
      ...disk,
      check: 'out',
      path: root,
      shown: shownPath(root),
      flag: '--out',
      tryIn: [staging, own, root],
      unwritable: {
        status: 'fail',
        next: 'choose another --out, or make that one a folder that can be written',
      },
    }),
  );
  const tempNext = 'choose another --temp-dir, or make that one a folder that can be written';
  const inTemp =
    spool === undefined
      ? Promise.resolve(finding('temp', 'ok', 'in the lake'))
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
      next: 'choose a --state-dir that can be written: without it runs do not know of bans, limits and copies of each other',
    },
  });
  return [
    ['out', out],
    ['temp', inTemp],
    ['state', inState],
  ];
}

/** Large enough to tell the disk from its cache, small enough for any. */
const PROBE_BYTES = 4 * 1024 * 1024;
