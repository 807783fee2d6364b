/** What a worker does with a job: checks it, does it or leaves it to others, and tells the queue how it ended. */
import { notBefore } from '../../model/clock.js';
import type { Counts } from '../../model/counters.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import { isLakeAddress } from '../../model/lake-address.js';
import { idOf, type QueuedJob } from './bullmq.js';
import { addConversion, addFetch, failuresIn } from './add-jobs.js';
import { lakeOf, lakeProblem, parseJob, type FailedObject, type JobData } from './job-data.js';
import { isConverted, fetching, converting, refuseWithoutConditions, runJob } from './run-job.js';
import type { JobPart } from './run-job.js';
import { fail, endBy, countsUntil, isRefused, furtherAttempt } from './end-attempt.js';
import type { ProcessContext, JobAttemptEnd } from './end-attempt.js';

/** Errors of a job itself; all other fatal errors are those of the machine. */
const OF_JOB: ReadonlySet<string> = new Set(['usage', 'manifest-damaged', 'bug']);

export type JobScope = 'whole' | 'fetch' | 'convert';

/** The processor of BullMQ. `leaseSignal` aborts when the lease of the job is lost: another worker does the job then. */
export async function processJob(
  context: ProcessContext,
  job: QueuedJob,
  token: string,
  scope: JobScope,
  leaseSignal: AbortSignal = new AbortController().signal,
): Promise<{ readonly counts: Counts } | undefined> {
  const { bullmq } = context.open;
  let data: JobData;
  try {
    data = parseJob(job.data);
  } catch (error) {
    return fail(context, job, endBy(toCryptodlError(error)));
  }
  const problem = lakeOfOthers(lakeOf(data), context, scope);
  if (problem !== undefined) {
    context.warn(problem);
    context.left.add(idOf(job));
    // It waits this long for another worker.
    await job.moveToDelayed(context.clock.now() + 30_000, token);
    throw new bullmq.DelayedError();
  }
  const jobContext = {
    ...context,
    // A machine whose clock is behind would leave out the last days.
    clock: notBefore(context.clock, job.timestamp),
    signal: AbortSignal.any([context.signal, leaseSignal]),
  };
  const end = await doPart(data, jobContext, job, scope).catch(async (thrown: unknown) => {
    // Without the lease, BullMQ accepts no end.
    if (leaseSignal.aborted) throw thrown;
    const error = errorOfJob(thrown, context);
    if (error !== undefined) return endBy(error);
    // The job waits for another worker at once, and loses no attempt.
    await job.moveToWait(token);
    throw new bullmq.WaitingError();
  });
  if (end === undefined) return undefined;
  if (end.failed.length > 0) return fail(context, job, end);
  context.onEnd({ id: idOf(job), written: end.written });
  return { counts: countsUntil(job, context, end.counts) };
}

/** The error that fails a job; undefined if the worker or its machine is the cause. Throws bugs. */
function errorOfJob(
  thrown: unknown,
  { signal, isLakeGiven, onFatal }: ProcessContext,
): CryptodlError | undefined {
  if (signal.aborted) return undefined;
  if (!(thrown instanceof CryptodlError)) throw thrown;
  const isOfJob = OF_JOB.has(thrown.code) || (isRefused(thrown) && !isLakeGiven);
  if (!thrown.fatal || isOfJob) return thrown;
  onFatal(thrown);
  return undefined;
}

/** Why this worker leaves a job with this lake to others; undefined if it does the job. */
function lakeOfOthers(lake: string, own: ProcessContext, work: JobScope): string | undefined {
  const wrongLake = lakeProblem(lake, own.lake, own.isLakeGiven);
  // The zips pass from one part to the other through the bucket of the lake.
  const needsBucket = work !== 'whole' && !isLakeAddress(lake);
  if (wrongLake === undefined && !needsBucket) return undefined;
  const problem = wrongLake ?? `the job is for the folder ${lake}, not a bucket`;
  const words = `--out ${lake}${needsBucket ? ' --role both' : ''}`;
  return `${problem}: this worker leaves the job to others; to do it here: cryptodl worker ${words}`;
}

function doPart(
  data: JobData,
  context: ProcessContext,
  job: QueuedJob,
  work: JobScope,
): Promise<JobAttemptEnd | undefined> {
  const { serialize, common } = context;
  const act = work === 'fetch' && !isConverted(data) ? 'whole' : work;
  const lake = lakeOf(data);
  const run = async (): Promise<JobAttemptEnd | undefined> => {
    if (act !== 'fetch' && isLakeAddress(lake))
      await common.once(`conditions of ${lake}`, () => refuseWithoutConditions(data, context));
    return ACTS[act](data, context, job);
  };
  // Two jobs of a series would change one manifest at the same time, and two jobs with orders one order.
  const { out, market, dataset, interval, symbols } = data.options;
  const series = [out, market, dataset, interval, symbols].join('~');
  const inTurn = (): Promise<JobAttemptEnd | undefined> => serialize(series, run);
  return data.orders === undefined ? inTurn() : serialize(`orders ${lake}`, inTurn);
}

type Act = (data: JobData, context: ProcessContext, job: QueuedJob) => Promise<JobAttemptEnd | undefined>;

/** Resolve with the end of this attempt, or with undefined if another worker goes on with the job. */
const ACTS: Readonly<Record<JobScope, Act>> = {
  whole: (data, context) => runJob(data, context),
  fetch: async (data, context, job) => {
    await whileBehind(context);
    const part: JobPart = { name: idOf(job), zips: fetching, end: () => Promise.resolve() };
    const end = await runJob(data, context, part);
    // Without a further attempt, the fetched zips are converted first; then the job fails with the objects that could not be fetched.
    if (furtherAttempt(job, end.failed) !== undefined) return end;
    const counts = countsUntil(job, context, {});
    await addConversion(context.open.converting, job, { ...data, counts }, end.failed, context);
    return undefined;
  },
  convert: async (data, context, job) => {
    const failures = failuresIn(job.data);
    const ownOf = ({ failed }: JobAttemptEnd): FailedObject[] =>
      failed.filter(({ key }) => !failures.has(key));
    const part: JobPart = {
      name: idOf(job),
      zips: (staged) => converting(staged, failures),
      end: async (end, staged) => {
        if (furtherAttempt(job, ownOf(end)) === undefined) return staged.remove();
        // This conversion fails, too. Its next attempt uses the objects that were fetched again by then.
        await staged.remove(ownOf(end).map(({ key }) => key));
        await addFetch(context.open.queue, job, data);
      },
    };
    const end = await runJob(data, context, part);
    return { ...end, own: ownOf(end) };
  },
};

/** Fetching pauses while this many jobs wait for their conversion, because their zips take room in the bucket. */
const MOST_STAGED = 1000;

async function whileBehind({ open, clock, signal, warn }: ProcessContext): Promise<void> {
  for (;;) {
    if ((await open.converting.getJobCountByTypes('waiting', 'prioritized')) < MOST_STAGED) return;
    warn(
      `${MOST_STAGED} fetched jobs wait for their conversion: this worker pauses until workers with --role convert have done some`,
    );
    await clock.sleep(2000, signal);
  }
}
