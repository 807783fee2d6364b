/** Passes received objects to the writer of their partition, and reports the outcomes of these and of all other tasks. */
import type { Body } from '../../model/fetch.js';
import { CutDays } from './cut-days.js';
import { releaseBodies } from '../objects/download-object.js';
import { quarantine } from '../../lake/quarantine.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import { CryptodlError } from '../../model/errors.js';
import type { WrittenOutcome } from '../../model/outcome.js';
import { MonthsFromDays } from './months-from-days.js';
import type { RunSession } from '../session/session.js';
import type { ArchiveObject, PartitionPlan, Series, Task } from '../../model/task.js';
import type { FailureReport } from '../report/failure-report.js';
import { AbsenceNotes } from './absence-notes.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type {
  Missing,
  PartitionWriter,
  ShorterRevision,
  WriteResult,
  WrittenObject,
} from '../../lake/write/writer.js';

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
    this.months = new MonthsFromDays(session, (...failure) => this.#tellFailure(...failure));
    this.cutDays = new CutDays(session);
  }

  /**
   * Writes the objects of a partition, and reports the outcomes of all but the failed ones. Returns the keys of failed objects with their
   * errors, and `held` for keys that the archive no longer has and whose held rows stay.
   */
  async write(
    writer: PartitionWriter,
    plan: PartitionPlan,
    received: readonly ReceivedObject[],
    missing: Missing,
  ): Promise<ReadonlyMap<string, CryptodlError | 'held'>> {
    const result = await writer.write(plan, received, missing);
    this.#countFiles(plan, result);
    for (const one of received) {
      const { object } = one;
      const error = result.failed.get(object.key);
      if (error !== undefined && ERROR_TRAITS[error.code].wrongBytes)
        await this.#keepEvidence(object.key, one.zip, error);
      await releaseBodies(one);
      const shorter = result.shorter?.get(object.key);
      const written = result.written.get(object.key);
      if (shorter !== undefined) await this.#tellShorter(plan, one, shorter);
      else if (written !== undefined) await this.#tellWritten(plan, one, written);
      else if (error === undefined) await this.session.tell(plan, object, { kind: 'skipped' });
    }
    const refused = new Map<string, CryptodlError | 'held'>(result.failed);
    for (const key of result.stillHeld ?? []) refused.set(key, 'held');
    return refused;
  }

  #countFiles(plan: PartitionPlan, result: WriteResult): void {
    const { observer, tally } = this.session;
    const { files, bytes } = result;
    tally.add('files', files);
    tally.add('fileBytes', bytes);
    tally.add('duplicatesKept', result.duplicatesAcross);
    tally.add('quarantined', result.quarantined ?? 0);
    tellOverlaps(this.session, plan, result);
    if (files > 0) observer.event('partition', { ...plan.series, partition: plan.label, files, bytes });
  }

  #tellShorter(
    plan: PartitionPlan,
    { object, zipBytes: bytes }: ReceivedObject,
    { rows, keptRows, lackedRows }: ShorterRevision,
  ): Promise<void> {
    const lacked = lackedRows === 0 ? {} : { lackedRows };
    const counts = { rows, expectedRows: keptRows, keptRows, ...lacked };
    return this.session.tell(plan, object, { kind: 'partial', bytes, unverified: false, ...counts });
  }

  /** Keeps an outcome that later objects of the run may change. */
  async #tellWritten(
    plan: PartitionPlan,
    { object, zipBytes, verified, staleSidecar, sha256 }: ReceivedObject,
    written: WrittenObject,
  ): Promise<void> {
    const { options } = this.session;
    const { replaces, ...facts } = written;
    tellNewColumns(this.session, plan.series, facts.newColumns ?? []);
    const { archiveFailed } = object.rest ?? {};
    const { rows = 0, idConflicts = 0, expectedRows, gaps } = written;
    const isPartial =
      gaps !== undefined || (expectedRows !== undefined && (rows < expectedRows || idConflicts > 0));
    // `--verify sha256` needs a checksum, and the archive publishes none for this object.
    const lacksSidecar = options.verify === 'sha256' && verified === 'etag' && staleSidecar === undefined;
    const outcome: WrittenOutcome = {
      kind: isPartial ? 'partial' : 'ok',
      bytes: zipBytes,
      unverified: verified === 'crc' && options.verify !== 'none',
      ...(staleSidecar === undefined ? {} : { staleSidecar: true }),
      ...(lacksSidecar ? { noSidecar: true } : {}),
      ...(archiveFailed === undefined ? {} : { archiveFailed }),
      ...(replaces === undefined ? {} : { changed: { from: replaces, sha256 } }),
      ...facts,
    };
    const tell = (): Promise<void> => this.session.tell(plan, object, outcome);
    const isDoubtful =
      (isPartial && gaps !== undefined && this.months.doubt({ plan, object, gaps, tell })) ||
      (await this.cutDays.doubt({ plan, object, outcome }));
    if (!isDoubtful) await tell();
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
    const tell = (): Promise<void> => this.#tellFailure(plan, object, error);
    if (!this.months.doubt({ plan, object, error, tell })) await tell();
  }

  /** Notes the failure for the manifest, reports the outcome, and adds the failure to the report. */
  async #tellFailure(plan: PartitionPlan, object: ArchiveObject, error: CryptodlError): Promise<void> {
    const { clock, options, tell } = this.session;
    const { series, settings } = plan;
    const isVerified = options.verify !== 'none';
    this.absences.noteFailure({ series, format: settings.format, isVerified }, object, error);
    await tell(plan, object, { kind: 'failed', error });
    await this.report.add(plan, object, error, new Date(clock.now()).toISOString());
  }

  /** Records a task whose plan says skip or absent. */
  async settled(plan: PartitionPlan, task: Task): Promise<void> {
    const error = refusalOf(task);
    if (error !== undefined) return this.failed(plan, task, error);
    const { action, object } = task;
    const { rest, period } = object;
    const { tell } = this.session;
    if (action.kind !== 'absent') {
      const skip = action.kind === 'skip' ? action : undefined;
      const lacksToo = skip?.isRestEmpty === true ? rest?.keepsHeld?.sha256 : undefined;
      if (rest?.keepsHeld !== undefined) this.absences.noteKept(plan.series, period, lacksToo);
      return tell(plan, object, {
        kind: 'skipped',
        ...(skip?.isWithdrawn === true ? { withdrawn: true } : {}),
        ...(skip?.archiveFailed === undefined ? {} : { archiveFailed: skip.archiveFailed }),
      });
    }
    const { reason, since, isRestEmpty, open } = action;
    this.months.absent(plan, period, reason);
    const hasAskedRest = rest !== undefined || isRestEmpty === true;
    // A period that is not over yet cannot be absent.
    if (rest?.open !== true && open !== true)
      this.absences.note(plan.series, period, reason, { since, hasAskedRest, isRestEmpty });
    return tell(plan, object, { kind: 'absent', reason });
  }
}

function tellNewColumns(
  { tally, observer }: RunSession,
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
function tellOverlaps({ tally, observer }: RunSession, plan: PartitionPlan, { overlaps }: WriteResult): void {
  for (const found of overlaps) {
    for (const name of ['compared', 'differing', 'onlyRest', 'onlyArchive'] as const)
      tally.add(`overlap.${name}`, found[name]);
    if (found.labelsShiftMs !== undefined) tally.add('overlap.shifted');
    observer.event('overlap', { ...plan.series, partition: plan.label, ...found });
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
