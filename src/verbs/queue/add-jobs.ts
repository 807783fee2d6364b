/** Adds jobs to a queue in batches, and waits while the queue is full. */
import type { Io } from '../../model/io.js';
import { numberText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import { redisProblem } from '../../http/redis/redis-errors.js';
import { printLines } from '../../text/printable.js';
import type { NewJob } from './bullmq.js';
import { jobId, type JobData } from './job-data.js';
import type { CommandQueue } from './open-queue.js';
import type { Wait } from './wait.js';

export interface Adding extends Pick<CommandQueue, 'open'> {
  readonly signals: Pick<CommandQueue['signals'], 'signal'>;
  readonly wait: Wait | undefined;
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
async function addBatch({ open, wait }: Adding, batch: NewJob[]): Promise<number> {
  const { address, connection, queue } = open;
  const ids = batch.map(({ opts }) => opts?.jobId ?? '');
  try {
    await wait?.add(ids);
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

export function newJob(data: JobData, priority: number): NewJob {
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
    const counts = await open.queue.getJobCounts('waiting', 'prioritized');
    const waiting = Object.values(counts).reduce((sum, count) => sum + count, 0);
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
