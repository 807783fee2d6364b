/** The schedules of a queue (job schedulers of BullMQ): at each time of a pattern, a job that adds the jobs of a download. */
import { CryptodlError } from '../model/errors.js';
import type { RedisClient } from '../redis/connection.js';
import { KEPT_UNTIL_DONE } from './add-jobs.js';
import type { JobQueue } from './bullmq.js';
import { parsePlan, planCommand, planId } from './plan-data.js';
import type { PlanData } from './plan-data.js';

export interface Schedule {
  readonly id: string;
  /** A cron pattern, UTC. */
  readonly every: string;
  /** ISO 8601; null if the queue has lost it. */
  readonly next: string | null;
  /** The download as the words after `cryptodl enqueue`; null if this version of cryptodl has not made the schedule. */
  readonly command: string | null;
}

/** Resolves with the schedule, and whether it is new or changed. A schedule that stays keeps a job whose time has come. */
export async function putSchedule(
  queue: JobQueue,
  pattern: string,
  data: PlanData,
): Promise<{ readonly nextMs: number; readonly isChanged: boolean }> {
  const id = planId(data);
  const known = await queue.getJobScheduler(id);
  if (
    known?.next !== undefined &&
    known.pattern === pattern &&
    JSON.stringify(known.template?.data) === JSON.stringify(data) &&
    (await queue.getJobState(nextJob(id, known.next))) !== 'unknown'
  )
    return { nextMs: known.next, isChanged: false };
  await queue.upsertJobScheduler(
    id,
    { pattern, tz: 'UTC' },
    { name: data.plan, data, opts: KEPT_UNTIL_DONE },
  );
  const { next = 0 } = (await queue.getJobScheduler(id)) ?? {};
  return { nextMs: next, isChanged: true };
}

/** Resolves with false if there is no such schedule. A job that a worker has begun goes on. */
export async function removeSchedule(queue: JobQueue, data: PlanData): Promise<boolean> {
  const id = planId(data);
  const known = await queue.getJobScheduler(id);
  const isRemoved = await queue.removeJobScheduler(id);
  // BullMQ leaves a job whose time has come.
  if (known?.next !== undefined) await queue.remove(nextJob(id, known.next)).catch(() => undefined);
  return isRemoved;
}

/** Rejects with `redis-refused` for schedules that BullMQ cannot read. */
export async function readSchedules(queue: JobQueue): Promise<Schedule[]> {
  const schedulers = await queue.getJobSchedulers(0, -1, true).catch((error: unknown) => {
    // Data that is not JSON, or a repeated job of BullMQ before its version 6.
    if (!(error instanceof SyntaxError) && !/legacy repeatable/i.test(String(error))) throw error;
    throw new CryptodlError('redis-refused', `the queue ${queue.name} has a schedule of another program`, {
      hint: 'choose a queue of its own for cryptodl: --queue NAME',
    });
  });
  return schedulers.map(({ key, pattern = '', next, template }) => ({
    id: key,
    every: pattern,
    next: next === undefined ? null : isoOf(next),
    command: commandOf(template?.data),
  }));
}

function isoOf(ms: number): string | null {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

function commandOf(data: unknown): string | null {
  try {
    return planCommand(parsePlan(data));
  } catch {
    return null;
  }
}

/** The number of jobs that wait for a time of their schedule after `nowMs`. It reads no data that others may have written. */
export async function countUntilTime(client: RedisClient, queue: JobQueue, nowMs: number): Promise<number> {
  const found = await client.zrangebyscore(queue.toKey('repeat'), `(${nowMs}`, '+inf', 'WITHSCORES');
  const ids: string[] = [];
  for (let at = 0; at + 1 < found.length; at += 2) ids.push(nextJob(found[at] ?? '', Number(found[at + 1])));
  if (ids.length === 0) return 0;
  const delayed = await client.zmscore(queue.toKey('delayed'), ...ids);
  return delayed.filter((score) => score !== null).length;
}

/** The name that BullMQ gives to the next job of a scheduler. */
function nextJob(id: string, nextMs: number): string {
  return `repeat:${id}:${nextMs}`;
}
