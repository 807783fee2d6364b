/** What a worker does with a job: checks it, runs it, and tells the queue how it ended. */
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import type { Clock } from '../model/clock.js';
import type { Serialize } from '../queue/in-order.js';
import type { RedisClient } from '../redis/connection.js';
import type { JobQueue, QueuedJob, QueuePackage } from './bullmq.js';
import { isNewer, jobFailure, lakeProblem, lakeOf, parseFailure, parseJob } from './job-data.js';
import type { JobData, JobFailure } from './job-data.js';
import { runJob } from './run-job.js';
import type { FailedObject, JobContext, JobEnd } from './run-job.js';
import { settle } from './waits.js';
import type { Counts } from './tally-fields.js';

/** A job that this worker may not do waits this long for another worker. */
const PUT_BACK_MS = 30_000;

export interface ProcessContext extends JobContext {
  readonly bullmq: QueuePackage;
  readonly queue: JobQueue;
  readonly client: RedisClient;
  readonly clock: Clock;
  /** The lake of the worker, and whether its --out was given. */
  readonly lake: string;
  readonly isLakeGiven: boolean;
  readonly absolute: (path: string) => string;
  readonly serialize: Serialize;
  /** The requests since the last call. */
  readonly newRequests: () => Counts;
  /** Takes a message that is printed once. */
  readonly tellOnce: (message: string) => void;
  /** Called for each job that has ended. */
  readonly onEnd: (job: {
    readonly id: string;
    readonly written: number;
    readonly failure?: JobFailure;
  }) => void;
  /** Called with an error that would fail each job of this machine. The worker ends. */
  readonly onFatal: (error: CryptodlError) => void;
}

/** Errors of a job itself; all other fatal errors are those of the machine. */
const OF_JOB: ReadonlySet<string> = new Set(['usage', 'manifest-damaged', 'bug']);

/** The processor of BullMQ. */
export async function processJob(context: ProcessContext, job: QueuedJob, token: string): Promise<void> {
  const { bullmq, signal, clock } = context;
  const putBack = async (message: string): Promise<never> => {
    context.tellOnce(message);
    await job.moveToDelayed(clock.now() + PUT_BACK_MS, token);
    throw new bullmq.DelayedError();
  };
  if (isNewer(job.data))
    await putBack(
      'a later version of cryptodl made some jobs: this worker leaves them to others; update cryptodl',
    );
  let data: JobData;
  try {
    data = parseJob(job.data);
  } catch (error) {
    return fail(context, job, { failed: [{ key: '', error: toCryptodlError(error) }] });
  }
  const problem = lakeProblem(
    lakeOf(data.options.out?.[0] ?? '', context.absolute),
    context.lake,
    context.isLakeGiven,
  );
  if (problem !== undefined) await putBack(`${problem}: it leaves the job to others; to do it here: --out`);
  try {
    // Two jobs of a series would change one manifest at the same time.
    const end = await context.serialize(seriesOf(data), () => runJob(data, context));
    if (end.failed.length > 0) return await fail(context, job, end);
    const counts = { ...firstCounts(job, end.counts), ...context.newRequests(), jobs: 1 };
    await settle(context.client, context.queue.name, idOf(job), counts);
    context.onEnd({ id: idOf(job), written: end.written });
  } catch (error) {
    if (!(error instanceof CryptodlError)) throw error;
    if (signal.aborted || (error.fatal && !OF_JOB.has(error.code))) {
      if (!signal.aborted) context.onFatal(error);
      // The job waits for another worker at once, and loses no attempt.
      await job.moveToWait(token);
      throw new bullmq.WaitingError();
    }
    return fail(context, job, { failed: [{ key: '', error }] });
  }
}

function seriesOf({ options: { out, market, dataset, interval, symbols } }: JobData): string {
  return [out, market, dataset, interval, symbols].join('~');
}

/** Objects that an earlier attempt of the job has written count as written, not as skipped. */
function firstCounts(job: QueuedJob, counts: Counts): Counts {
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

interface Failed {
  readonly failed: readonly FailedObject[];
  readonly counts?: JobEnd['counts'];
  readonly written?: number;
}

/** Keeps the typed failure with the job, and ends this attempt. The last attempt, or a failure that stays, ends the job. */
async function fail(
  context: ProcessContext,
  job: QueuedJob,
  { failed, counts = {}, written = 0 }: Failed,
): Promise<never> {
  const { bullmq, client, queue } = context;
  const mayCome = failed.find(({ error }) => error.retryable && !error.fatal);
  const error = (mayCome ?? failed[0])?.error ?? new CryptodlError('bug', 'a job failed without an error');
  const attempts = job.attemptsMade + 1;
  const keys = failed.map(({ key }) => key).filter((key) => key !== '');
  const failure = jobFailure(error, keys, attempts);
  const isLast = mayCome === undefined || attempts >= (job.opts.attempts ?? 1);
  const all = firstCounts(job, counts);
  await job.updateProgress({ ...failure, done: withoutFailures(all) });
  context.onEnd({ id: idOf(job), written, ...(isLast ? { failure } : {}) });
  if (isLast)
    await settle(client, queue.name, idOf(job), {
      ...(keys.length > 0 ? all : countsOfFailure(failure)),
      ...context.newRequests(),
      jobs: 1,
      failedJobs: 1,
    });
  if (mayCome === undefined) throw new bullmq.UnrecoverableError(failure.message);
  throw new RetryLater(failure.message, error.retryAfterMs);
}

/** The end of an attempt that another one follows. */
export class RetryLater extends Error {
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs: number | undefined) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

function withoutFailures(counts: Counts): Counts {
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

/** BullMQ itself fails a job whose lease ran out too often: each of its workers ended while it had the job. */
export async function failStalled(context: ProcessContext, job: QueuedJob): Promise<void> {
  if (parseFailure(job.progress)?.code === 'job-stalled') return;
  const error = new CryptodlError('job-stalled', 'each worker that began the job ended before the job');
  const failure = jobFailure(error, [], job.attemptsMade);
  await job.updateProgress({ ...failure });
  await settle(context.client, context.queue.name, idOf(job), {
    ...countsOfFailure(failure),
    jobs: 1,
    failedJobs: 1,
  });
  context.onEnd({ id: idOf(job), written: 0, failure });
}

function idOf({ id = '' }: QueuedJob): string {
  return id;
}
