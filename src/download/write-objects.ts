/** Passes received objects to the writer of their partition, and reports the outcomes of these and of all other tasks. */
import type { CutDays } from './cut-days.js';
import { releaseBodies } from './download-object.js';
import { quarantine } from '../lake/quarantine.js';
import { ERROR_TRAITS } from '../model/error-codes.js';
import { CryptodlError } from '../model/errors.js';
import type { WrittenOutcome } from '../model/outcome.js';
import type { MonthsFromDays } from './months-from-days.js';
import type { Session } from './session.js';
import type { ArchiveObject, PartitionPlan, Series, Task } from '../model/task.js';
import type { FailureReport } from '../report/failure-report.js';
import type { AbsenceNotes } from './remember-absences.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import type { Missing, PartitionWriter, WriteResult } from '../write/writer.js';

interface Recipients {
  readonly writer: PartitionWriter;
  readonly months: MonthsFromDays;
  readonly cutDays: CutDays;
}

/**
 * Writes the objects of a partition, and reports the outcomes of all but the failed ones. Returns the keys of failed objects with their
 * errors, and `held` for keys that the archive no longer has and whose held rows stay.
 */
export async function writeObjects(
  session: Session,
  { writer, months, cutDays }: Recipients,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  missing: Missing,
): Promise<ReadonlyMap<string, CryptodlError | 'held'>> {
  const result = await writer.write(plan, received, missing);
  const { observer, options, tally } = session;
  tally.add('files', result.files);
  tally.add('fileBytes', result.bytes);
  tally.add('duplicatesKept', result.duplicatesAcross);
  tally.add('quarantined', result.quarantined ?? 0);
  tellOverlaps(session, plan, result);
  if (result.files > 0)
    observer.event('partition', {
      ...plan.series,
      partition: plan.label,
      files: result.files,
      bytes: result.bytes,
    });
  for (const object of received) {
    const written = result.written.get(object.object.key);
    const error = result.failed.get(object.object.key);
    if (error !== undefined && ERROR_TRAITS[error.code].wrongBytes)
      await keepEvidence(session, object.object.key, object.zip, error);
    await releaseBodies(object);
    const shorter = result.shorter?.get(object.object.key);
    if (shorter !== undefined) {
      const { rows, keptRows, lackedRows } = shorter;
      await session.tell(plan, object.object, {
        kind: 'partial',
        bytes: object.zipBytes,
        unverified: false,
        rows,
        expectedRows: keptRows,
        keptRows,
        ...(lackedRows === 0 ? {} : { lackedRows }),
      });
      continue;
    }
    if (written === undefined) {
      if (error === undefined) await session.tell(plan, object.object, { kind: 'skipped' });
      continue;
    }
    const { replaces, ...facts } = written;
    tellNewColumns(session, plan.series, facts.newColumns ?? []);
    const { archiveFailed } = object.object.rest ?? {};
    const { rows = 0, idConflicts = 0, expectedRows } = written;
    const isPartial =
      written.gaps !== undefined || (expectedRows !== undefined && (rows < expectedRows || idConflicts > 0));
    const outcome: WrittenOutcome = {
      kind: isPartial ? 'partial' : 'ok',
      bytes: object.zipBytes,
      unverified: object.verified === 'crc' && options.verify !== 'none',
      ...(object.staleSidecar === undefined ? {} : { staleSidecar: true }),
      // `--verify sha256` needs a checksum, and the archive publishes none for this object.
      ...(options.verify === 'sha256' && object.verified === 'etag' && object.staleSidecar === undefined
        ? { noSidecar: true }
        : {}),
      ...(archiveFailed === undefined ? {} : { archiveFailed }),
      ...(replaces === undefined ? {} : { changed: { from: replaces, sha256: object.sha256 } }),
      ...facts,
    };
    const tell = (): Promise<void> => session.tell(plan, object.object, outcome);
    const { gaps } = facts;
    const isDoubtful =
      (isPartial && gaps !== undefined && months.doubt({ plan, object: object.object, gaps, tell })) ||
      (await cutDays.doubt({ plan, object: object.object, outcome }));
    if (!isDoubtful) await tell();
  }
  const refused = new Map<string, CryptodlError | 'held'>(result.failed);
  for (const key of result.stillHeld ?? []) refused.set(key, 'held');
  return refused;
}

/** Warns once of each new column of a dataset. */
function tellNewColumns(
  { tally, observer }: Pick<Session, 'observer' | 'tally'>,
  { market, dataset }: Series,
  names: readonly string[],
): void {
  for (const name of names) {
    const column = `${market} ${dataset} has a new column ${name}`;
    if (tally.newColumns.has(column)) continue;
    tally.newColumns.add(column);
    observer.warn(`${column}, which this version does not know: its cells are left out`);
  }
}

/** Reports how the held rows of REST differ from the rows that the archive published later. */
function tellOverlaps(
  { tally, observer }: Pick<Session, 'observer' | 'tally'>,
  plan: PartitionPlan,
  { overlaps }: WriteResult,
): void {
  for (const found of overlaps) {
    for (const name of ['compared', 'differing', 'onlyRest', 'onlyArchive'] as const)
      tally.add(`overlap.${name}`, found[name]);
    if (found.labelsShiftMs !== undefined) tally.add('overlap.shifted');
    observer.event('overlap', { ...plan.series, partition: plan.label, ...found });
  }
}

/** Keeps a refused body in the quarantine for inspection. */
async function keepEvidence(
  session: Pick<Session, 'paths' | 'tally'>,
  key: string,
  body: Parameters<typeof quarantine>[2],
  error: CryptodlError,
): Promise<void> {
  await quarantine(session.paths, key, body, `${error.code}: ${error.message}`);
  session.tally.add('quarantined');
}

// Tasks that write nothing are counted, noted for the manifest, and reported.

interface Notes {
  readonly report: FailureReport;
  readonly absences: AbsenceNotes;
  readonly months: MonthsFromDays;
}

/** Records a failed task. After a stop, `interrupted` is not recorded. A month that its daily objects may replace is recorded after them. */
export async function recordFailure(
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

/** Notes the failure for the manifest, reports the outcome, and adds the failure to the report. */
export async function tellFailure(
  session: Pick<Session, 'clock' | 'options' | 'tell'>,
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
  session: Session,
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
  const { reason, since, isRestEmpty, open } = action;
  months.absent(plan, object.period, reason);
  // A period that is not over yet cannot be absent.
  if (rest?.open !== true && open !== true)
    absences.note(plan.series, task.object.period, reason, {
      since,
      hasAskedRest: rest !== undefined || isRestEmpty === true,
      isRestEmpty,
    });
  if (reason === 'hole') report.addHole(plan, task, new Date(session.clock.now()).toISOString());
  return session.tell(plan, task.object, { kind: 'absent', reason });
}
