/** Composition root of a run: one request stack, one tally, one stop switch. */
import { createHash, randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../clock.js';
import { CryptodlError } from '../errors.js';
import type { Expectation, Fetch } from '../fetch.js';
import type { RetryEvent } from '../errors.js';
import type { LakePaths } from '../lake/layout.js';
import { lakePaths } from '../lake/layout.js';
import type { Observer } from '../observer.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import type { Outcome, TaskOutcome } from '../outcome.js';
import { taskOutcome } from '../outcome.js';
import { absolutePath } from '../shown-path.js';
import { createListing } from '../plan/listing.js';
import type { Listing } from '../plan/listing.js';
import { parseListing } from '../plan/listing-xml.js';
import type { ListingPage } from '../plan/listing-xml.js';
import type { Probe } from '../plan/probe.js';
import { Concurrency } from '../queue/concurrency.js';
import type { ArchiveObject, PartitionPlan } from '../task.js';
import { Tally } from '../report/tally.js';
import type { BackoffOptions } from '../retry/backoff.js';
import { breaker } from '../retry/breaker.js';
import { retry } from '../retry/retry.js';
import { Bans, placeOf } from '../state/bans.js';
import { throttle } from '../throttle/throttle.js';
import { createPools } from '../transport/pool.js';
import { timeout } from '../transport/timeout.js';
import { createTransport } from '../transport/transport.js';
import { verify } from '../transport/verify.js';
import { keyPath, SIDECAR } from '../venue/keys.js';
import { loadRetryPresets } from '../venue/facts.js';
import { loadVenue } from '../venue/venue.js';
import type { Venue } from '../venue/venue.js';

export interface Session {
  readonly options: Options;
  readonly clock: Clock;
  /** Wall clock, or what --now says. */
  readonly nowMs: number;
  readonly venue: Venue;
  readonly paths: LakePaths;
  /** Spool of the run: one name per lake, so that the next run finds what a killed one left. */
  readonly runFolder: string;
  readonly observer: Observer;
  readonly tally: Tally;
  /** Counts the end of a task and passes it on; resolves when there is room for the next. */
  readonly tell: (plan: PartitionPlan, object: ArchiveObject, outcome: Outcome) => Promise<void>;
  readonly fetch: Fetch;
  readonly listing: Listing;
  readonly probe: Probe;
  /** Rejects while a place that the run will ask is banned. */
  readonly refuseBanned: () => Promise<void>;
  readonly concurrency: Concurrency;
  /** Told of every new concurrency limit. */
  onLimit: (limit: number) => void;
  readonly stop: AbortController;
  close(): Promise<void>;
}

const LISTING_MAX_BYTES = 16 * 1024 * 1024;
/** Sockets beyond two per object in flight (zip and sidecar): for the listing. */
const SPARE_SOCKETS = 8;

export interface SessionRequest {
  readonly resolved: Pick<Resolved, 'options'>;
  readonly home: string | undefined;
  /** `$XDG_STATE_HOME`. */
  readonly stateHome: string | undefined;
  readonly observer: Observer;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly tell: (outcome: TaskOutcome) => Promise<void>;
}

export function openSession(request: SessionRequest): Session {
  const { clock, observer, home } = request;
  const { options } = request.resolved;
  const venue = loadVenue();
  const paths = lakePaths(absolutePath(options.out, home));
  const stop = stopWith(request.signal);
  const tally = new Tally();
  const concurrency = new Concurrency(options.concurrency, clock, (limit) => {
    session.onLimit(limit);
  });
  const most = options.concurrency.kind === 'fixed' ? options.concurrency.limit : options.concurrency.max;
  const pools = createPools({
    connections: most * 2 + SPARE_SOCKETS,
    connectTimeoutMs: options['connect-timeout'],
  });
  const bans = new Bans({
    folder: stateFolder(options, request),
    clock,
    warn: (text) => {
      observer.warn(text);
    },
  });
  const written = new Set<Promise<void>>();
  const told: Told = { observer, tally, concurrency, bans, written };
  const fetch = createStack(options, clock, venue, createTransport(pools, clock), told);
  const listing = listingUrl(options, venue);
  const session: Session = {
    options,
    clock,
    nowMs: options.now ?? clock.now(),
    venue,
    paths,
    runFolder: runFolder(options, paths, home),
    observer,
    tally,
    tell: (plan, object, outcome) => {
      tally.count(object.key, outcome);
      return request.tell(taskOutcome(plan.series, object, outcome));
    },
    fetch,
    listing: createListing((query) => getListing(fetch, listing, stop.signal, query)),
    probe: (key) => probeSidecar(fetch, options, stop.signal, key),
    refuseBanned: () =>
      bans.refuse([placeOf('archive', options['archive-url']), placeOf('listing', listing)]),
    concurrency,
    onLimit: () => undefined,
    stop,
    close: async () => {
      stop.abort(new CryptodlError('interrupted', 'the run is over'));
      await Promise.all(written);
      await pools.close();
    },
  };
  return session;
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

/** Who learns of what happens on the wire. */
interface Told extends Pick<Session, 'observer' | 'tally' | 'concurrency'> {
  readonly bans: Bans;
  /** Writes under way. */
  readonly written: Set<Promise<void>>;
}

/** Outermost first; every attempt takes its own permit and its own deadlines, waiting for a permit spends neither. */
function createStack(
  options: Options,
  clock: Clock,
  venue: Venue,
  transport: Fetch,
  { observer, tally, concurrency, bans, written }: Told,
): Fetch {
  const maxWaitMs = options['max-wait'];
  const backoff = backoffOf(options);
  const counted: Fetch = async (request, context) => {
    tally.requests += 1;
    const response = await transport(request, context);
    concurrency.onSuccess();
    return response;
  };
  const timed = timeout({
    clock,
    headersMs: options['headers-timeout'],
    idleMs: options['idle-timeout'],
    totalMs: options['total-timeout'],
  })(counted);
  const throttled = throttle({
    clock,
    buckets: venue.buckets,
    maxWaitMs,
    onBan: ({ bucket, url }, error, delayMs) => {
      const ban = { until: clock.now() + delayMs, why: error.message };
      written.add(bans.remember(placeOf(bucket, url), ban));
    },
  })(timed);
  const broken = breaker({ clock, openMs: options['breaker-open'] })(throttled);
  const onRetry = (event: RetryEvent): void => {
    if (OVERLOAD.has(event.error.code)) concurrency.onOverload();
    if (event.usesAttempt) tally.retries += 1;
    observer.retry(event);
  };
  return retry({
    clock,
    ...backoff,
    maxWaitMs,
    mostAtOnce: () => Math.max(LEAST_RETRIES_AT_ONCE, Math.floor(concurrency.limit / 10)),
    onRetry,
  })(verify(broken));
}

/** Retries of one host at once, however low the concurrency is (mechanism A3). */
const LEAST_RETRIES_AT_ONCE = 5;

/** The preset, and what was asked for by itself. */
export function backoffOf(options: Options): BackoffOptions & { retries: number } {
  const preset = loadRetryPresets()[options['retry-preset']];
  return {
    ...preset,
    retries: options.retries ?? preset.retries,
    baseDelayMs: options['retry-delay'] ?? preset.baseDelayMs,
    strategy: options['retry-strategy'] ?? preset.strategy,
  };
}

const OVERLOAD: ReadonlySet<string> = new Set(['rate-limited', 'http-server-error', 'connect-timeout']);

/** A page that cannot be read is asked for again like any other failure. */
async function getListing(
  fetch: Fetch,
  base: string,
  signal: AbortSignal,
  query: string,
): Promise<ListingPage> {
  let page: ListingPage | undefined;
  const expect: Expectation = {
    zip: false,
    check: ({ status, body }) => {
      if (status === 404 || body.kind === 'file')
        throw new CryptodlError('listing-malformed', `${new URL(base).host} has no listing`);
      page = parseListing(body.bytes.toString('utf8'));
    },
  };
  const request = {
    url: `${base}/?${query}`,
    bucket: 'listing',
    maxBytes: LISTING_MAX_BYTES,
    spoolAboveBytes: LISTING_MAX_BYTES,
    expect,
  };
  await fetch(request, { signal, traceId: randomUUID(), attempt: 1 });
  if (page === undefined) throw new CryptodlError('bug', 'a listing was not checked');
  return page;
}

/** Where somebody moved the archive, the listing is asked at the same place. */
function listingUrl(options: Options, { hosts }: Venue): string {
  return (
    options['listing-url'] ??
    (options['archive-url'] === hosts.archive ? hosts.listing : options['archive-url'])
  );
}

/** Resolves with true when nobody can say: the download then gives the object a named outcome. */
async function probeSidecar(
  fetch: Fetch,
  options: Options,
  signal: AbortSignal,
  key: string,
): Promise<boolean> {
  const url = `${options['archive-url']}/${keyPath(key)}${SIDECAR}`;
  try {
    const response = await fetch(
      { url, bucket: 'archive', maxBytes: 65_536 },
      { signal, traceId: randomUUID(), attempt: 1 },
    );
    return response.status === 200;
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.fatal) throw error;
    if (!['connect-failed', 'dns-failed', 'connect-timeout'].includes(error.code)) return true;
    throw new CryptodlError('unreachable', `the archive cannot be reached: ${error.message}`, {
      cause: error,
      hint: 'check the network and --archive-url',
    });
  }
}

function stateFolder(options: Options, { home, stateHome }: SessionRequest): string {
  const given = options['state-dir'];
  if (given !== undefined) return absolutePath(given, home);
  return join(stateHome ?? join(home ?? tmpdir(), '.local', 'state'), 'cryptodl');
}

/** A dry run writes nothing, unless its plan is too large for the memory; it holds no lock, so it has a folder of its own. */
function runFolder(options: Options, paths: LakePaths, home: string | undefined): string {
  if (options['dry-run'] === true) return join(tmpdir(), `cryptodl-dry-run-${process.pid}`);
  const lake = createHash('sha256').update(paths.root).digest('hex').slice(0, 12);
  const given = options['temp-dir'];
  return join(given === undefined ? paths.staging : absolutePath(given, home), `run-${lake}`);
}
