/** From a plan to its end: queue, downloads, writes, outcomes, report. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { concludeRun } from './conclude-run.js';
import type { RunEnd } from './conclude-run.js';
import { CutDays } from './cut-days.js';
import { downloadContext, downloadObject, memoryOf, rowsOfZip } from './download-object.js';
import { memoryOfRest, RestDownloads } from './download-rest.js';
import type { Timer } from '../clock.js';
import { CryptodlError, toCryptodlError } from '../errors.js';
import { createSerializer } from '../lake/serialize.js';
import { PlanSpool } from '../plan/plan-spool.js';
import { FURTHER_ROUNDS, RunQueue } from '../queue/run-queue.js';
import type { FailureReport } from '../report/failure-report.js';
import { MonthsFromDays } from './months-from-days.js';
import { AbsenceNotes } from './remember-absences.js';
import { refuseFullDisk } from './refuse-full-disk.js';
import { backoffOf } from './stack.js';
import type { Session } from './session.js';
import { keepEvidence, writeObjects } from './write-objects.js';
import type { ArchiveObject, PartitionPlan, PlanTotals, Task } from '../task.js';
import { TOOL_VERSION } from '../version.js';
import type { ReceivedObject } from '../write/csv-input.js';
import { createEngine } from '../duckdb.js';
import type { Engine } from '../duckdb.js';
import { createPartitionWriter } from '../write/partition-writer.js';
import type { PartitionWriter, WriterContext } from '../write/writer.js';
import { createZipWriter } from '../write/zip-writer.js';

export interface PlannedRun {
  readonly plans: AsyncIterable<PartitionPlan>;
  readonly totals: PlanTotals;
  readonly report: FailureReport;
  /** The report that is run again has a failure that cannot be read. */
  readonly isCut: boolean;
  /** Path under which the lake's data of this run lies, for the closing block. */
  readonly dataPath: string;
  /** How to read the result. */
  readonly query: string | undefined;
}

/** A write also waits, for the disk and for its turn on the event loop: others work meanwhile. */
const WRITERS_PER_CORE = 2;
/** Their tables share the memory of the engine, and all of them one event loop. */
const MOST_WRITERS = 8;

/** What DuckDB may hold before it spills; its buffers come on top. */
const ENGINE_MEMORY_BYTES = 300e6;

export async function executePlan(session: Session, run: PlannedRun): Promise<RunEnd> {
  let ended: CryptodlError | undefined;
  try {
    await refuseFullDisk(session, run.totals);
    await runAll(session, run);
  } catch (error) {
    ended = toCryptodlError(error);
  }
  let reportPath: string | undefined;
  try {
    reportPath = await run.report.close(ended === undefined);
  } catch (error) {
    ended ??= toCryptodlError(error);
  }
  return concludeRun(session, { ...run, ended, reportPath });
}

async function runAll(session: Session, run: PlannedRun): Promise<void> {
  const folder = session.runFolder;
  const cores = availableParallelism();
  const engine = createEngine({
    threads: cores,
    memoryBytes: ENGINE_MEMORY_BYTES,
    tempFolder: join(folder, 'spill'),
  });
  const writers = createWriters(session, engine, folder);
  const download = downloadContext(session, folder);
  const absences = new AbsenceNotes({
    root: session.paths.root,
    venue: session.venue.name,
    nowMs: session.nowMs,
  });
  const fromRest = new RestDownloads(session.venue, session.rest.client, (message) => {
    session.observer.warn(message);
  });
  const months = new MonthsFromDays(session, (plan, object, error) =>
    tellFailure(session, { report: run.report, absences }, plan, object, error),
  );
  const cutDays = new CutDays(session, absences);
  const notes = { report: run.report, absences, months };
  const queue = new RunQueue<ReceivedObject>(
    {
      prepare: (plan) => writers.of(plan).prepare(plan),
      download: async (plan, { object }) => {
        const arrived =
          object.rest === undefined
            ? await downloadObject(download, plan, object)
            : await fromRest.download(plan.series, object, object.rest);
        if ('received' in arrived) session.observer.arrived(arrived.received.zipBytes);
        return arrived;
      },
      together: ({ object: { rest } }) => (rest === undefined ? undefined : String(rest.from)),
      bytesOf: ({ series, object }) =>
        object.rest === undefined ? memoryOf(object) : memoryOfRest(session.venue, series, object.period),
      write: (plan, received, missing) =>
        writeObjects(session, { writer: writers.of(plan), months, cutDays }, plan, received, missing),
      onFailed: (plan, task, error) => recordFailure(session, notes, plan, task, error),
      onSettled: (plan, task) => {
        const error = refusalOf(task);
        return error === undefined
          ? recordSettled(session, notes, plan, task)
          : recordFailure(session, notes, plan, task, error);
      },
    },
    {
      downloads: session.concurrency.places,
      writers: Math.min(WRITERS_PER_CORE * cores, MOST_WRITERS),
      stop: session.stop,
      refusal: session.deadline.refusal,
      createSpool: () => new PlanSpool(join(folder, `deferred-${randomUUID()}.jsonl`)),
      beforeRound: (round) => beforeRound(session, round),
    },
  );
  session.concurrency.onChange = (places) => {
    queue.setDownloads(places);
  };
  session.observer.start(run.totals, () => queue.inFlight);
  const release = drain(session, engine);
  const figures = tellFigures(session);
  try {
    try {
      await queue.run(run.plans);
      await takeDays(months, run.totals, (plans) => queue.run(plans));
    } finally {
      await months.tell();
      await cutDays.tell();
    }
    await session.lock?.confirm();
    await absences.write();
  } finally {
    figures.cancel();
    release();
    engine.close();
    await writers.close();
    // The run that has the lake now has a spool of this name.
    if (session.lock?.isLost !== true) await rm(folder, { recursive: true, force: true });
  }
}

/** The days of months whose monthly objects are broken or short. */
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

/** What an ended run may still take for the writes that are under way (mechanism B7). */
const DRAIN_MS = 10_000;

function drain({ stop, clock }: Session, engine: Engine): () => void {
  let timer: Timer | undefined;
  const begin = (): void => {
    timer = clock.timer(DRAIN_MS, () => {
      engine.interrupt();
    });
  };
  stop.signal.addEventListener('abort', begin, { once: true });
  return () => {
    timer?.cancel();
    stop.signal.removeEventListener('abort', begin);
  };
}

const FIGURES_EVERY_MS = 10_000;

/** How it goes on the wire, now and then, for programs. */
function tellFigures({ clock, observer, network }: Session): Timer {
  const timer = clock.timer(FIGURES_EVERY_MS, () => {
    observer.event('network', network());
    timer.restart();
  });
  return timer;
}

function createWriters(
  session: Session,
  engine: Engine,
  tempFolder: string,
): { of: (plan: PartitionPlan) => PartitionWriter; close: () => Promise<void> } {
  const { venue, paths, clock, lock } = session;
  const context: WriterContext = {
    venue,
    paths,
    tempFolder,
    engine,
    clock,
    tool: TOOL_VERSION,
    serialize: createSerializer(),
    ...(lock === undefined ? {} : { lock }),
    timed: session.times.timed,
    takesShorter: session.options.revisions === 'take',
    rowsOf: (zip, key) => rowsOfZip(zip, key, { tempFolder, signal: session.stop.signal }),
  };
  const converting = createPartitionWriter(context);
  const keeping = createZipWriter(context);
  return {
    of: (plan) => (plan.settings.format === 'zip' ? keeping : converting),
    close: async () => {
      await Promise.all([keeping.close(), converting.close()]);
    },
  };
}

/** Longer each time: a host that was down for a moment gets it. */
async function beforeRound(session: Session, round: number): Promise<void> {
  const { baseDelayMs } = backoffOf(session.options);
  session.observer.event('round', { round, of: FURTHER_ROUNDS });
  const delayMs = Math.min(baseDelayMs * 10 * 4 ** (round - 1), 30_000);
  await session.times.pause(() => session.deadline.sleep(delayMs));
}

interface Notes {
  readonly report: FailureReport;
  readonly absences: AbsenceNotes;
  readonly months: MonthsFromDays;
}

async function recordFailure(
  session: Session,
  { report, absences, months }: Notes,
  plan: PartitionPlan,
  task: Task,
  error: CryptodlError,
): Promise<void> {
  if (session.stop.signal.aborted && error.code === 'interrupted') return;
  if (error.evidence !== undefined) await keepEvidence(session, task.object.key, error.evidence.body, error);
  months.failed(plan);
  const tell = (): Promise<void> => tellFailure(session, { report, absences }, plan, task.object, error);
  if (!months.doubt({ plan, object: task.object, error, tell })) await tell();
}

async function tellFailure(
  session: Session,
  { report, absences }: Pick<Notes, 'report' | 'absences'>,
  plan: PartitionPlan,
  object: ArchiveObject,
  error: CryptodlError,
): Promise<void> {
  const { series, settings } = plan;
  const isVerified = session.options.verify !== 'none';
  absences.noteFailure({ series, format: settings.format, isVerified }, object, error);
  await session.tell(plan, object, { kind: 'failed', error });
  await report.add(plan, { object }, error, new Date(session.clock.now()).toISOString());
}

/** Why an earlier run could not take the revision that is still listed. */
function refusalOf({ action }: Task): CryptodlError | undefined {
  if (action.kind !== 'skip' || action.refused === undefined) return undefined;
  const { code, at } = action.refused;
  const error = new CryptodlError(
    code,
    `it is the revision that failed at ${at}, and is not fetched again until the archive publishes another (cryptodl retry fetches it)`,
  );
  error.attempts = 0;
  return error;
}

async function recordSettled(
  session: Session,
  { report, absences, months }: Notes,
  plan: PartitionPlan,
  task: Task,
): Promise<void> {
  const { action, object } = task;
  const { rest } = object;
  if (action.kind !== 'absent') {
    if (rest?.keepsHeld === true) absences.noteKept(plan.series, object.period);
    const isWithdrawn = action.kind === 'skip' && action.isWithdrawn === true;
    return session.tell(plan, object, { kind: 'skipped', ...(isWithdrawn ? { withdrawn: true } : {}) });
  }
  const { reason, since } = action;
  months.absent(plan, object.period, reason);
  // What is not over yet has nothing to be absent from.
  if (rest?.open !== true)
    absences.note(plan.series, task.object.period, reason, { since, hasAskedRest: rest !== undefined });
  if (reason === 'hole') report.addHole(plan, task, new Date(session.clock.now()).toISOString());
  return session.tell(plan, task.object, { kind: 'absent', reason });
}
