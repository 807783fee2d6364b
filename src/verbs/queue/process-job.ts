/** What a worker does with a job: checks it, runs it, and tells the queue how it ended. */
import { rm, writeFile } from 'node:fs/promises';
import type { ReceivedZip, ZipStore } from '../../run/session.js';
import type { StagedZips, ZipRecord } from '../../lake/mirror/staged-zips.js';
import { notBefore } from '../../model/clock.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import type { SharedResources } from '../../model/io.js';
import { isLakeAddress } from '../../model/lake-address.js';
import type { Serialize } from '../../model/in-order.js';
import type { QueuedJob } from './bullmq.js';
import { countsOfFailure, jobFailure, lakeProblem, lakeOf, parseJob } from './job-data.js';
import type { JobData, JobFailure } from './job-data.js';
import { addConversion, addFetch, failuresIn, idOf } from './hand-over.js';
import type { OpenQueue } from './open-queue.js';
import { refuseWithoutConditions, runJob } from './run-job.js';
import type { FailedObject, JobContext, JobEnd, JobPart } from './run-job.js';
import type { Counts } from '../../model/counters.js';
import type { AttemptReport } from './waits.js';

/** A job that this worker may not do waits this long for another worker. */
const PUT_BACK_MS = 30_000;

/** The lake of a worker, and whether its --out was given. */
export interface OwnLake {
  readonly lake: string;
  readonly isLakeGiven: boolean;
}

export interface ProcessContext extends JobContext, OwnLake {
  readonly open: OpenQueue;
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

/** Errors of a job itself; all other fatal errors are those of the machine. */
const OF_JOB: ReadonlySet<string> = new Set(['usage', 'manifest-damaged', 'bug']);

/** What a worker does with the jobs of a queue: all of it, or one of its two parts. */
export type Work = 'whole' | 'fetch' | 'convert';

/** The processor of BullMQ. `leaseSignal` aborts when the lease of the job is lost: another worker does the job then. */
export async function processJob(
  context: ProcessContext,
  job: QueuedJob,
  token: string,
  work: Work,
  leaseSignal: AbortSignal = new AbortController().signal,
): Promise<AttemptReport> {
  const { signal } = context;
  const { bullmq } = context.open;
  let data: JobData;
  try {
    data = parseJob(job.data);
  } catch (error) {
    return fail(context, job, endBy(toCryptodlError(error)));
  }
  const problem = lakeOfOthers(lakeOf(data), context, work);
  if (problem !== undefined) {
    context.warn(problem);
    context.left.add(idOf(job));
    await job.moveToDelayed(context.clock.now() + PUT_BACK_MS, token);
    throw new bullmq.DelayedError();
  }
  let failed: AttemptEnd;
  try {
    const jobContext = {
      ...context,
      // A machine whose clock is behind would leave out the last days.
      clock: notBefore(context.clock, job.timestamp),
      signal: AbortSignal.any([signal, leaseSignal]),
    };
    const end = await doPart(data, jobContext, job, work);
    if (end === undefined) return { counts: context.newRequests(), isFetched: true };
    if (end.failed.length === 0) {
      context.onEnd({ id: idOf(job), written: end.written });
      return { counts: { ...end.counts, ...context.newRequests() } };
    }
    failed = end;
  } catch (thrown) {
    // Without the lease, BullMQ accepts no end.
    if (leaseSignal.aborted) throw thrown;
    const error = signal.aborted ? toCryptodlError(thrown) : thrown;
    if (!(error instanceof CryptodlError)) throw error;
    const isOfJob = OF_JOB.has(error.code) || (isRefused(error) && !context.isLakeGiven);
    if (signal.aborted || (error.fatal && !isOfJob)) {
      if (!signal.aborted) context.onFatal(error);
      // The job waits for another worker at once, and loses no attempt.
      await job.moveToWait(token);
      throw new bullmq.WaitingError();
    }
    failed = endBy(error);
  }
  return fail(context, job, failed);
}

/** Why this worker leaves a job with this lake to others; undefined if it does the job. */
function lakeOfOthers(lake: string, own: OwnLake, work: Work): string | undefined {
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
  work: Work,
): Promise<AttemptEnd | undefined> {
  const { serialize, common } = context;
  const act = work === 'fetch' && !isConverted(data) ? 'whole' : work;
  const lake = lakeOf(data);
  const run = async (): Promise<AttemptEnd | undefined> => {
    if (act !== 'fetch' && isLakeAddress(lake))
      await common.once(`conditions of ${lake}`, () => refuseWithoutConditions(data, context));
    return ACTS[act](data, context, job);
  };
  // Two jobs of a series would change one manifest at the same time, and two jobs with orders one order.
  const { out, market, dataset, interval, symbols } = data.options;
  const series = [out, market, dataset, interval, symbols].join('~');
  const inTurn = (): Promise<AttemptEnd | undefined> => serialize(series, run);
  return data.orders === undefined ? inTurn() : serialize(`orders ${lake}`, inTurn);
}

/** The end of an attempt. `own`: the failures because of which a further attempt may help; by default all. */
interface AttemptEnd extends JobEnd {
  readonly own?: readonly FailedObject[];
}

type Act = (data: JobData, context: ProcessContext, job: QueuedJob) => Promise<AttemptEnd | undefined>;

/** Resolve with the end of this attempt, or with undefined if another worker goes on with the job. */
const ACTS: Readonly<Record<Work, Act>> = {
  whole: (data, context) => runJob(data, context),
  fetch: async (data, context, job) => {
    await whileBehind(context);
    const part: JobPart = { name: idOf(job), zips: fetching, end: () => Promise.resolve() };
    const end = await runJob(data, context, part);
    // Without a further attempt, the fetched zips are converted first; then the job fails with the objects that could not be fetched.
    if (furtherAttempt(job, end.failed) !== undefined) return end;
    await addConversion(context.open.converting, job, data, end.failed, context);
    return undefined;
  },
  convert: async (data, context, job) => {
    const failures = failuresIn(job.data);
    const ownOf = ({ failed }: JobEnd): FailedObject[] => failed.filter(({ key }) => !failures.has(key));
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
const BEHIND_POLL_MS = 2000;

async function whileBehind({ open, clock, signal, warn }: ProcessContext): Promise<void> {
  for (;;) {
    const { waiting = 0, prioritized = 0 } = await open.converting.getJobCounts('waiting', 'prioritized');
    if (waiting + prioritized < MOST_STAGED) return;
    warn(
      `${MOST_STAGED} fetched jobs wait for their conversion: this worker pauses until workers with --role convert have done some`,
    );
    await clock.sleep(BEHIND_POLL_MS, signal);
  }
}

/** The failure because of which a job gets a further attempt. */
function furtherAttempt(job: QueuedJob, failed: readonly FailedObject[]): CryptodlError | undefined {
  const isLast = job.attemptsMade + 1 >= (job.opts.attempts ?? 1);
  return isLast ? undefined : passing(failed);
}

/** The failure that another attempt may not have. Another worker may have the credentials for a bucket that only the job names. */
function passing(failed: readonly FailedObject[]): CryptodlError | undefined {
  return failed.find(({ error }) => (error.retryable && !error.fatal) || isRefused(error))?.error;
}

function isRefused({ code }: CryptodlError): boolean {
  return code === 'lake-refused';
}

function endBy(error: CryptodlError): JobEnd {
  return { counts: {}, failed: [{ key: '', error }], written: 0 };
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
async function fail(
  context: ProcessContext,
  job: QueuedJob,
  { failed, counts, written, own = failed }: AttemptEnd,
): Promise<never> {
  const { bullmq } = context.open;
  const mayCome = passing(own);
  const error = mayCome ?? failed[0]?.error ?? new CryptodlError('bug', 'a job failed without an error');
  const attempts = job.attemptsMade + 1;
  const keys = failed.map(({ key }) => key).filter((key) => key !== '');
  const failure = jobFailure(error, keys, attempts);
  const isEnd = furtherAttempt(job, own) === undefined;
  const ofEnd = keys.length > 0 ? counts : countsOfFailure(failure);
  const report: AttemptReport = {
    counts: { ...(isEnd ? ofEnd : countsOfAttempt(counts)), ...context.newRequests() },
  };
  await job.updateProgress({ ...failure, ...report });
  context.onEnd({ id: idOf(job), written, failure, isPutOff: !isEnd });
  if (mayCome === undefined) throw new bullmq.UnrecoverableError(failure.message);
  // BullMQ makes a further attempt if one is left.
  throw new CryptodlError(error.code, failure.message, { retryAfterMs: error.retryAfterMs });
}

// The two parts of a job that one worker fetches and another converts: both are runs whose zips pass through the bucket of the lake.

/** Whether the rows of a job come from zips alone. Rows of REST are not staged, and zips that stay zips are not converted. */
function isConverted({ verb, options }: JobData): boolean {
  const { fill, join, format } = options;
  return verb === 'vision' && fill === undefined && join === undefined && format?.[0] !== 'zip';
}

const NONE: ReceivedZip['zip'] = { kind: 'memory', bytes: Buffer.alloc(0) };

/** The run requests the zips that are not staged yet, and stages them one by one. */
function fetching(staged: StagedZips): ZipStore {
  return {
    isLast: true,
    zipOf: async (object, path, request) => {
      const known = await staged.find(object);
      if (known === 'absent') return undefined;
      if (known !== undefined) return receivedZip(known, NONE);
      const received = await request();
      const zip = received?.zip ?? NONE;
      try {
        if (zip.kind === 'memory') await writeFile(path, zip.bytes);
        await staged.put(object, received === undefined ? { absent: true } : recordOf(received), path);
      } finally {
        await rm(path, { force: true });
      }
      return received && { ...received, zip: NONE };
    },
  };
}

/** The run takes each zip from the bucket, and none from the archive. `failed`: the objects that could not be fetched. */
function converting(staged: StagedZips, failed: ReadonlyMap<string, CryptodlError>): ZipStore {
  return {
    isLast: false,
    zipOf: async (object, path) => {
      const failure = failed.get(object.key);
      if (failure !== undefined) throw failure;
      const record = await staged.find(object);
      if (record === 'absent') return undefined;
      if (record === undefined || !(await staged.take(object, record, path)))
        throw new CryptodlError(
          'staged-zip-lost',
          `${object.key}: the fetched zip is not in the bucket any more, or has other bytes`,
          { hint: 'a worker fetches it again: cryptodl retry --redis URL' },
        );
      return receivedZip(record, { kind: 'file', path, size: record.bytes });
    },
  };
}

function recordOf(received: ReceivedZip): ZipRecord {
  const { zip: _, zipBytes: bytes, verified, ...facts } = received;
  if (verified === 'rest' || verified === 'lake') throw new CryptodlError('bug', 'rows of REST have no zip');
  return { ...facts, verified, bytes };
}

function receivedZip({ bytes, ...facts }: ZipRecord, zip: ReceivedZip['zip']): ReceivedZip {
  return { ...facts, zip, zipBytes: bytes };
}
