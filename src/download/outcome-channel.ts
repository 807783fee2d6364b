/** Passes the outcomes of tasks to the reader of the run, and records the tasks that write nothing. */
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { CryptodlError } from '../model/errors.js';
import type { TaskOutcome } from '../model/outcome.js';
import type { ArchiveObject, PartitionPlan, Task } from '../model/task.js';
import type { FailureReport } from '../report/failure-report.js';
import type { MonthsFromDays } from './months-from-days.js';
import type { AbsenceNotes } from './remember-absences.js';
import type { LakeSession, RunSession } from './session.js';
import { keepEvidence } from './write-objects.js';

/** The run waits while this many outcomes are unread: half of them wait on each side of the stream. */
const ROOM = 1000;

/** A bounded queue of outcomes for one reader. */
export class OutcomeChannel {
  readonly #stream = new PassThrough({ objectMode: true, highWaterMark: ROOM / 2 });

  constructor() {
    // Each waiting task adds a listener.
    this.#stream.setMaxListeners(0);
  }

  /** Resolves when there is room for more. */
  async push(outcome: TaskOutcome): Promise<void> {
    if (!this.#stream.write(outcome)) await once(this.#stream, 'drain');
  }

  /** To be called after the last outcome. */
  end(): void {
    this.#stream.end();
  }

  /** Drops the unread outcomes and all later ones. */
  discard(): void {
    this.#stream.resume();
  }

  /** To be called once. */
  read(): NodeJS.AsyncIterator<TaskOutcome> {
    return this.#stream.iterator({ destroyOnReturn: false });
  }
}

// Tasks that write nothing are counted, noted for the manifest, and reported.

export interface Notes {
  readonly report: FailureReport;
  readonly absences: AbsenceNotes;
  readonly months: MonthsFromDays;
}

/** Records a failed task. After a stop, `interrupted` is not recorded. A month that its daily objects may replace is recorded after them. */
export async function recordFailure(
  session: RunSession & Pick<LakeSession, 'paths'>,
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

/** Notes the failure for the manifest, reports the outcome, and adds the failure to the report. */
export async function tellFailure(
  session: Pick<RunSession, 'clock' | 'options' | 'tell'>,
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

/** The error for a revision that an earlier run refused and that is still listed. */
function refusalOf({ action }: Task): CryptodlError | undefined {
  if (action.kind !== 'skip' || action.refused === undefined) return undefined;
  const { code, at } = action.refused;
  const error = new CryptodlError(
    code,
    `this revision failed at ${at}; this version of cryptodl does not fetch it again until the archive publishes another (cryptodl retry does)`,
  );
  // This run sends no request.
  error.attempts = 0;
  return error;
}

/** Records a task whose plan says skip or absent. */
export async function recordSettled(
  session: RunSession & Pick<LakeSession, 'paths'>,
  notes: Notes,
  plan: PartitionPlan,
  task: Task,
): Promise<void> {
  const error = refusalOf(task);
  if (error !== undefined) return recordFailure(session, notes, plan, task, error);
  const { report, absences, months } = notes;
  const { action, object } = task;
  const { rest } = object;
  if (action.kind !== 'absent') {
    const skip = action.kind === 'skip' ? action : undefined;
    const lacksToo = skip?.isRestEmpty === true ? rest?.keepsHeld?.sha256 : undefined;
    if (rest?.keepsHeld !== undefined) absences.noteKept(plan.series, object.period, lacksToo);
    return session.tell(plan, object, {
      kind: 'skipped',
      ...(skip?.isWithdrawn === true ? { withdrawn: true } : {}),
      ...(skip?.archiveFailed === undefined ? {} : { archiveFailed: skip.archiveFailed }),
    });
  }
  const { reason, since, isRestEmpty } = action;
  months.absent(plan, object.period, reason);
  // A period that is not over yet cannot be absent.
  if (rest?.open !== true)
    absences.note(plan.series, task.object.period, reason, {
      since,
      hasAskedRest: rest !== undefined,
      isRestEmpty,
    });
  if (reason === 'hole') report.addHole(plan, task, new Date(session.clock.now()).toISOString());
  return session.tell(plan, task.object, { kind: 'absent', reason });
}
