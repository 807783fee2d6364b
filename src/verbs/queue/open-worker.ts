/** Opens the workers of BullMQ, waits for the end of their jobs, and closes them. */
import { hostname } from 'node:os';
import { redisProblem } from '../../http/redis/redis-errors.js';
import type { Clock } from '../../model/clock.js';
import { CryptodlError } from '../../model/errors.js';
import { isLakeAddress } from '../../model/lake-address.js';
import type { Options } from '../../plan/options/flags.js';
import type { JobQueue, JobWorker } from './bullmq.js';
import { stalledFailure, type ProcessContext } from './end-attempt.js';
import type { OpenQueue } from './open-queue.js';
import { processJob, type JobScope } from './process-job.js';

const LONGEST_BACKOFF_MS = 300_000;

function openWorker(
  queue: string,
  act: JobScope,
  { jobs: concurrency, leaseMs, retryDelayMs }: Options<'jobs' | 'lease' | 'retry-delay'>,
  context: ProcessContext,
): JobWorker {
  const { open, lake, isLakeGiven } = context;
  // Workers of the same folder, also on different machines, have the same end of the name.
  const end = isLakeGiven && !isLakeAddress(lake) ? endOf(lake) : '';
  const jobs = open.bullmq.openWorker(
    queue,
    open.connection,
    // BullMQ makes the signal for a function with three parameters.
    (job, token, leaseSignal) => processJob(context, job, token ?? '', act, leaseSignal),
    {
      name: `${hostname()}:${process.pid}${end}`,
      concurrency,
      lockDuration: leaseMs,
      stalledInterval: leaseMs / 2,
      // Two workers that are killed one after the other must not fail their job.
      maxStalledCount: 5,
      // Minutes of which the number of jobs is kept for `status`.
      metrics: { maxDataPoints: 24 * 60 },
      settings: { backoffStrategy: (attempts, _type, error) => backoffMs(retryDelayMs, attempts, error) },
    },
  );
  listen(jobs, open, context);
  return jobs;
}

/**
 * Opens a worker until it is ready. A worker of BullMQ whose own connection is cut before it is ready never takes a job, also when the server is
 * there again. After a stop, the worker may not be ready.
 */
export async function readyWorker(...parameters: Parameters<typeof openWorker>): Promise<JobWorker> {
  const { clock, signal } = parameters[3];
  for (;;) {
    const jobs = openWorker(...parameters);
    try {
      await jobs.waitUntilReady();
      return jobs;
    } catch {
      if (signal.aborted) return jobs;
    }
    await closeWorker(jobs, clock);
    await clock.sleep(DRAIN_POLL_MS, signal).catch(() => undefined);
  }
}

/** The pause before a further attempt of a job: that of the host, or longer with each attempt. */
function backoffMs(retryDelayMs: number, attempts = 1, error?: Error): number {
  const own = Math.min(retryDelayMs * 10 * 4 ** (attempts - 1), LONGEST_BACKOFF_MS);
  const { retryAfterMs = 0 } = error instanceof CryptodlError ? error : {};
  return Math.max(own, retryAfterMs);
}

function listen(jobs: JobWorker, open: OpenQueue, { onEnd, warn }: ProcessContext): void {
  jobs.on('failed', (job, error) => {
    const failure = stalledFailure(error.message, job?.attemptsMade);
    if (job !== undefined && failure !== undefined) onEnd({ id: job.id ?? '', written: 0, failure });
  });
  jobs.on('lockRenewalFailed', (ids) => {
    for (const id of ids) jobs.cancelJob(id);
  });
  jobs.on('error', (error) => {
    // A worker that was paused for longer than its lease comes back to a job that another worker has: its commits were safe.
    if (/^(?:Missing lock|Missing key|Lock mismatch|could not renew lock)/i.test(error.message))
      warn(
        'the lease of a job ran out while this worker had it, or the server lost the job: another worker does it again',
      );
    else warn(`${redisProblem(open.address, error).message}; the worker tries again`);
  });
}

/** Without a connection to Redis, the jobs in hand cannot be given back: their leases end by themselves. */
const CLOSE_MS = 20_000;

/** Gives back the jobs in hand: they wait for another worker at once. */
export async function closeWorker(jobs: JobWorker, clock: Clock): Promise<void> {
  const waited = new AbortController();
  const closing = jobs.close();
  closing.catch(() => undefined);
  try {
    await Promise.race([closing, clock.sleep(CLOSE_MS, waited.signal)]);
  } finally {
    waited.abort();
  }
}

/** Resolves after a stop; with `left`, also when the queues have no jobs but those that this worker leaves to others. */
export async function untilEnd(
  queues: readonly JobQueue[],
  { signal, clock }: ProcessContext,
  left: ReadonlySet<string> | undefined,
): Promise<void> {
  const stopped = new Promise<'stopped'>((resolve) => {
    signal.addEventListener('abort', () => resolve('stopped'));
  });
  while (!signal.aborted) {
    await clock.sleep(DRAIN_POLL_MS, signal).catch(() => undefined);
    // Without a connection, the counts come with the next one.
    if (left !== undefined && (await Promise.race([stopped, openJobs(queues, left)])) === 0) return;
  }
}

/** The number of jobs that this worker may still do. A job that goes from one queue to the next is in both for a moment. */
async function openJobs(queues: readonly JobQueue[], left: ReadonlySet<string>): Promise<number> {
  try {
    let open = 0;
    for (const queue of queues) {
      open += await queue.getJobCountByTypes('waiting', 'prioritized', 'delayed', 'active');
      if (left.size === 0) continue;
      const delayed = await queue.getDelayed(0, left.size - 1);
      open -= delayed.filter(({ id = '' }) => left.has(id)).length;
    }
    return open;
  } catch {
    return Number.NaN;
  }
}

const DRAIN_POLL_MS = 500;

/** A name on the Redis server has no blanks. */
const endOf = (folder: string): string => `:${encodeURIComponent(folder)}`;

/** To be called before the worker begins. Rejects with `locked`. */
export async function refuseSecond(open: OpenQueue, lake: string): Promise<void> {
  // A user of an ACL may not be allowed to see the clients.
  const workers = await open.queue.getWorkers().catch(() => []);
  const other = workers.find(({ rawname = '' }) => rawname.endsWith(endOf(lake)));
  if (other === undefined) return;
  throw new CryptodlError(
    'locked',
    `another worker of the queue ${open.name} writes to the folder ${lake} (${other['addr'] ?? 'no address'})`,
    {
      hint: 'a folder has one worker; several workers need a lake in a bucket, for example --out s3://my-bucket/lake',
    },
  );
}
