/** The parts of a run, or of a verb that reads hosts and a lake without one, put together in one place: options, lake, hosts, counts and deadline. */
import { setMaxListeners } from 'node:events';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { backingOf } from '../../files/backing.js';
import { tempFolderOf, tempPath } from '../../files/temp-files.js';
import { lakePaths } from '../../lake/layout.js';
import type { Lock } from '../../lake/lock.js';
import { Manifests } from '../../lake/manifests.js';
import { CryptodlError } from '../../model/errors.js';
import { joinObservers } from '../../model/observer.js';
import { taskOutcome, type Outcome, type TaskOutcome } from '../../model/outcome.js';
import type { SourceObject, PartitionPlan } from '../../model/task.js';
import { Timeline } from '../monitor/timeline.js';
import { LiveRun } from '../report/live-run.js';
import { Tally } from '../report/tally.js';
import { nowMsOf, type RunFlag, type SessionFlag } from '../../plan/options/verb-request.js';
import type { FlagName, Options } from '../../plan/options/flags.js';
import { absolutePath } from '../../text/printable.js';
import { Deadline } from './deadline.js';
import { openHttp, type HttpSessionRequest } from './http-session.js';
import type { Workshop } from './workshop.js';

/** `More`: flags that its verb reads beside those of all sessions. */
export type Session<More extends FlagName = never> = Readonly<
  ReturnType<typeof openSession<Options<SessionFlag | More>>>
> & {
  /** Absent while the lake is only read. */
  readonly lock?: Lock;
};

/** The session of a run. */
export type RunSession = Session<RunFlag>;

/** An object without its rows. */
export type ReceivedZip = Omit<ReceivedObject, 'object' | 'csv' | 'name'>;

/** A store of zips between two runs of one job: the first fetches them, the second converts them. */
export interface ZipStore {
  /** Whether the run ends with the zips in the store: it converts and writes nothing. */
  readonly isLast: boolean;
  /** A zip from the store, or from the archive by `request`. Undefined: the archive has none. `path`: for a file that this function may write. */
  zipOf(
    object: SourceObject,
    path: string,
    request: () => Promise<ReceivedZip | undefined>,
  ): Promise<ReceivedZip | undefined>;
}

/** The parts that the jobs of a worker share (`pipeline.ts`). */
export interface SharedParts {
  readonly workshop: Workshop;
  readonly http: typeof openHttp;
  lake(session: Session, command: string): Promise<LakeParts>;
}

export interface LakeParts {
  readonly lock: Lock;
  readonly manifests: Manifests;
  readonly runFolder: string;
}

export interface SessionRequest extends Omit<HttpSessionRequest, 'nowMs' | 'live' | 'concurrency'> {
  readonly pipeline?: SharedParts | undefined;
  /** For a job that one worker fetches and another converts. */
  readonly zips?: ZipStore | undefined;
  readonly signal: AbortSignal;
  readonly tell?: (outcome: TaskOutcome) => Promise<void>;
  /** For followers of the run; by default it has none. */
  readonly live?: LiveRun | undefined;
}

/** Neither opens the lake nor sends a request. The caller must close the session. Throws like `openHttp`. */
export function openSession<Own extends Options<SessionFlag>>(
  request: SessionRequest & { readonly resolved: { readonly options: Own } },
) {
  const { clock, exchange, live = new LiveRun(clock), pipeline, zips, tell } = request;
  const timeline = new Timeline(clock);
  live.follow(timeline);
  const observer = joinObservers([request.observer, live.observer]);
  const { options } = request.resolved;
  const { home } = request.surroundings;
  const paths = lakePaths(absolutePath(options.out, home));
  const tempFolder = tempFolderOf(options.tempDir, home);
  const stop = stopWith(request.signal);
  const tally = new Tally(exchange);
  const onOver = (): void => observer.event('time-over', {});
  const deadline = new Deadline({ clock, maxDurationMs: options.maxDurationMs, stop, onOver });
  const nowMs = nowMsOf(request);
  const openedAt = clock.monotonic();
  const signals = { signal: stop.signal, waitSignal: deadline.waitSignal };
  const { close, ...http } = openRequests({ ...request, observer, live, nowMs }, signals, paths.root);
  return {
    ...http,
    options,
    exchange,
    clock,
    /** The time at which the run began: the wall clock, or `--now`. Epoch milliseconds. */
    nowMs,
    /** `nowMs` plus the time since the run began. Epoch milliseconds. */
    currentMs: () => nowMs + clock.monotonic() - openedAt,
    observer,
    live,
    timeline,
    tally,
    /** Counts the end of a task and reports it; resolves when there is room for the next one. */
    tell: counting(tally, tell),
    stop,
    deadline,
    pipeline,
    zips,
    paths,
    manifests: new Manifests(exchange.archive),
    tempFolder,
    /** The folder of the temporary files of this run. It does not exist before the first of them. */
    runFolder: tempPath(tempFolder, 'run'),
    close: async (): Promise<void> => {
      deadline.close();
      stop.abort(new CryptodlError('interrupted', 'the run is over'));
      await close();
    },
  };
}

/** The requests of a run. Its figures have those to the bucket of the lake since the last run of the command, too. */
function openRequests(
  request: HttpSessionRequest & Pick<SessionRequest, 'pipeline'>,
  signals: Parameters<typeof openHttp>[1],
  root: string,
) {
  const { http, close } = request.pipeline?.http(request, signals) ?? openHttp(request, signals);
  const lake = backingOf(root)?.requests.follow(request.observer);
  const network = lake === undefined ? http.network : () => ({ ...http.network(), lake: lake.figures() });
  request.live.network = network;
  request.live.hosts = http.hosts;
  const end = (): Promise<void> => {
    lake?.end();
    return close();
  };
  return { ...http, network, close: end };
}

function counting(tally: Tally, tell: SessionRequest['tell']) {
  return (plan: PartitionPlan, object: SourceObject, outcome: Outcome): Promise<void> => {
    tally.count(plan.series, object, outcome);
    if (outcome.kind === 'ok' || outcome.kind === 'partial')
      tally.written ??= { series: plan.series, format: plan.settings.format };
    return tell?.(taskOutcome(plan.series, object, outcome)) ?? Promise.resolve();
  };
}

/** Aborts with a typed error when `signal` aborts for any reason. */
function stopWith(signal: AbortSignal): AbortController {
  const stop = new AbortController();
  // Each request in flight adds a listener.
  setMaxListeners(0, stop.signal);
  const abort = (): void => {
    const reason: unknown = signal.reason;
    const known = reason instanceof CryptodlError ? reason : undefined;
    stop.abort(known ?? new CryptodlError('interrupted', 'the run was ended by its caller'));
  };
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true, signal: stop.signal });
  return stop;
}
