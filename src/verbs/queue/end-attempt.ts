/** The end of an attempt of a job, and what the queue is told about it: the failure and the counts that the job has with it. */
import { Counters, type Counts } from '../../model/counters.js';
import { CryptodlError } from '../../model/errors.js';
import type { Serialize } from '../../model/in-order.js';
import type { SharedResources } from '../../model/shared-resources.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import type { Pipeline } from '../../run/session/pipeline.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { idOf, type QueuedJob } from './bullmq.js';
import type { CommandQueue } from './open-queue.js';
import { fieldsOf } from '../../text/json.js';
import { MOST_CHARACTERS, type FailedObject } from './job-data.js';

/** The `layers` are the options of the worker, for everything that a job does not decide. */
export interface ProcessContext
  extends
    Pick<VerbCall, 'exchange' | 'io' | 'layers' | 'verbs'>,
    Pick<CommandQueue, 'open' | 'warn'>,
    Pick<VerbRequest, 'surroundings' | 'clock' | 'signal'> {
  /** The lake of the worker, and whether its `--out` was given. */
  readonly lake: string;
  readonly isLakeGiven: boolean;
  readonly pipeline: Pipeline;
  readonly serialize: Serialize;
  /** The lakes in buckets that were tried: whether several workers may write them. */
  readonly common: SharedResources;
  /** The requests since the last call. */
  readonly newRequests: () => Counts;
  /** Called at the end of each attempt of a job. */
  readonly onEnd: (job: {
    readonly id: string;
    readonly written: number;
    readonly failure?: JobFailure;
    /** The job gets a further attempt. */
    readonly isPutOff?: boolean;
  }) => void;
  /** Gets the names of jobs that this worker leaves to others. */
  readonly left: Set<string>;
  /** Called with an error that would fail each job of this machine. The worker ends. */
  readonly onFatal: (error: CryptodlError) => void;
}

/** The end of an attempt. `own`: the failures because of which a further attempt may help; by default all. */
export interface JobAttemptEnd {
  readonly counts: Counts;
  readonly failed: readonly FailedObject[];
  readonly written: number;
  readonly own?: readonly FailedObject[];
}

/** The failure because of which a job gets a further attempt. */
export function furtherAttempt(job: QueuedJob, failed: readonly FailedObject[]): CryptodlError | undefined {
  const isLast = job.attemptsMade + 1 >= (job.opts.attempts ?? 1);
  return isLast ? undefined : passing(failed);
}

/** The failure that another attempt may not have. Another worker may have the credentials for a bucket that only the job names. */
const passing = (failed: readonly FailedObject[]): CryptodlError | undefined =>
  failed.find(({ error }) => (error.retryable && !error.fatal) || isRefused(error))?.error;

export const isRefused = ({ code }: CryptodlError): boolean => code === 'lake-refused';

export function endBy(error: CryptodlError): JobAttemptEnd {
  return { counts: {}, failed: [{ key: '', error }], written: 0 };
}

/** The counts of all attempts of a job until now. A conversion has those of its fetch in its data. */
export function countsUntil(
  { progress, data }: QueuedJob,
  { newRequests }: ProcessContext,
  counts: Counts,
): Counts {
  const before = [countsIn(data), countsIn(progress)];
  return new Counters(...before, counts, newRequests()).all;
}

/** Counts that only the last attempt of a job decides. */
const OF_LAST = /^(?:failed|absentBy\.|outcome\.(?:failed|absent|skipped)$|waitedTooLong$)/;

/** The counts of an attempt that another one follows. The next one skips the written objects, which count as written. */
function countsOfAttempt(counts: Counts): Counts {
  const written = (counts['outcome.ok'] ?? 0) + (counts['outcome.partial'] ?? 0);
  const kept = Object.entries(counts).filter(([name]) => !OF_LAST.test(name));
  return { ...Object.fromEntries(kept), 'outcome.skipped': -written };
}

/** Keeps the typed failure with the job, and ends this attempt. The last attempt, or a failure that stays, ends the job. */
export async function fail(
  context: ProcessContext,
  job: QueuedJob,
  { failed, counts, written, own = failed }: JobAttemptEnd,
): Promise<never> {
  const { bullmq } = context.open;
  const mayCome = passing(own);
  const error = mayCome ?? failed[0]?.error ?? new CryptodlError('bug', 'a job failed without an error');
  const attempts = job.attemptsMade + 1;
  const keys = failed.map(({ key }) => key).filter((key) => key !== '');
  const failure = jobFailure(error, keys, attempts);
  const isEnd = furtherAttempt(job, own) === undefined;
  const ofEnd = keys.length > 0 ? counts : countsOfFailure(failure);
  const untilNow = countsUntil(job, context, isEnd ? ofEnd : countsOfAttempt(counts));
  await job.updateProgress({ ...failure, counts: untilNow });
  context.onEnd({ id: idOf(job), written, failure, isPutOff: !isEnd });
  if (mayCome === undefined) throw new bullmq.UnrecoverableError(failure.message);
  // BullMQ makes a further attempt if one is left.
  throw new CryptodlError(error.code, failure.message, { retryAfterMs: error.retryAfterMs });
}

/** Daily objects of a year, and some more. */
const MOST_KEYS = 400;

const jobFailure = (
  { code, retryable, message }: CryptodlError,
  keys: readonly string[],
  attempts: number,
) => ({
  code,
  retryable,
  attempts,
  message: message.slice(0, MOST_CHARACTERS),
  /** The failed objects, or as many of them as a job can have. */
  keys: keys.slice(0, MOST_KEYS),
});
type JobFailure = ReturnType<typeof jobFailure>;

type JobError = Readonly<{ code: string; retryable: boolean }>;

/** The counts of a job that failed before its objects were known: it counts as one object. */
export const countsOfFailure = ({ code, retryable }: JobError): Counts => ({
  'outcome.failed': 1,
  [`failedBy.${code}`]: 1,
  [retryable ? 'failedRetryable' : 'failedPermanent']: 1,
});

/** The counts that a job has with it, as far as they are whole numbers. */
export function countsIn(value: unknown): Counts {
  const counts = Object.entries(fieldsOf(fieldsOf(value)['counts']));
  return Object.fromEntries(
    counts.filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])),
  );
}

/** BullMQ itself fails a job whose lease ran out too often: each of its workers ended while it had the job. */
export function stalledFailure(failedReason = '', attempts = 0): JobFailure | undefined {
  if (!/stalled more than/.test(failedReason)) return undefined;
  const error = new CryptodlError('job-stalled', 'each worker that began the job ended before the job');
  return jobFailure(error, [], attempts);
}

/** The code of the failure of a job as the queue has it; undefined if it has none that this program has written. */
export function jobErrorOf({
  failedReason,
  progress,
}: {
  readonly failedReason?: string;
  readonly progress: unknown;
}): JobError | undefined {
  const stalled = stalledFailure(failedReason);
  if (stalled !== undefined) return stalled;
  const { code, retryable, message } = fieldsOf(progress);
  if (typeof code !== 'string' || typeof retryable !== 'boolean' || typeof message !== 'string')
    return undefined;
  return { code: /^[a-z0-9-]{1,40}$/.test(code) ? code : 'unknown', retryable };
}
