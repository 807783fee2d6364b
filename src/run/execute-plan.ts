/** Runs a plan: queue, downloads, writes, outcomes, failure report. */
import { randomUUID } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReceivedObject } from '../convert/csv-input.js';
import { makeTempFolder } from '../files/temp-files.js';
import type { Timer } from '../model/clock.js';
import { removeRunFolder } from '../lake/layout.js';
import { backingOf } from '../files/backing.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { cores } from '../files/machine.js';
import type { PartitionPlan, PlanTotals } from '../model/task.js';
import { bytesText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import type { Plan } from '../plan/plan.js';
import { PlanSpool } from '../plan/plan-spool.js';
import { substitutedPlan } from '../plan/rest-periods.js';
import { FURTHER_ROUNDS, RunQueue } from './queue/run-queue.js';
import type { FailureReport } from './report/failure-report.js';
import type { RunEnd } from './report/run-summary.js';
import type { Tally } from './report/tally.js';
import { lakeFlag, shellWord, shownPath } from '../text/printable.js';
import { createPartitionWriter } from '../lake/write/partition-writer.js';
import type { PartitionWriter, WriterContext } from '../lake/write/writer.js';
import { createZipWriter } from '../lake/write/zip-writer.js';
import { countObjectRows, downloadObject, memoryOf } from './objects/download-object.js';
import type { DownloadContext } from './objects/download-object.js';
import { memoryOfRest, RestDownloads } from './objects/download-rest.js';
import type { MonthsFromDays } from './partitions/months-from-days.js';
import { writable } from './session/open-lake.js';
import type { RunSession } from './session/session.js';
import { openWorkshop } from './session/workshop.js';
import type { Workshop } from './session/workshop.js';
import { Outcomes } from './partitions/outcomes.js';

export interface PlannedRun {
  readonly plan: Plan;
  readonly report: FailureReport;
  /** True for a retry whose failure report has a line that cannot be read. */
  readonly isCut: boolean;
}

/** Runs the plan to its end. An error that ends the run early is part of the result. */
export async function executePlan(session: RunSession, run: PlannedRun): Promise<RunEnd> {
  let ended: CryptodlError | undefined;
  try {
    try {
      await runAll(session, run);
    } finally {
      // Before the report is written, which may need the space.
      await removeRunFolder(session.paths, session.runFolder);
    }
  } catch (error) {
    ended = toCryptodlError(error);
  }
  let reportPath: string | undefined;
  try {
    reportPath = await run.report.close(ended === undefined);
  } catch (error) {
    ended ??= toCryptodlError(error);
  }
  return concludeRun(session, run, ended, reportPath);
}

async function runAll(session: RunSession, run: PlannedRun): Promise<void> {
  const workshop =
    session.pipeline?.workshop ??
    openWorkshop(
      join(session.runFolder, 'spill'),
      { isToBucket: backingOf(session.paths.root) !== undefined, boundsUnwritten: false },
      session,
    );
  const outcomes = new Outcomes(session, run.report);
  const { queue, takeFromArchive } = openQueue(session, workshop, outcomes);
  const { live, tally } = session;
  const { totals, spool, proveEdges } = run.plan;
  live.plan = { totals, tally, state: () => workshop.places.state };
  live.enter('working');
  const figures = tellFigures(session);
  try {
    try {
      try {
        await refuseFullDisk(session, totals);
        await queue.run(spool.plans());
        // The run that converts the zips judges its months and notes what is absent.
        if (session.zips?.isLast === true) return;
        takeFromArchive();
        await takeDays(outcomes.months, totals, (plans) => queue.run(plans));
      } finally {
        await outcomes.months.tell();
      }
      await proveEdges((...noted) => outcomes.absences.note(...noted));
      await session.lock?.confirm();
      await outcomes.absences.write();
    } finally {
      await outcomes.cutDays.tell();
    }
  } finally {
    live.enter('ending');
    figures.cancel();
    workshop.release();
  }
}

/** `takeFromArchive`: from now on, objects are requested from the archive, and not taken from the zips of another worker. */
function openQueue(session: RunSession, workshop: Workshop, outcomes: Outcomes) {
  const { live, zips } = session;
  const writerOf = writersOf(session, workshop);
  const restDownloads = new RestDownloads(session);
  let archive: DownloadContext = session;
  const queue = new RunQueue<ReceivedObject>({
    prepare: (plan) => writerOf(plan).prepare(plan),
    begin: (plan) => live.begin('partition', { plan }),
    download: async (plan, { object }) => {
      const { rest } = object;
      const arrived = await live.during('download', { plan, object }, () =>
        rest === undefined
          ? downloadObject(archive, plan, object)
          : restDownloads.download(plan.series, object, rest),
      );
      if ('received' in arrived) session.observer.arrived(arrived.received.zipBytes);
      return arrived;
    },
    together: ({ object: { rest } }) => (rest === undefined ? undefined : String(rest.from)),
    bytesOf: ({ series, object }) =>
      object.rest === undefined ? memoryOf(object) : memoryOfRest(session.exchange, series, object.period),
    write: (plan, received, missing) =>
      zips?.isLast === true
        ? leftInStore(session, plan, received)
        : live.during('write', { plan }, () => outcomes.write(writerOf(plan), plan, received, missing)),
    onFailed: (plan, task, error) => outcomes.failed(plan, task, error),
    onSettled: (plan, task) => outcomes.settled(plan, task),
    substituted: (plan, hasRounds) => substituted(session, plan, hasRounds),
    places: workshop.places,
    stop: session.stop,
    refusal: session.deadline.refusal,
    createSpool: () => new PlanSpool(join(session.runFolder, `deferred-${randomUUID()}.jsonl`)),
    beforeRound: (round) => beforeRound(session, round),
  });
  const takeFromArchive = (): void => {
    archive = { ...session, zips: undefined };
  };
  return { queue, takeFromArchive };
}

/** The objects of a run that only fetches have no outcome of their own. */
async function leftInStore(
  { tell }: RunSession,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
): Promise<ReadonlyMap<string, CryptodlError>> {
  for (const { object } of received) await tell(plan, object, { kind: 'skipped' });
  return new Map();
}

/** Runs the daily objects of months whose monthly object is broken or short. */
async function takeDays(
  months: MonthsFromDays,
  totals: PlanTotals,
  run: (plans: AsyncIterable<PartitionPlan>) => Promise<void>,
): Promise<void> {
  const plan = await months.plan();
  if (plan === undefined) return;
  for (const name of ['partitions', 'fetch', 'skip', 'absent', 'fetchBytes'] as const)
    totals[name] += plan.totals[name];
  try {
    await run(months.begin(plan.spool.plans()));
  } finally {
    await plan.spool.close();
  }
}

const FIGURES_EVERY_MS = 10_000;

/** Reports the figures of the network at intervals, for programs. */
function tellFigures({ clock, observer, network }: RunSession): Timer {
  const timer = clock.timer(FIGURES_EVERY_MS, () => {
    observer.event('network', network());
    timer.restart();
  });
  return timer;
}

function writersOf(
  session: RunSession,
  { engine, serialize }: Workshop,
): (plan: PartitionPlan) => PartitionWriter {
  const context: WriterContext = {
    ...session,
    tempFolder: session.runFolder,
    engine,
    tool: TOOL_VERSION,
    serialize,
    timed: session.live.during,
    acceptsShorter: session.options.revisions === 'take',
    countRows: (zip, key) => countObjectRows(zip, key, session),
  };
  const converting = createPartitionWriter(context);
  const keeping = createZipWriter(context);
  return (plan) => (plan.settings.format === 'zip' ? keeping : converting);
}

/** Waits before a further round, longer each time, so that a host can recover. */
async function beforeRound(session: RunSession, round: number): Promise<void> {
  const { retryDelayMs } = session.options;
  session.observer.event('round', { round, of: FURTHER_ROUNDS });
  // No other source has the data of the remaining tasks, so requests now wait for their host instead of failing at once.
  session.failover.isPossible = false;
  const delayMs = Math.min(retryDelayMs * 10 * 4 ** (round - 1), 30_000);
  await session.live.pause(() => session.deadline.sleep(delayMs));
}

/** The plan with REST in place of the archive. Undefined if the archive answers again and another round follows. */
async function substituted(
  { failover, archiveAnswers }: RunSession,
  plan: PartitionPlan,
  hasRounds: boolean,
): Promise<PartitionPlan | undefined> {
  failover.isPossible = true;
  const [task] = plan.tasks;
  const isBack = hasRounds && task !== undefined && (await archiveAnswers(task.object.key));
  return isBack ? undefined : substitutedPlan(plan);
}

// The free space that the plan needs in the lake and in the folder for temporary files.

/** Parquet is about as large as the zips, CSV a few times larger. */
const CSV_GROWTH = 4;
/** The folder for temporary files holds the zip and the CSV of each object in flight, together up to this many times the zip. */
const SPOOL_GROWTH = 8;

/** Rejects with `disk-full` if the plan needs more space than is free. */
async function refuseFullDisk(session: RunSession, totals: PlanTotals): Promise<void> {
  if (totals.fetch === 0) return;
  await writable(session.runFolder, '--temp-dir', () => makeTempFolder(session.runFolder));
  const lakeBytes = totals.fetchBytes * (totals.formats.includes('csv') ? CSV_GROWTH : 1);
  const spoolBytes = Math.min(totals.fetchBytes, totals.largestBytes * cores()) * SPOOL_GROWTH;
  // The files of a mirror become stubs.
  if (backingOf(session.paths.root) === undefined) await refuseFull(session.paths.root, lakeBytes, '--out');
  await refuseFull(session.runFolder, spoolBytes, '--temp-dir');
}

async function refuseFull(folder: string, neededBytes: number, flag: string): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(folder);
  const free = bavail * bsize;
  // Some network file systems do not report their size: blocks is 0 there.
  if (blocks === 0 || free >= neededBytes) return;
  const text = `${folder} has ${bytesText(free)} free, the plan needs about ${bytesText(neededBytes)}`;
  throw new CryptodlError('disk-full', text, { hint: `free some space, or choose another ${flag}` });
}

// The end of a run: its status, its numbers, and the paths that its last lines name.

function concludeRun(
  session: RunSession,
  { plan: { totals }, isCut }: PlannedRun,
  ended: CryptodlError | undefined,
  reportPath: string | undefined,
): RunEnd {
  const { tally, options } = session;
  const hasFailed = tally.of('outcome.failed') > 0;
  return {
    status: {
      ended: ended?.code,
      ...tally.status,
      failedRetryable: tally.of('failedRetryable') + (isCut ? 1 : 0),
      strict: options.strict,
      written: tally.of('outcome.ok') + tally.of('outcome.partial') - tally.of('shorter'),
      nothingIsError: options.errorOnNothing,
    },
    tally,
    network: session.network(),
    times: session.live.times,
    ended,
    undone: ended === undefined ? 0 : session.live.objects.undone,
    shard: options.shard?.text,
    dataPath: shownPath(dataPath(session, totals)),
    reportPath: hasFailed ? reportPath : undefined,
    quarantinePath: tally.of('quarantined') > 0 ? shownPath(session.paths.quarantine) : undefined,
    query: tally.of('files') > 0 ? queryLine(tally.written, session.paths.root) : undefined,
    alerts: [],
  };
}

function dataPath({ paths: { root }, exchange }: RunSession, { formats, fetchBy }: PlanTotals): string {
  if (formats.length === 1 && formats[0] === 'zip') return join(root, exchange.archive.topFolder);
  const [first = [], ...others] = Object.keys(fetchBy).map((name) => name.split(' '));
  const same = first.filter((_, at) =>
    others.every((other) => other.slice(0, at + 1).join(' ') === first.slice(0, at + 1).join(' ')),
  );
  return join(root, exchange.name, ...same);
}

function queryLine(written: Tally['written'], root: string): string | undefined {
  if (written === undefined) return undefined;
  const { series, format } = written;
  const lake = shownPath(root);
  if (format === 'zip') return `cryptodl serve ${shellWord(lake)}`;
  // A view has all intervals of its dataset.
  const columns = series.interval === undefined ? 'symbol' : 'symbol, interval';
  const query = `SELECT ${columns}, count(*) AS rows FROM ${series.market}_${series.dataset} GROUP BY ALL`;
  return `cryptodl sql ${shellWord(query)}${lakeFlag(root)}`;
}
