/** Runs a plan to its end: queue, downloads, writes, outcomes, failure report, and the numbers of the run. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Timer } from '../model/clock.js';
import { removeRunFolder } from '../lake/layout.js';
import { backingOf } from '../files/backing.js';
import { toCryptodlError, CryptodlError } from '../model/errors.js';
import type { Body } from '../model/fetch.js';
import type { PlanTotals } from '../model/task.js';
import { TOOL_VERSION } from '../model/version.js';
import type { Plan } from '../plan/plan.js';
import { PlanSpool } from '../plan/plan-spool.js';
import { roundsOf } from './queue/rounds.js';
import { RunQueue } from './queue/run-queue.js';
import type { FailureReport } from './failures/failure-file.js';
import type { RunEnd } from './report/run-summary.js';
import { createPartitionWriter } from '../lake/write/partition-writer.js';
import { emptyResult, type PartitionWriter } from '../lake/write/writer.js';
import { countObjectRows } from './objects/download-object.js';
import { Downloads } from './objects/downloads.js';
import type { RunSession } from './session/session.js';
import { openWorkshop, type Workshop } from './session/workshop.js';
import { Outcomes } from './partitions/outcomes.js';
import { statfs } from 'node:fs/promises';
import { cores } from '../files/machine.js';
import { makeTempFolder } from '../files/temp-files.js';
import { bytesText } from '../model/units.js';
import { writable } from './session/open-lake.js';
import { lakeFlag, shellWord, shownPath } from '../text/printable.js';
import type { Tally } from './report/tally.js';

interface PlannedRun {
  readonly plan: Plan;
  readonly report: FailureReport;
  /** True for a retry whose failure report has a line that cannot be read. */
  readonly isCut: boolean;
}

/** Runs the plan to its end. An error that ends the run early is part of the result. */
export async function executePlan(session: RunSession, run: PlannedRun): Promise<RunEnd> {
  const { isCut, plan, report } = run;
  let ended: RunEnd['ended'];
  let reportPath: string | undefined;
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
  try {
    reportPath = await report.close(ended === undefined);
  } catch (error) {
    ended ??= toCryptodlError(error);
  }
  return concludeRun(session, plan.totals, { ended, reportPath, isCut });
}

async function runAll(session: RunSession, { plan, report }: PlannedRun): Promise<void> {
  const isToBucket = backingOf(session.paths.root) !== undefined;
  const workshop =
    session.pipeline?.workshop ??
    openWorkshop(join(session.runFolder, 'spill'), { isToBucket, boundsUnwritten: false }, session);
  const { live, tally } = session;
  live.progress = { totals: plan.totals, tally, state: () => workshop.places.state };
  live.enter('working');
  const figures = tellFigures(session);
  try {
    const writer = openWriter(session, workshop);
    const outcomes = new Outcomes(session, report);
    await fetchAndWrite(session, plan, { writer, outcomes, places: workshop.places });
  } finally {
    live.enter('ending');
    figures.cancel();
    workshop.release();
  }
}

async function fetchAndWrite(
  session: RunSession,
  { totals, spool, proveEdges }: Plan,
  parts: Pick<Workshop, 'places'> & { readonly writer: PartitionWriter; readonly outcomes: Outcomes },
): Promise<void> {
  const { outcomes } = parts;
  const downloads = new Downloads(session);
  const queue = new RunQueue({
    ...session,
    ...parts,
    downloads,
    rounds: roundsOf(session),
    refusal: session.deadline.refusal,
    createSpool: () => new PlanSpool(join(session.runFolder, `deferred-${randomUUID()}.jsonl`)),
  });
  try {
    try {
      await refuseFullDisk(session, totals);
      await queue.run(spool.plans());
      // The run that converts the zips judges its months and notes what is absent.
      if (session.zips?.isLast === true) return;
      downloads.takeFromArchive();
      await outcomes.months.takeDays(totals, (plans) => queue.run(plans));
    } finally {
      await outcomes.tellMonths();
    }
    await proveEdges((...noted) => outcomes.absences.note(...noted));
    await session.lock?.confirm();
    await outcomes.absences.write();
  } finally {
    await outcomes.cutDays.tell();
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

/** The objects of a run that only fetches are not written: they stay in its store of zips. */
function openWriter(session: RunSession, { engine, serialize }: Workshop): PartitionWriter {
  const context = {
    ...session,
    tempFolder: session.runFolder,
    engine,
    tool: TOOL_VERSION,
    serialize,
    timed: session.live.during,
    acceptsShorter: session.options.revisions === 'take',
    countRows: (zip: Body, key: string) => countObjectRows(zip, key, session),
  };
  const writer = createPartitionWriter(context);
  if (session.zips?.isLast !== true) return writer;
  return { ...writer, write: () => Promise.resolve(emptyResult(new Map())) };
}

/** Of the CSV files of a lake to the zips, estimated low, because a run is refused by it. Parquet files are about as large as the zips. */
const LAKE_CSV_GROWTH = 4;
/** The folder for temporary files holds the zip and the CSV of each object in flight, together up to this many times the zip. */
const SPOOL_GROWTH = 8;

/** Rejects with `disk-full` if the plan needs more space than is free. */
async function refuseFullDisk(session: RunSession, totals: PlanTotals): Promise<void> {
  if (totals.fetch === 0) return;
  await writable(session.runFolder, '--temp-dir', () => makeTempFolder(session.runFolder));
  const lakeBytes = totals.fetchBytes * (totals.formats.includes('csv') ? LAKE_CSV_GROWTH : 1);
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

/** `ended`: the error that ended the run early. `isCut`: the report that a retry repeats has a line that cannot be read. */
function concludeRun(
  session: RunSession,
  totals: PlanTotals,
  { ended, reportPath, isCut }: Pick<RunEnd, 'ended' | 'reportPath'> & { readonly isCut: boolean },
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
