/** The counts of runs as flat numbers, which Redis can add up, and back. */
import { OUTCOME_KINDS } from '../model/outcome.js';
import type { ErrorCode } from '../model/errors.js';
import { ERROR_TRAITS } from '../model/error-codes.js';
import { ABSENCE_REASONS } from '../model/absence-reasons.js';
import { Tally } from '../report/tally.js';
import type { JobFailure } from './job-data.js';

/** By name, for example `ok` or `failedBy.connection-lost`. */
export type Counts = Record<string, number>;

const NUMBERS = [
  'failedRetryable',
  'failedPermanent',
  'waitedTooLong',
  'unverified',
  'staleSidecars',
  'noSidecars',
  'changed',
  'shorter',
  'withdrawn',
  'duplicates',
  'duplicatesAcross',
  'idConflicts',
  'conflictingObjects',
  'suspiciousObjects',
  'rows',
  'bytes',
  'files',
  'fileBytes',
  'quarantined',
] as const;

/** The counts above zero. */
export function countsOf(tally: Tally): Counts {
  const counts: Counts = {};
  const put = (name: string, count: number): void => {
    if (count > 0) counts[name] = count;
  };
  for (const name of NUMBERS) put(name, tally[name]);
  for (const kind of OUTCOME_KINDS) put(`outcome.${kind}`, tally.outcomes[kind]);
  for (const [reason, count] of Object.entries(tally.absentBy)) put(`absentBy.${reason}`, count);
  for (const [code, count] of Object.entries(tally.failedBy)) put(`failedBy.${code}`, count);
  return counts;
}

/** The counts of a job that failed before its objects were known: it counts as one object. */
export function countsOfFailure({ code, retryable }: Pick<JobFailure, 'code' | 'retryable'>): Counts {
  return {
    'outcome.failed': 1,
    [`failedBy.${code}`]: 1,
    [retryable ? 'failedRetryable' : 'failedPermanent']: 1,
  };
}

/** Counts that only the last attempt of a job decides. */
const OF_LAST = /^(?:failed|absentBy\.|outcome\.(?:failed|absent|skipped)$|waitedTooLong$)/;

/** The counts of an attempt that another one follows. The next one skips the written objects, which count as written. */
export function countsOfAttempt(counts: Counts): Counts {
  const written = (counts['outcome.ok'] ?? 0) + (counts['outcome.partial'] ?? 0);
  const kept = Object.entries(counts).filter(([name]) => !OF_LAST.test(name));
  return { ...Object.fromEntries(kept), 'outcome.skipped': -written };
}

/** A sum of counts of jobs. Attempts that are counted take objects away that the next one skips. */
export function numberOf(count = 0): number {
  return Number.isSafeInteger(count) ? Math.max(0, count) : 0;
}

/** A tally with these counts. Names that this program does not know are left out. */
export function tallyOf(counts: Readonly<Counts>): Tally {
  const tally = new Tally();
  for (const name of NUMBERS) tally[name] = numberOf(counts[name]);
  for (const kind of OUTCOME_KINDS) tally.outcomes[kind] = numberOf(counts[`outcome.${kind}`]);
  for (const reason of ABSENCE_REASONS)
    if (`absentBy.${reason}` in counts) tally.absentBy[reason] = numberOf(counts[`absentBy.${reason}`]);
  for (const name of Object.keys(counts)) {
    const [group, part = ''] = name.split('.');
    if (group === 'failedBy' && part in ERROR_TRAITS)
      tally.failedBy[part as ErrorCode] = numberOf(counts[name]);
  }
  return tally;
}
