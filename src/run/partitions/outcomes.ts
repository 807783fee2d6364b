/** Reports the outcomes of all tasks: of those that were written, that failed, and that needed no request. */
import type { Body } from '../../model/fetch.js';
import { CutDays } from './cut-days.js';
import { releaseBodies } from '../objects/download-object.js';
import { quarantine } from '../../lake/quarantine.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import { CryptodlError } from '../../model/errors.js';
import { MonthsFromDays, type EndedObject } from './months-from-days.js';
import type { RunSession } from '../session/session.js';
import type { PartitionPlan, Task, Series } from '../../model/task.js';
import type { FailureReport } from '../failures/failure-file.js';
import { AbsenceNotes } from './absence-notes.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { WriteResult, ShorterRevision, WrittenObject } from '../../lake/write/writer.js';
import type { WrittenOutcome } from '../../model/outcome.js';

/** What becomes of the tasks of a run: all are counted and reported, failed and absent ones are noted for the manifests. */
export class Outcomes {
  readonly absences: AbsenceNotes;
  readonly months: MonthsFromDays;
  readonly cutDays: CutDays;

  constructor(
    private readonly session: RunSession,
    private readonly report: FailureReport,
  ) {
    this.absences = new AbsenceNotes(session);
    this.months = new MonthsFromDays(session);
    this.cutDays = new CutDays(session);
  }

  /** Reports the file of a write, and the objects that the writer did not refuse. */
  async written(
    plan: PartitionPlan,
    received: readonly ReceivedObject[],
    result: WriteResult,
  ): Promise<void> {
    tellFile(this.session, plan, result);
    for (const one of received) await this.#received(plan, one, result);
  }

  /** Releases the object after its write, and reports it unless it was refused. */
  async #received(plan: PartitionPlan, received: ReceivedObject, result: WriteResult): Promise<void> {
    const { object } = received;
    const error = result.failed.get(object.key);
    if (error !== undefined && ERROR_TRAITS[error.code].wrongBytes)
      await this.#keepEvidence(object.key, received.body, error);
    await releaseBodies(received);
    const shorter = result.shorter?.get(object.key);
    const written = result.written.get(object.key);
    if (shorter !== undefined) await this.#tell({ plan, object, outcome: shorterOutcome(received, shorter) });
    else if (written !== undefined) {
      tellNewColumns(this.session, plan.series, written);
      const outcome = writtenOutcome(received, written, this.session.options);
      // Later objects of the run may change it.
      const ended = { plan, object, outcome };
      if (!this.months.doubt(ended) && !(await this.cutDays.doubt(ended))) await this.#tell(ended);
    } else if (error === undefined) await this.#tell({ plan, object, outcome: { kind: 'skipped' } });
  }

  async #keepEvidence(key: string, body: Body, { code, message }: CryptodlError): Promise<void> {
    const { paths, tally } = this.session;
    await quarantine(paths, key, body, `${code}: ${message}`);
    tally.add('quarantined');
  }

  /** Records a failed task. After a stop, `interrupted` is not recorded. A month that its daily objects may replace is recorded after them. */
  async failed(plan: PartitionPlan, { object }: Task, error: CryptodlError): Promise<void> {
    if (this.session.stop.signal.aborted && error.code === 'interrupted') return;
    if (error.evidence !== undefined) await this.#keepEvidence(object.key, error.evidence.body, error);
    this.months.failed(plan);
    const ended = { plan, object, outcome: { kind: 'failed', error } } as const;
    if (!this.months.doubt(ended)) await this.#tell(ended);
  }

  /** Reports the months that waited for their daily objects. */
  async tellMonths(): Promise<void> {
    for await (const ended of this.months.ends()) await this.#tell(ended);
  }

  /** Reports an outcome. A failure is also noted for the manifest, and added to the failure report. */
  async #tell({ plan, object, outcome }: EndedObject): Promise<void> {
    const { clock, tell } = this.session;
    if (outcome.kind === 'failed') this.absences.noteFailure(plan, object, outcome.error);
    await tell(plan, object, outcome);
    if (outcome.kind === 'failed')
      await this.report.add(plan, object, outcome.error, new Date(clock.now()).toISOString());
  }

  /** Records a task whose plan says skip or absent. */
  async settled(plan: PartitionPlan, task: Task): Promise<void> {
    const error = refusalOf(task);
    if (error !== undefined) return this.failed(plan, task, error);
    const { action, object } = task;
    const { rest, period } = object;
    if (action.kind !== 'absent') {
      const skip = action.kind === 'skip' ? action : undefined;
      const lacksToo = skip?.isRestEmpty === true ? rest?.keepsHeld?.sha256 : undefined;
      if (rest?.keepsHeld !== undefined) this.absences.noteKept(plan.series, period, lacksToo);
      return this.session.tell(plan, object, {
        kind: 'skipped',
        ...(skip?.isWithdrawn === true ? { withdrawn: true } : {}),
        ...(skip?.archiveFailed === undefined ? {} : { archiveFailed: skip.archiveFailed }),
      });
    }
    const { reason, sinceDay, isRestEmpty, open } = action;
    this.months.absent(plan, period, reason);
    const hasAskedRest = rest !== undefined || isRestEmpty === true;
    // A period that is not over yet cannot be absent.
    if (rest?.open !== true && open !== true)
      this.absences.note(plan.series, period, reason, { sinceDay, hasAskedRest, isRestEmpty });
    return this.session.tell(plan, object, { kind: 'absent', reason });
  }
}

/** The error for a revision that an earlier run refused and that is still listed. */
function refusalOf({ action }: Task): CryptodlError | undefined {
  if (action.kind !== 'skip' || action.refused === undefined) return undefined;
  const { code, at } = action.refused;
  return new CryptodlError(
    code,
    `this revision failed at ${at}; this version of cryptodl does not fetch it again until the archive publishes another (cryptodl retry does)`,
    // This run sends no request.
    { attempts: 0 },
  );
}

/** `partial`: the period must have more rows, or has rows of the same id or bar with other values. */
function writtenOutcome(
  { object, bytes, verified, staleSidecar, sha256 }: ReceivedObject,
  written: WrittenObject,
  { verify }: Pick<RunSession['options'], 'verify'>,
): WrittenOutcome {
  const { replaces, ...facts } = written;
  const { archiveFailed } = object.rest ?? {};
  const { rows = 0, idConflicts = 0, expectedRows, gaps } = written;
  const isPartial =
    gaps !== undefined || (expectedRows !== undefined && (rows < expectedRows || idConflicts > 0));
  // `--verify sha256` needs a checksum, and the archive publishes none for this object.
  const lacksSidecar = verify === 'sha256' && verified === 'etag' && staleSidecar === undefined;
  return {
    kind: isPartial ? 'partial' : 'ok',
    bytes,
    unverified: verified === 'crc' && verify !== 'none',
    ...(staleSidecar === undefined ? {} : { staleSidecar: true }),
    ...(lacksSidecar ? { noSidecar: true } : {}),
    ...(archiveFailed === undefined ? {} : { archiveFailed }),
    ...(replaces === undefined ? {} : { changed: { from: replaces, sha256 } }),
    ...facts,
  };
}

/** Of a revision that lacks held rows, which stay. */
function shorterOutcome(
  { bytes }: ReceivedObject,
  { rows, keptRows, lackedRows }: ShorterRevision,
): WrittenOutcome {
  const lacked = lackedRows === 0 ? {} : { lackedRows };
  return { kind: 'partial', bytes, unverified: false, rows, expectedRows: keptRows, keptRows, ...lacked };
}

/** Counts and reports the files of a write, and how the held rows of REST differ from the rows that the archive published later. */
function tellFile({ observer, tally }: RunSession, plan: PartitionPlan, result: WriteResult): void {
  const { files, bytes } = result;
  tally.add('files', files);
  tally.add('fileBytes', bytes);
  tally.add('duplicatesKept', result.duplicatesAcross);
  tally.add('quarantined', result.quarantined ?? 0);
  for (const found of result.overlaps) {
    for (const name of ['compared', 'differing', 'onlyRest', 'onlyArchive'] as const)
      tally.add(`overlap.${name}`, found[name]);
    if (found.labelsShiftMs !== undefined) tally.add('overlap.shifted');
    observer.event('overlap', { ...plan.series, partition: plan.label, ...found });
  }
  if (files > 0) observer.event('partition', { ...plan.series, partition: plan.label, files, bytes });
}

/** Warns of each new column once. */
function tellNewColumns(
  { tally, observer }: RunSession,
  { market, dataset }: Series,
  { newColumns = [] }: WrittenObject,
): void {
  for (const name of newColumns) {
    const column = `${market} ${dataset} has a new column ${name}`;
    if (tally.newColumns.has(column)) continue;
    tally.newColumns.add(column);
    observer.warn(`${column}, which this version does not know: its cells are left out`);
  }
}
