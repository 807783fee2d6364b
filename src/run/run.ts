/** A whole run: selection, plan, downloads, result. The command line and the library use it. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { refuseFile, refuseInnerFolder, removeRunFolder } from '../lake/layout.js';
import { toCryptodlError, usage } from '../model/errors.js';
import type { Options } from '../plan/options/flags.js';
import type { RunFlag, VerbRequest } from '../plan/options/verb-request.js';
import type { TaskOutcome } from '../model/outcome.js';
import { makePlan, type Plan } from '../plan/plan.js';
import { FailureFile, refuseBadReport, reportPlace, type FailureReport } from './failures/failure-file.js';
import { LiveRun } from './report/live-run.js';
import type { RunEnd } from './report/run-summary.js';
import type { PartitionPlan } from '../model/task.js';
import { bytesText, durationText } from '../model/units.js';
import { ofShard, type RunSelection } from '../plan/select/selection.js';
import { Recorder } from './recorder.js';
import { closeLake, openLake } from './session/open-lake.js';
import { continueOrders } from '../plan/select/continue-orders.js';
import { addOrders, noteStarts, withOrders, type OrderChange } from '../lake/change-orders.js';
import type { AskedOrder } from '../lake/order.js';
import { refuseEnded } from '../plan/select/select-datasets.js';
import type { openSession, RunSession, SessionRequest } from './session/session.js';
import { runHeader, type ReportedRun } from './failures/run-header.js';
import { selectFailures } from './failures/select-failures.js';
import { findDataset } from '../exchange/exchange-spec.js';
import { announcement, noteTerms } from './announcement.js';

/** When the signal aborts, committed files stay, and the result counts the tasks without an outcome as undone. */
export interface RunRequest
  extends VerbRequest<RunFlag>, ReportedRun, Pick<SessionRequest, 'live' | 'pipeline' | 'wire' | 'zips'> {
  /** Selects the objects in place of the options. */
  readonly select?: (session: RunSession) => RunSelection;
  /** Takes the failures. Default: a file. */
  readonly report?: FailureReport | undefined;
  /** Orders of a command whose jobs do the work: the run of the first job leaves them in the lake. */
  readonly asked?: readonly AskedOrder[];
}

/** The run waits while this many outcomes are unread: half of them wait on each side of the stream. */
const UNREAD = 1000;

/** The outcomes of a run, and how it ended. The run begins when the first outcome is read; `return` stops it. Throws if it cannot begin. */
export async function* startRun(request: RunRequest): AsyncGenerator<TaskOutcome, RunEnd> {
  const outcomes = new PassThrough({ objectMode: true, highWaterMark: UNREAD / 2 });
  // Each waiting task adds a listener.
  outcomes.setMaxListeners(0);
  const stop = new AbortController();
  const end = work(request, outcomes, stop).finally(() => outcomes.end());
  // Avoids an unhandled rejection: the reader gets the error after the last outcome.
  end.catch(() => undefined);
  try {
    yield* outcomes.iterator({ destroyOnReturn: false });
    return await end;
  } finally {
    stop.abort();
    outcomes.resume();
    await end.catch(() => undefined);
  }
}

async function work(request: RunRequest, outcomes: PassThrough, stop: AbortController): Promise<RunEnd> {
  const signal = AbortSignal.any([request.signal, stop.signal]);
  const live = request.live ?? new LiveRun(request.clock);
  await live.pause(() => beginLater(request, live, signal));
  const session = await sessionOf({
    ...request,
    signal,
    live,
    tell: async (outcome) => {
      if (!outcomes.write(outcome)) await once(outcomes, 'drain');
    },
  });
  const recorder = new Recorder(session, request);
  try {
    await recorder.begin();
    await session.refuseBanned(request.verb);
    return await workIn(session, { ...request, recorder });
  } catch (thrown) {
    const error = session.deadline.asEarlyEnd(thrown);
    await recorder.fail(toCryptodlError(error));
    throw error;
  } finally {
    await session.close();
  }
}

/** `--jitter`: waits a random time, so that the runs of many machines do not begin in the same second. */
async function beginLater(request: RunRequest, live: LiveRun, signal: AbortSignal): Promise<void> {
  const { resolved, clock, observer } = request;
  const { jitterMs = 0 } = resolved.options;
  if (jitterMs === 0) return;
  live.enter('waiting-for-jitter');
  const delayMs = Math.floor(clock.random() * jitterMs);
  observer.waiting(`beginning in ${durationText(delayMs)} (--jitter ${durationText(jitterMs)})`);
  await clock.sleep(delayMs, signal);
}

type BegunRun = RunRequest & { readonly recorder: Recorder };

async function workIn(session: RunSession, request: BegunRun): Promise<RunEnd> {
  await refuseBadReport(reportPlace(session, request));
  if (request.verb === 'repair' && request.failures === undefined) {
    // A lake can be checked only while no other run writes to it.
    return locked(session, 'repair', async (open) => {
      open.live.enter('selecting');
      return execute(open, request, await selectionOf(open, request));
    });
  }
  const selected = await selectionOf(session, request);
  if (session.options.waitForPublication !== undefined) {
    session.live.enter('waiting-for-publication');
    const { waitForPublication } = await import('./objects/wait-for-publication.js');
    await session.live.pause(() => waitForPublication(session, selected));
  }
  return locked(session, selected.verb, async (open) => {
    if (session.pipeline !== undefined) {
      await addOrders(session.paths, request.asked ?? [], session.nowMs);
      return execute(open, request, selected);
    }
    await request.recorder.begin();
    const { selection, orders } = await continueOrders(open, selected);
    return execute(open, request, selection, orders);
  });
}

async function locked(
  session: RunSession,
  verb: RunSelection['verb'],
  act: (session: RunSession) => Promise<RunEnd>,
): Promise<RunEnd> {
  session.live.enter('opening-lake');
  const lake = await (session.pipeline?.lake(session, 'cryptodl worker') ??
    openLake(session, `cryptodl ${verb}`));
  const { lock, runFolder, manifests } = lake;
  try {
    return await act({ ...session, lock, runFolder, manifests });
  } finally {
    await closeLake(session.paths, lake);
  }
}

async function execute(
  session: RunSession,
  request: BegunRun,
  selection: RunSelection,
  orders: OrderChange = () => [],
): Promise<RunEnd> {
  session.live.enter('planning');
  const plan = await withOrders(session.paths, orders, async () => {
    await request.recorder.ordered();
    return acceptedPlan(session, selection);
  });
  try {
    await noteStarts(session.paths, session.exchange.name, plan.starts);
    const terms = plan.totals.fetch + plan.totals.skip === 0 ? undefined : await noteTerms(session);
    session.observer.announce({ ...announcement(session, selection, plan), terms });
    const place = { ...reportPlace(session, request), header: runHeader(session, request) };
    const report = request.report ?? new FailureFile(place);
    const { totals } = plan;
    session.deadline.beginWork();
    // DuckDB is loaded before the first download, because it may be missing, and only if rows will be converted.
    const converts = totals.formats.some((format) => format !== 'zip') && session.zips?.isLast !== true;
    if (totals.fetch > 0 && converts) (await import('../convert/load-duckdb.js')).loadDuckDb();
    const { executePlan } = await import('./execute-plan.js');
    const isCut = request.failures?.cut !== undefined;
    const executed = await executePlan(session, { plan, report, isCut });
    const end = session.options.strict ? await judgedStrictly(session, selection, executed) : executed;
    return await request.recorder.end(end);
  } finally {
    await plan.spool.close();
  }
}

/** The end of a run with the holes of all its series, in place of those of its objects. Jobs of a queue have other runs beside them. */
async function judgedStrictly(session: RunSession, selection: RunSelection, end: RunEnd): Promise<RunEnd> {
  if (end.ended !== undefined || session.pipeline !== undefined) return end;
  const { countLacking } = await import('./verdict/lacking-series.js');
  const holes = await countLacking(session, selection);
  return { ...end, status: { ...end.status, holes, partial: 0 } };
}

async function acceptedPlan(session: RunSession, selection: RunSelection): Promise<Plan> {
  const plan = await makePlan(session, selection);
  try {
    refuseAllEnded(session, selection, plan);
    refuseLargePlan(session, plan);
    return plan;
  } catch (error) {
    await plan.spool.close();
    throw error;
  }
}

/** Throws a usage error if all objects of a download with symbols are absent because their dataset has ended. */
function refuseAllEnded({ exchange }: RunSession, { order, requests }: RunSelection, { totals }: Plan): void {
  const [first] = requests;
  const isAll = totals.absent > 0 && totals.fetch + totals.skip === 0 && order !== undefined;
  if (!isAll || first === undefined || totals.absentBy['dataset-ended'] !== totals.absent) return;
  const { market, dataset } = first.series;
  const spec = findDataset(exchange, market, dataset);
  if (spec !== undefined) refuseEnded(exchange, { market, spec });
}

/** Throws a usage error if the plan downloads more than --max-bytes. */
function refuseLargePlan(session: RunSession, plan: Plan): void {
  const limit = session.options.maxBytes;
  if (limit === undefined || plan.totals.fetchBytes <= limit) return;
  throw usage(
    `the plan is ${bytesText(plan.totals.fetchBytes)}, more than --max-bytes ${bytesText(limit)}`,
    'choose fewer symbols or days, or a larger --max-bytes',
  );
}

/** Loads only the modules of the verb, so that the start is faster. */
async function selectionOf(
  session: RunSession,
  { resolved, verb, failures, select }: RunRequest,
): Promise<RunSelection> {
  if (select !== undefined) return select(session);
  if (failures !== undefined) return selectFailures(session, failures);
  const selection =
    verb === 'repair'
      ? (await import('./verify/select-repairs.js')).selectRepairs(session, resolved)
      : (await import('../plan/select/select-series.js')).selectSeries(session, resolved, verb);
  return ofShard(session, await selection);
}

/** Loads the session late. Without the bundle, Node opens all statically imported files at once, and the process may have a low limit of open files. */
async function sessionOf(request: Parameters<typeof openSession<Options<RunFlag>>>[0]): Promise<RunSession> {
  const { openSession } = await import('./session/session.js');
  const session = openSession(request);
  session.live.enter('selecting');
  try {
    refuseFile(session.paths.root);
    refuseInnerFolder(session.paths.root, session.exchange);
    const { tempDir } = session.options;
    if (tempDir !== undefined) refuseFile(session.tempFolder, '--temp-dir');
  } catch (error) {
    await session.close();
    throw error;
  }
  return session;
}

/** The plan of a run, partition by partition. Writes nothing in the lake and takes no lock. */
export async function* planOnly(request: RunRequest): AsyncGenerator<PartitionPlan> {
  const session = await sessionOf(request);
  try {
    await session.refuseBanned(request.verb);
    const { selection } = await continueOrders(session, await selectionOf(session, request));
    session.live.enter('planning');
    const plan = await makePlan(session, selection);
    try {
      refuseAllEnded(session, selection, plan);
      session.observer.announce(announcement(session, selection, plan));
      yield* plan.spool.plans();
      refuseLargePlan(session, plan);
    } finally {
      await plan.spool.close();
      await removeRunFolder(session.paths, session.runFolder);
    }
  } catch (error) {
    throw session.deadline.asEarlyEnd(error);
  } finally {
    await session.close();
  }
}
