/** The counts of a run, for closing block, JSON summary and exit code, and the next command after failures. */
import { UTC } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import type { CryptodlError, ErrorCode } from '../model/errors.js';
import type { Outcome, OutcomeKind, WrittenOutcome } from '../model/outcome.js';
import type { AbsenceReason } from '../model/absence-reasons.js';
import type { Format, Series } from '../model/task.js';
import { countText, listText } from '../model/units.js';
import { shellWord } from '../text/printable.js';
import { DatasetTally } from './dataset-tally.js';

/** Examples of each kind in the closing block, at most. The failure report has all failures. */
const EXAMPLES = 5;

/** Counts of objects that the closing block shows with examples. */
export type Note =
  | 'changed'
  | 'withdrawn'
  | 'shorter'
  | 'conflictingObjects'
  | 'suspiciousObjects'
  | 'unverified'
  | 'noSidecars'
  | 'staleSidecars';

export class Tally {
  readonly datasets: DatasetTally;
  readonly outcomes: Record<OutcomeKind, number> = { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 0 };
  readonly absentBy: Partial<Record<AbsenceReason, number>> = {};
  readonly failedBy: Partial<Record<ErrorCode, number>> = {};
  /** By error code, reason of absence, `partial`, or name of a note. */
  readonly examples = new Map<string, string[]>();
  /** New columns of the archive that were told, with their dataset. */
  readonly newColumns = new Set<string>();
  /** The series and format of the first object with rows in the lake. */
  written: { readonly series: Series; readonly format: Format } | undefined;
  failedRetryable = 0;
  failedPermanent = 0;
  /** Files and links of the lake that `repair` could not read or follow. */
  skippedPaths = 0;
  waitedTooLong = 0;
  unverified = 0;
  staleSidecars = 0;
  /** Objects without a published checksum. The ETag was checked instead. */
  noSidecars = 0;
  /** Held objects that changed upstream. */
  changed = 0;
  /** Revisions that were rejected, because they lack held rows. */
  shorter = 0;
  /** Held objects that the archive no longer has. */
  withdrawn = 0;
  /** Objects of an archive that did not answer: those with new rows from REST, and those whose held rows from REST stay. */
  archiveFailed = { fromRest: 0, held: 0 };
  duplicates = 0;
  duplicatesAcross = 0;
  /** Rows with the id or bar of another row of their object but other values, and rows of bars outside the period. */
  idConflicts = 0;
  /** Objects with such rows. */
  conflictingObjects = 0;
  /** Objects with rows whose values cannot be right. */
  suspiciousObjects = 0;
  rows = 0;
  /** Bytes of the objects that were written into the lake: zips, and rows from REST as CSV. */
  bytes = 0;
  files = 0;
  fileBytes = 0;
  quarantined = 0;
  /** Comparisons of held rows from REST with rows of the archive. */
  overlap = { compared: 0, differing: 0, onlyRest: 0, onlyArchive: 0, shifted: 0 };

  constructor(dayStart: DayStart = UTC) {
    this.datasets = new DatasetTally(dayStart);
  }

  count(key: string, outcome: Outcome): void {
    this.outcomes[outcome.kind] += 1;
    switch (outcome.kind) {
      case 'ok':
      case 'partial':
        if (outcome.keptRows !== undefined) {
          const lacked = outcome.lackedRows === undefined ? '' : `; it lacks ${outcome.lackedRows} held rows`;
          this.#note(
            'shorter',
            `${key}: ${outcome.rows ?? 0} rows, the lake holds ${outcome.keptRows}${lacked}`,
          );
          return;
        }
        this.rows += outcome.rows ?? 0;
        this.bytes += outcome.bytes;
        this.duplicates += outcome.duplicates ?? 0;
        if (outcome.idConflicts !== undefined) {
          this.idConflicts += outcome.idConflicts;
          this.#note('conflictingObjects', `${key}: ${outcome.idConflicts} rows`);
        }
        if (outcome.suspicious !== undefined)
          this.#note('suspiciousObjects', `${key}: ${outcome.suspicious.map(suspiciousText).join('; ')}`);
        if (outcome.archiveFailed !== undefined) this.archiveFailed.fromRest += 1;
        if (outcome.unverified) this.#note('unverified', key);
        if (outcome.noSidecar === true) this.#note('noSidecars', key);
        if (outcome.staleSidecar === true) this.#note('staleSidecars', key);
        if (outcome.changed !== undefined)
          this.#note(
            'changed',
            `${key}: SHA-256 ${outcome.changed.from.sha256} is now ${outcome.changed.sha256}`,
          );
        if (outcome.kind === 'partial') this.#example('partial', partialText(key, outcome));
        return;
      case 'absent':
        this.absentBy[outcome.reason] = (this.absentBy[outcome.reason] ?? 0) + 1;
        this.#example(outcome.reason, key);
        return;
      case 'failed':
        this.#countFailure(outcome.error);
        this.#example(outcome.error.code, `${key}: ${outcome.error.message}`);
        return;
      case 'skipped':
        if (outcome.archiveFailed !== undefined) this.archiveFailed.held += 1;
        if (outcome.withdrawn === true) this.#note('withdrawn', key);
    }
  }

  #countFailure(error: CryptodlError): void {
    this.failedBy[error.code] = (this.failedBy[error.code] ?? 0) + 1;
    if (error.code === 'wait-too-long') this.waitedTooLong += 1;
    else if (error.retryable) this.failedRetryable += 1;
    else this.failedPermanent += 1;
  }

  #note(kind: Note, text: string): void {
    this[kind] += 1;
    this.#example(kind, text);
  }

  #example(kind: string, text: string): void {
    const texts = this.examples.get(kind);
    if (texts === undefined) this.examples.set(kind, [text]);
    else if (texts.length < EXAMPLES) texts.push(text);
  }
}

/** `3 rows zero, first 2024-01-15T00:03:00Z open 0` */
function suspiciousText({ kind, rows, first }: NonNullable<WrittenOutcome['suspicious']>[number]): string {
  return `${countText(rows, 'row')} ${kind}, first ${first}`;
}

function partialText(
  key: string,
  {
    rows = 0,
    expectedRows,
    gaps = [],
    idConflicts = 0,
    ids,
  }: Pick<Outcome & { kind: 'partial' }, 'rows' | 'expectedRows' | 'gaps' | 'idConflicts' | 'ids'>,
): string {
  const lacking = ids?.missing === undefined ? '' : `${countText(ids.missing, 'id')} missing`;
  const places = listText(gaps.map(gapText), 3);
  if (expectedRows === undefined && !key.includes('/daily/'))
    return `${key}: no rows ${places}${lacking === '' ? '' : `; ${lacking}`}`;
  if (expectedRows === undefined)
    return `${key}: ${lacking === '' ? gaps.map(cutText).join(', ') : `${lacking} ${places}`}`;
  const hint = key.includes('/monthly/') ? '; cryptodl audit compares it with its days' : '';
  const others = rows < expectedRows || gaps.length === 0 ? '' : `, none ${places}`;
  if (idConflicts === 0) return `${key}: ${rows} of ${expectedRows} rows${others}${hint}`;
  return `${key}: ${rows - idConflicts} of ${expectedRows} bars, ${countText(idConflicts, 'row')} more${hint}`;
}

/** The gap of a cut day as text: the rows end early, begin late, or stop for a while. */
function cutText([from, to]: readonly [string, string]): string {
  if (!isMidnight(from) && !isMidnight(to)) return `no rows ${gapText([from, to])}`;
  return isMidnight(to) ? `ends at ${hourText(from)}` : `begins at ${hourText(to)}`;
}

function gapText([from, to]: readonly [string, string]): string {
  return `from ${minuteText(from)} to ${minuteText(to)}`;
}

function minuteText(instant: string): string {
  return instant.slice(0, 'YYYY-MM-DDTHH:MM'.length).replace('T', ' ');
}

function isMidnight(instant: string): boolean {
  return /T00:00:00(?:\.000)?Z$/.test(instant);
}

function hourText(instant: string): string {
  return `${instant.slice('2024-01-15T'.length, '2024-01-15T07:00'.length)} UTC`;
}

// The next command after a run with failures.

export type Failed = Pick<Tally, 'failedBy' | 'failedPermanent' | 'failedRetryable' | 'waitedTooLong'>;

/** The next command. `reportPath`: the path as it is shown to the user. */
export function nextStep(
  { failedBy, failedPermanent, failedRetryable, waitedTooLong }: Failed,
  reportPath: string,
): string {
  const retry = `cryptodl retry ${shellWord(reportPath)}`;
  const stale = failedBy[STALE] ?? 0;
  const mayCome = failedRetryable + waitedTooLong;
  if (mayCome === 0 && failedPermanent > 0) return `${AGAIN}; ${shellWord(reportPath)} names the objects`;
  return stale > 0 && stale === mayCome ? `${retry} --stale-checksum warn` : retry;
}

/** The sum of several runs. */
export function sumOfFailed(runs: readonly Failed[]): Failed {
  const failedBy: Partial<Record<ErrorCode, number>> = {};
  const sum = { failedPermanent: 0, failedRetryable: 0, waitedTooLong: 0 };
  for (const run of runs) {
    for (const [code, count] of Object.entries(run.failedBy) as [ErrorCode, number][])
      failedBy[code] = (failedBy[code] ?? 0) + count;
    for (const name of ['failedPermanent', 'failedRetryable', 'waitedTooLong'] as const)
      sum[name] += run[name];
  }
  return { failedBy, ...sum };
}

const STALE: ErrorCode = 'sidecar-stale';
/** The next step after failures that `cryptodl retry` cannot change. */
const AGAIN = 'run the same command again later: a retry now fails the same way';
