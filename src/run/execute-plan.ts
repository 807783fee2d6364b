/** Runs a plan: queue, downloads, writes, outcomes, failure report. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Timer } from '../model/clock.js';
import { removeRunFolder } from '../lake/layout.js';
import { backingOf } from '../files/backing.js';
import { toCryptodlError } from '../model/errors.js';
import type { Body } from '../model/fetch.js';
import type { PartitionPlan } from '../model/task.js';
import { TOOL_VERSION } from '../model/version.js';
import type { Plan } from '../plan/plan.js';
import { PlanSpool } from '../plan/plan-spool.js';
import { concludeRun } from './conclude-run.js';
import { refuseFullDisk } from './disk-space.js';
import { roundsOf } from './queue/rounds.js';
import { RunQueue } from './queue/run-queue.js';
import type { FailureReport } from './report/failure-file.js';
import type { RunEnd } from './report/run-summary.js';
import { createPartitionWriter } from '../lake/write/partition-writer.js';
import type { PartitionWriter } from '../lake/write/writer.js';
import { createZipWriter } from '../lake/write/zip-writer.js';
import { countObjectRows } from './objects/download-object.js';
import { Downloads } from './objects/downloads.js';
import type { RunSession } from './session/session.js';
import { openWorkshop, type Workshop } from './session/workshop.js';
import { Outcomes } from './partitions/outcomes.js';

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
    const outcomes = new Outcomes(session, writer, report);
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

/** Keeps zips as they are, and converts the rows of all other formats. */
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
  const [keeping, converting] = [createZipWriter(context), createPartitionWriter(context)];
  const writerOf = ({ settings }: PartitionPlan) => (settings.format === 'zip' ? keeping : converting);
  return {
    prepare: (plan) => writerOf(plan).prepare(plan),
    write: (plan, received, missing) => writerOf(plan).write(plan, received, missing),
  };
}
