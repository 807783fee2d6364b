/** What an outcome adds to the counts of a run and of its dataset, and its example in the closing block. */
import type { AbsenceReason } from '../model/absence-reasons.js';
import type { Counters } from '../model/counters.js';
import type { ErrorCode } from '../model/errors.js';
import { OUTCOME_KINDS } from '../model/outcome.js';
import type { Outcome, OutcomeKind, WrittenOutcome } from '../model/outcome.js';
import type { Period } from '../model/task.js';
import { countText, listText } from '../model/units.js';

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
  shorter:
    'revised upstream without some of the held rows; the held rows stay (--revisions take accepts the revision)',
  conflictingObjects: 'with rows of the same id or bar and different values',
  suspiciousObjects: 'with values that cannot be right; the rows are kept',
  unverified: 'no checksum published, checked only by the CRC-32 of the zip',
  noSidecars: 'no checksum published, checked by ETag',
  staleSidecars: 'stale checksum, accepted by size and ETag',
} as const satisfies Partial<Record<CountName, string>>;

export type Note = keyof typeof NOTES;

/** By note, error code, reason of absence, or `partial`. */
type Example = readonly [kind: Note | ErrorCode | AbsenceReason | 'partial', text: string];

/** All kinds, also those without an object. */
export function outcomesOf(counts: Pick<Counters<CountName>, 'of'>): Record<OutcomeKind, number> {
  const counted = OUTCOME_KINDS.map((kind) => [kind, counts.of(`outcome.${kind}`)]);
  return Object.fromEntries(counted) as Record<OutcomeKind, number>;
}

/** Adds the outcome of an object with this period. */
export function countOutcome(counts: Counters<CountName>, outcome: Outcome, { from, to }: Period): void {
  counts.add(`outcome.${outcome.kind}`);
  switch (outcome.kind) {
    case 'failed':
      counts.add(`failedBy.${outcome.error.code}`);
      if (outcome.error.code === 'wait-too-long') counts.add('waitedTooLong');
      else counts.add(outcome.error.retryable ? 'failedRetryable' : 'failedPermanent');
      counts.add('days.missing', to - from);
      return;
    case 'absent':
      counts.add(`absentBy.${outcome.reason}`);
      if (outcome.reason === 'hole') counts.add('days.missing', to - from);
      return;
    case 'skipped':
      if (outcome.archiveFailed !== undefined) counts.add('archiveFailed.held');
      break;
    case 'ok':
    case 'partial':
      countWritten(counts, outcome);
  }
  counts.add('days.held', to - from);
}

function countWritten(counts: Counters<CountName>, outcome: WrittenOutcome): void {
  if (outcome.keptRows !== undefined) return;
  counts.add('rows', outcome.rows ?? 0);
  counts.add('bytes', outcome.bytes);
  counts.add('duplicatesDropped', outcome.duplicates ?? 0);
  counts.add('idConflicts', outcome.idConflicts ?? 0);
  if (outcome.archiveFailed !== undefined) counts.add('archiveFailed.fromRest');
}

export function examplesOf(key: string, outcome: Outcome): readonly Example[] {
  switch (outcome.kind) {
    case 'failed':
      return [[outcome.error.code, `${key}: ${outcome.error.message}`]];
    case 'absent':
      return [[outcome.reason, key]];
    case 'skipped':
      return outcome.withdrawn === true ? [['withdrawn', key]] : [];
    case 'ok':
    case 'partial':
      return examplesOfWritten(key, outcome);
  }
}

function examplesOfWritten(key: string, outcome: WrittenOutcome): readonly Example[] {
  const { rows = 0, keptRows, lackedRows, idConflicts, suspicious, changed } = outcome;
  if (keptRows !== undefined) {
    const lacked = lackedRows === undefined ? '' : `; it lacks ${lackedRows} held rows`;
    return [['shorter', `${key}: ${rows} rows, the lake holds ${keptRows}${lacked}`]];
  }
  const examples: Example[] = [];
  if (idConflicts !== undefined) examples.push(['conflictingObjects', `${key}: ${idConflicts} rows`]);
  const texts = suspicious?.map(
    ({ kind, rows: wrong, first }) => `${countText(wrong, 'row')} ${kind}, first ${first}`,
  );
  if (texts !== undefined) examples.push(['suspiciousObjects', `${key}: ${texts.join('; ')}`]);
  if (outcome.unverified) examples.push(['unverified', key]);
  if (outcome.noSidecar === true) examples.push(['noSidecars', key]);
  if (outcome.staleSidecar === true) examples.push(['staleSidecars', key]);
  if (changed !== undefined)
    examples.push(['changed', `${key}: SHA-256 ${changed.from.sha256} is now ${changed.sha256}`]);
  if (outcome.kind === 'partial') examples.push(['partial', partialText(key, outcome)]);
  return examples;
}

function partialText(
  key: string,
  { rows = 0, expectedRows, gaps = [], idConflicts = 0, ids }: WrittenOutcome,
): string {
  const places = listText(
    gaps.map(([from, to]) => `from ${minuteText(from)} to ${minuteText(to)}`),
    3,
  );
  const lacking = ids?.missing === undefined ? '' : `; ${countText(ids.missing, 'id')} missing`;
  if (expectedRows === undefined) return `${key}: no rows ${places}${lacking}`;
  const hint = key.includes('/monthly/') ? '; cryptodl audit compares it with its days' : '';
  const others = rows < expectedRows || gaps.length === 0 ? '' : `, none ${places}`;
  if (idConflicts === 0) return `${key}: ${rows} of ${expectedRows} rows${others}${hint}`;
  return `${key}: ${rows - idConflicts} of ${expectedRows} bars, ${countText(idConflicts, 'row')} more${hint}`;
}

function minuteText(instant: string): string {
  return instant.slice(0, 'YYYY-MM-DDTHH:MM'.length).replace('T', ' ');
}
