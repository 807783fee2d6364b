/** The counts of a run, and those of them that an outcome changes. */
import { Counters } from '../../model/counters.js';
import type { ErrorCode } from '../../model/errors.js';
import type { AbsenceReason } from '../../model/absence-reasons.js';
import type { SourceObject } from '../../model/task.js';
import { OUTCOME_KINDS, type Outcome, type OutcomeKind, type WrittenOutcome } from '../../model/outcome.js';
import { countText, listText } from '../../model/units.js';

/** The counts that a summary shows under their own names. */
export const SUMMED = [
  'bytes',
  'rows',
  'files',
  'unverified',
  'staleSidecars',
  'noSidecars',
  'changed',
  'withdrawn',
  'shorter',
  'duplicatesDropped',
  'duplicatesKept',
  'idConflicts',
  'suspiciousObjects',
] as const;

/**
 * `fileBytes`: bytes of the written files · `conflictingObjects`: objects with `idConflicts` · `skippedPaths`: files and links of the lake
 * that `repair` could not read or follow · `overlap`: comparisons of held rows from REST with rows of the archive · `days`: of a dataset.
 */
export type CountName =
  | (typeof SUMMED)[number]
  | 'fileBytes'
  | 'quarantined'
  | 'conflictingObjects'
  | 'skippedPaths'
  | 'waitedTooLong'
  | 'failedRetryable'
  | 'failedPermanent'
  | `outcome.${OutcomeKind}`
  | `absentBy.${AbsenceReason}`
  | `failedBy.${ErrorCode}`
  | `archiveFailed.${'fromRest' | 'held'}`
  | `days.${'held' | 'missing'}`
  | `overlap.${'compared' | 'differing' | 'onlyRest' | 'onlyArchive' | 'shifted'}`;

/** The counts of objects that the closing block shows with examples. */
export const NOTES = {
  changed: 'changed upstream, fetched again',
  withdrawn: 'withdrawn upstream; the held rows stay',
  'archiveFailed.fromRest':
    'from REST: the archive did not answer; the next run tries it again, and its rows replace these',
  'archiveFailed.held': 'held from REST stay: the archive did not answer; the next run tries it again',
  shorter:
    'revised upstream without some of the held rows; the held rows stay (--revisions take accepts the revision)',
  conflictingObjects: 'with rows of the same id or bar and different values',
  suspiciousObjects: 'with values that cannot be right; the rows are kept',
  unverified: 'no checksum published, checked only by the CRC-32 of the zip',
  noSidecars: 'no checksum published, checked by ETag',
  staleSidecars: 'stale checksum, accepted by size and ETag',
} as const satisfies Partial<Record<CountName, string>>;

export type NoteName = keyof typeof NOTES;

/** All kinds, also those without an object. */
export function outcomesOf(counts: Pick<Counters<CountName>, 'of'>): Record<OutcomeKind, number> {
  const counted = OUTCOME_KINDS.map((kind) => [kind, counts.of(`outcome.${kind}`)]);
  return Object.fromEntries(counted) as Record<OutcomeKind, number>;
}

/** Takes a count of an outcome, with an example for the closing block. */
type Add = (name: CountName, count?: number, example?: string) => void;

export function countOutcome(
  outcome: Outcome,
  { key, period: { from, to } }: Pick<SourceObject, 'key' | 'period'>,
  add: Add,
): void {
  if (outcome.kind === 'failed') {
    const { code, retryable, message } = outcome.error;
    add('outcome.failed');
    add(`failedBy.${code}`, 1, `${key}: ${message}`);
    if (code === 'wait-too-long') add('waitedTooLong');
    else add(retryable ? 'failedRetryable' : 'failedPermanent');
    add('days.missing', to - from);
  } else if (outcome.kind === 'absent') {
    add('outcome.absent');
    add(`absentBy.${outcome.reason}`, 1, key);
    if (outcome.reason === 'hole') add('days.missing', to - from);
  } else {
    add('days.held', to - from);
    if (outcome.kind !== 'skipped') countWritten(outcome, key, add);
    else {
      add('outcome.skipped');
      if (outcome.archiveFailed !== undefined) add('archiveFailed.held');
      if (outcome.withdrawn === true) add('withdrawn', 1, key);
    }
  }
}

function countWritten(outcome: WrittenOutcome, key: string, add: Add): void {
  const { kind, rows = 0, keptRows, lackedRows, idConflicts, suspicious, changed } = outcome;
  if (keptRows !== undefined) {
    const lacked = lackedRows === undefined ? '' : `; it lacks ${lackedRows} held rows`;
    add(`outcome.${kind}`);
    add('shorter', 1, `${key}: ${rows} rows, the lake holds ${keptRows}${lacked}`);
    return;
  }
  add(`outcome.${kind}`, 1, kind === 'partial' ? partialText(key, outcome) : undefined);
  add('rows', rows);
  add('bytes', outcome.bytes);
  add('duplicatesDropped', outcome.duplicates ?? 0);
  add('idConflicts', idConflicts ?? 0);
  if (outcome.archiveFailed !== undefined) add('archiveFailed.fromRest');
  if (idConflicts !== undefined) add('conflictingObjects', 1, `${key}: ${idConflicts} rows`);
  const texts = suspicious?.map((one) => `${countText(one.rows, 'row')} ${one.kind}, first ${one.first}`);
  if (texts !== undefined) add('suspiciousObjects', 1, `${key}: ${texts.join('; ')}`);
  if (outcome.unverified) add('unverified', 1, key);
  if (outcome.noSidecar === true) add('noSidecars', 1, key);
  if (outcome.staleSidecar === true) add('staleSidecars', 1, key);
  if (changed !== undefined)
    add('changed', 1, `${key}: SHA-256 ${changed.from.sha256} is now ${changed.sha256}`);
}

function partialText(
  key: string,
  { rows = 0, expectedRows, gaps = [], idConflicts = 0, ids }: WrittenOutcome,
): string {
  const times = gaps.map((gap) => {
    const [from, to] = gap.map((instant) => instant.slice(0, 'YYYY-MM-DDTHH:MM'.length).replace('T', ' '));
    return `from ${from} to ${to}`;
  });
  const places = listText(times, 3);
  const lacking = ids?.missing === undefined ? '' : `; ${countText(ids.missing, 'id')} missing`;
  if (expectedRows === undefined) return `${key}: no rows ${places}${lacking}`;
  const hint = key.includes('/monthly/') ? '; cryptodl audit compares it with its days' : '';
  const others = rows < expectedRows || gaps.length === 0 ? '' : `, none ${places}`;
  if (idConflicts === 0) return `${key}: ${rows} of ${expectedRows} rows${others}${hint}`;
  return `${key}: ${rows - idConflicts} of ${expectedRows} bars, ${countText(idConflicts, 'row')} more${hint}`;
}
