/**
 * Hands a job from the workers that fetch to those that convert, and back. Its name stays the same, so a job that is handed over twice is
 * there once. A job is added to the next queue before it leaves its own: it may be in both, and is never in none.
 */
import type { Clock } from '../../model/clock.js';
import { CryptodlError, type ErrorCode } from '../../model/errors.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import { newJob } from './add-jobs.js';
import type { JobQueue, QueuedJob } from './bullmq.js';
import { jobData, MOST_CHARACTERS, type JobData } from './job-data.js';
import { isRecord } from '../../text/json.js';

export interface FailedObject {
  readonly key: string;
  readonly error: CryptodlError;
}

/** Adds a job whose zips are staged. `failed`: the objects that could not be fetched. */
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

/** Puts a job back whose zips must be fetched again. */
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
  const failures = isRecord(data) && Array.isArray(data['failures']) ? data['failures'] : [];
  const found = new Map<string, CryptodlError>();
  for (const failure of failures as readonly unknown[]) {
    if (!isRecord(failure)) continue;
    const { key, code, message } = failure;
    if (typeof key !== 'string' || typeof code !== 'string' || typeof message !== 'string') continue;
    if (Object.hasOwn(ERROR_TRAITS, code) && !ERROR_TRAITS[code as ErrorCode].fatal)
      found.set(key, new CryptodlError(code as ErrorCode, message.slice(0, MOST_CHARACTERS)));
  }
  return found;
}

export const idOf = ({ id = '' }: QueuedJob): string => id;
