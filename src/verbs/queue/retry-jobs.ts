/** `cryptodl retry --redis URL`: puts failed jobs of a queue back, all or those with given error codes. */
import { writeData } from '../../terminal/write-data.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import { countText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import { shownRedis } from '../../http/redis/redis-errors.js';
import { printLines } from '../../text/printable.js';
import type { JobQueue, QueuedJob } from './bullmq.js';
import { addFetch } from './add-jobs.js';
import { parseJob } from './job-data.js';
import { jobErrorOf } from './end-attempt.js';
import { JOBS_PAGE, withQueue, type OpenQueue } from './open-queue.js';

/** Resolves with 0, also if no job has failed. With --dry-run, the jobs are counted only. */
export async function retryJobs(
  options: Options<'codes' | 'dry-run' | 'json' | 'queue' | 'redis'>,
  io: Io,
): Promise<ExitCode> {
  const { codes, json, dryRun } = options;
  return withQueue(options, 'retry', io, async ({ open }) => {
    let putBack = 0;
    for (const queue of [open.queue, open.converting])
      putBack += await putBackOf(queue, codes, dryRun ? undefined : (job) => retryOne(open, queue, job));
    const jobs = countText(putBack, 'failed job');
    const where = `the queue ${open.name} at ${shownRedis(open.address)}`;
    if (json)
      printLines(io.stdout, [{ event: dryRun ? 'planned' : 'retried', queue: open.name, jobs: putBack }]);
    else if (dryRun) await writeData(io, [`${jobs} would go back into ${where}`]);
    else printLines(io.stderr, [`put ${jobs} back into ${where}`]);
    return 0;
  });
}

/** Resolves with the number of jobs that were put back; without `act`, of those that would be. */
async function putBackOf(
  queue: JobQueue,
  codes: Options<'codes'>['codes'],
  act: ((job: QueuedJob) => Promise<void>) | undefined,
): Promise<number> {
  let putBack = 0;
  // Jobs that are put back leave the list, so the next page begins after those that stay.
  for (let kept = 0; ;) {
    const jobs = await queue.getFailed(kept, kept + JOBS_PAGE - 1);
    if (jobs.length === 0) return putBack;
    for (const job of jobs) {
      const { code } = jobErrorOf(job) ?? { code: 'unknown' };
      const isChosen = codes === undefined || codes.includes(code);
      try {
        if (isChosen) await act?.(job);
        if (isChosen) putBack += 1;
        if (!isChosen || act === undefined) kept += 1;
      } catch {
        // Another command has put the job back or removed it in the meantime.
        kept += 1;
      }
    }
  }
}

/** The zips of a job that failed in its conversion were removed: the job begins again. */
async function retryOne(open: OpenQueue, queue: JobQueue, job: QueuedJob): Promise<void> {
  if (queue === open.queue) {
    await job.updateProgress(0);
    await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true });
    return;
  }
  await addFetch(open.queue, job, parseJob(job.data));
  await job.remove();
}
