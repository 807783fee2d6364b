/** Adds jobs to a queue: those of a command in batches, and those that workers that fetch and workers that convert hand to each other. */
import type { Io } from '../../model/io.js';
import { numberText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import { redisProblem } from '../../http/redis/redis-errors.js';
import { printLines } from '../../text/printable.js';
import { idOf, type JobQueue, type NewJob, type QueuedJob } from './bullmq.js';
import { jobId, jobData, MOST_CHARACTERS, type FailedObject, type JobData } from './job-data.js';
import type { CommandQueue } from './open-queue.js';
import type { PendingJobs } from './wait-for-jobs.js';
import type { Clock } from '../../model/clock.js';
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import { fieldsOf } from '../../text/json.js';

export interface Adding extends Pick<CommandQueue, 'open'> {
  readonly signals: Pick<CommandQueue['signals'], 'signal'>;
  readonly pendingJobs: PendingJobs | undefined;
  readonly options: Options<'priority' | 'max-waiting' | 'quiet'>;
  readonly io: Pick<Io, 'clock' | 'stderr'>;
}

type Level = Options<'priority'>['priority'];

const BATCH = 1000;
/** The first attempt and two further ones, each with the retries of its requests. */
const ATTEMPTS = 3;

/** Resolves with the number of jobs, and with the number of those that the queue did not have. The queue ignores a job whose name it has. */
export async function addJobs(
  jobs: Iterable<JobData>,
  adding: Adding,
): Promise<{ readonly jobs: number; readonly fresh: number }> {
  let batch: NewJob[] = [];
  let added = 0;
  let fresh = 0;
  let wasFull = false;
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    wasFull = await untilRoom(adding, batch.length, wasFull);
    fresh += await addBatch(adding, batch);
    added += batch.length;
    batch = [];
  };
  for (const data of jobs) {
    batch.push(newJob(data, priorityOf(adding.options.priority, adding.io.clock.now())));
    if (batch.length >= Math.min(BATCH, adding.options.maxWaiting)) await flush();
  }
  await flush();
  return { jobs: added, fresh };
}

/** Resolves with the number of jobs that the queue did not have. */
async function addBatch({ open, pendingJobs }: Adding, batch: NewJob[]): Promise<number> {
  const { address, connection, queue } = open;
  const ids = batch.map(({ opts }) => opts?.jobId ?? '');
  try {
    await pendingJobs?.add(ids);
    const known = await connection.client.exists(...ids.map((id) => queue.toKey(id)));
    await queue.addBulk(batch);
    return batch.length - known;
  } catch (error) {
    throw redisProblem(address, error);
  }
}

const KEPT_UNTIL_DONE = {
  attempts: ATTEMPTS,
  backoff: { type: 'cryptodl' },
  // A job that is enqueued again runs again, and finds nothing to do in the manifest of its series.
  removeOnComplete: true,
  removeOnFail: false,
  stackTraceLimit: 0,
};

function newJob(data: JobData, priority: number): NewJob {
  return { name: data.verb, data, opts: { ...KEPT_UNTIL_DONE, jobId: jobId(data), priority } };
}

/** Back-pressure. Resolves with whether the queue was full, now or before. */
async function untilRoom(
  { open, options, io, signals: { signal } }: Adding,
  batch: number,
  wasFull: boolean,
): Promise<boolean> {
  for (let isTold = wasFull; ; isTold = true) {
    signal.throwIfAborted();
    const waiting = await open.queue.getJobCountByTypes('waiting', 'prioritized');
    if (waiting + batch <= Math.max(options.maxWaiting, batch)) return isTold;
    if (!isTold && !options.quiet)
      printLines(io.stderr, [
        `${numberText(waiting)} jobs wait in the queue: adding more as workers take them (--max-waiting)`,
      ]);
    await io.clock.sleep(1000, signal);
  }
}

const STEP_MS = 600_000;
/** Priorities count from here. BullMQ has 2 ** 21 of them, which last for 39 years. */
const FIRST_MS = Date.UTC(2026, 0, 1);
/** A job of a lower level is as urgent as one of a higher level that is enqueued so many steps later: 12 hours each. */
const LEVELS: Readonly<Record<Level, number>> = { high: 0, normal: 72, low: 144 };

/**
 * The priority of BullMQ; the lowest number runs first. It is the time of the job in steps of ten minutes, later for lower levels: a
 * job that waits is overtaken only by jobs of a higher level that come within 12 hours per level, so none waits forever.
 */
export function priorityOf(level: Level, nowMs: number): number {
  const steps = Math.floor((nowMs - FIRST_MS) / STEP_MS);
  return Math.min(Math.max(1, steps + LEVELS[level] + 1), 2 ** 21);
}

/**
 * Hands a job whose zips are staged to the workers that convert. `failed`: the objects that could not be fetched. Its name stays the same, so a job
 * that is handed over twice is there once. It is added before it leaves its own queue: it may be in both, and is never in none.
 */
export async function addConversion(
  queue: JobQueue,
  job: QueuedJob,
  data: JobData,
  failed: readonly FailedObject[],
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  const failures = failed.map(({ key, error: { code, message } }) => ({
    key,
    code,
    message: message.slice(0, MOST_CHARACTERS),
  }));
  const staged = { ...data, ...(failures.length > 0 ? { failures } : {}) };
  for (;;) {
    const found = await queue.getJob(idOf(job));
    const state = await found?.getState();
    // A conversion that has begun may have looked for its zips before they were staged: another one must follow it.
    if (state === 'active') await clock.sleep(500, signal);
    else if (state === 'failed') await found?.remove();
    else if (found === undefined || state === 'unknown') return addTo(queue, job, staged);
    else {
      await found.updateData(staged);
      if (state === 'delayed') await found.promote().catch(() => undefined);
      return;
    }
  }
}

/** Hands a job whose zips must be fetched again back, in the same way. */
export async function addFetch(
  queue: JobQueue,
  job: QueuedJob,
  { verb, options, orders }: JobData,
): Promise<void> {
  const found = await queue.getJob(idOf(job));
  if ((await found?.getState()) === 'failed') await found?.remove();
  await addTo(queue, job, jobData(verb, options, orders));
}

async function addTo(queue: JobQueue, job: QueuedJob, data: JobData): Promise<void> {
  const { name, opts } = newJob(data, job.opts.priority ?? 1);
  await queue.add(name, data, { ...opts, jobId: idOf(job) });
}

/** The objects that could not be fetched, as the data of a job name them. */
export function failuresIn(data: unknown): ReadonlyMap<string, CryptodlError> {
  const { failures } = fieldsOf(data);
  const found = new Map<string, CryptodlError>();
  for (const failure of Array.isArray(failures) ? failures : []) {
    const { key, code, message } = fieldsOf(failure);
    if (typeof key !== 'string' || typeof code !== 'string' || typeof message !== 'string') continue;
    if (Object.hasOwn(ERROR_TRAITS, code) && !ERROR_TRAITS[code as ErrorCode].fatal)
      found.set(key, new CryptodlError(code as ErrorCode, message.slice(0, MOST_CHARACTERS)));
  }
  return found;
}
