/** The counts of runs as flat numbers, which Redis can add up, and back. */
import { UTC } from '../model/calendar.js';
import type { Counts } from '../model/counters.js';
import { ERROR_TRAITS } from '../model/error-codes.js';
import { REASON_FACTS } from '../model/absence-reasons.js';
import { Tally } from '../report/tally.js';
import type { JobFailure } from './job-data.js';

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

/** A tally with these counts. Error codes and reasons that this program does not know are left out. */
export function tallyOf(counts: Counts): Tally {
  const known = Object.entries(counts).filter(([name]) => {
    const [group, label = ''] = name.split('.');
    if (group === 'failedBy') return label in ERROR_TRAITS;
    return group !== 'absentBy' || label in REASON_FACTS;
  });
  return new Tally(UTC, Object.fromEntries(known.map(([name, count]) => [name, numberOf(count)])));
}
