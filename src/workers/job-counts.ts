/** The counts of a job over its attempts, as `enqueue --wait` shows them. */
import type { QueuedJob } from './bullmq.js';
import type { JobFailure } from './job-data.js';
import type { Counts } from './tally-fields.js';

/** Objects that an earlier attempt of the job has written count as written, not as skipped. */
export function firstCounts(job: QueuedJob, counts: Counts): Counts {
  const earlier = earlierCounts(job);
  if (earlier === undefined) return counts;
  const sum: Counts = { ...counts };
  let moved = 0;
  for (const [name, count] of Object.entries(earlier)) {
    if (name.startsWith('absentBy.') || name === 'outcome.absent' || name === 'outcome.skipped') continue;
    sum[name] = (sum[name] ?? 0) + count;
    if (name === 'outcome.ok' || name === 'outcome.partial') moved += count;
  }
  sum['outcome.skipped'] = Math.max(0, (counts['outcome.skipped'] ?? 0) - moved);
  return sum;
}

/** The counts that an attempt leaves for the next one. */
function earlierCounts(job: QueuedJob): Counts | undefined {
  const progress: unknown = job.progress;
  if (typeof progress !== 'object' || progress === null || !('done' in progress)) return undefined;
  const { done } = progress;
  if (typeof done !== 'object' || done === null) return undefined;
  return Object.fromEntries(
    Object.entries(done).filter(
      (entry): entry is [string, number] => typeof entry[1] === 'number' && Number.isSafeInteger(entry[1]),
    ),
  );
}

/** The counts that the next attempt of a job adds to its own. */
export function withoutFailures(counts: Counts): Counts {
  return Object.fromEntries(
    Object.entries(counts).filter(
      ([name]) => !name.startsWith('failed') && name !== 'outcome.failed' && name !== 'waitedTooLong',
    ),
  );
}

/** The counts of a job that failed before its objects were known: it counts as one object. */
export function countsOfFailure({ code, retryable }: Pick<JobFailure, 'code' | 'retryable'>): Counts {
  return {
    'outcome.failed': 1,
    [`failedBy.${code}`]: 1,
    [retryable ? 'failedRetryable' : 'failedPermanent']: 1,
  };
}
