/** What a worker does with a job of a schedule: it adds the jobs of a download, as `enqueue` does, for the days of this moment. */
import { resolveOptions } from '../options/resolve.js';
import { usage } from '../model/errors.js';
import { addJobs } from './add-jobs.js';
import type { RedisClient } from '../redis/connection.js';
import type { JobQueue, QueuedJob, QueuePackage } from './bullmq.js';
import { isRecord, jobId } from './job-data.js';
import type { JobData } from './job-data.js';
import { resolvePlan } from './plan-data.js';
import type { PlanData } from './plan-data.js';
import type { JobContext, JobEnd } from './run-job.js';
import { selectRequests } from './select-requests.js';

/** While the queue is full, the job leaves its worker, which may be the only one, for so long. */
const FULL_MS = 30_000;

interface PlanContext extends JobContext {
  readonly bullmq: QueuePackage;
  readonly queue: JobQueue;
  readonly client: RedisClient;
}

/** Rejects with a DelayedError while the queue is full; the job then goes on after the last job that it has added. */
export async function addPlanned(
  plan: PlanData,
  context: PlanContext,
  job: QueuedJob,
  token: string,
): Promise<JobEnd> {
  const { source, surroundings, clock, signal, pipeline, layers, bullmq, queue, client, warn } = context;
  const begun = begunOf(job.progress);
  const nowMs = begun?.nowMs ?? resolveOptions('worker', layers, source).options.nowMs ?? clock.now();
  const { ofVerb, adding } = resolvePlan(plan, nowMs, layers, source);
  const { jobs } = await selectRequests(plan.plan, ofVerb, {
    source,
    surroundings,
    clock,
    signal,
    pipeline,
    warn,
    read: () => Promise.reject(usage('a job reads no list of symbols')),
    note: () => undefined,
  });
  const [out = ''] = plan.options.out ?? [];
  await addJobs(
    jobsAfter(() => jobs(out), begun?.last),
    {
      queue,
      client,
      clock,
      signal,
      wait: undefined,
      priority: adding.priority,
      mostWaiting: adding.maxWaiting,
      whenFull: async (_, last = begun?.last) => {
        await job.updateProgress({ nowMs, last });
        await job.moveToDelayed(clock.now() + FULL_MS, token);
        throw new bullmq.DelayedError();
      },
      problem: (error) => error,
    },
  );
  return { counts: {}, failed: [], written: 0 };
}

interface Begun {
  readonly nowMs: number;
  readonly last: string | undefined;
}

function begunOf(progress: unknown): Begun | undefined {
  if (!isRecord(progress)) return undefined;
  const { nowMs, last } = progress;
  if (typeof nowMs !== 'number' || Number.isNaN(new Date(nowMs).getTime())) return undefined;
  return { nowMs, last: typeof last === 'string' ? last : undefined };
}

/** All jobs if there is no job of this name: those that have been done before find nothing to do. */
function* jobsAfter(jobs: () => Iterable<JobData>, last: string | undefined): Generator<JobData> {
  let isAfter = last === undefined || !hasJob(jobs(), last);
  for (const data of jobs()) {
    if (isAfter) yield data;
    isAfter ||= jobId(data) === last;
  }
}

function hasJob(jobs: Iterable<JobData>, id: string): boolean {
  for (const data of jobs) if (jobId(data) === id) return true;
  return false;
}
