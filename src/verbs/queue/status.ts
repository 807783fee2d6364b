/** `cryptodl status`: the state of a queue. */
import { writeData } from '../../terminal/write-data.js';
import type { ExitCode } from '../../model/exit-code.js';
import { MINUTE_MS, countText, durationText, listText, numberText } from '../../model/units.js';
import type { OfflineCommand } from '../../run/verb/verb.js';
import { shownRedis } from '../../http/redis/redis-errors.js';
import type { JobQueue } from './bullmq.js';
import { jobErrorOf } from './end-attempt.js';
import { JOBS_PAGE, queueWords, withQueue, type OpenQueue } from './open-queue.js';

/** Failed jobs that are read for the counts by code, the newest first. */
const MOST_FAILED = 10_000;
/** Whole minutes of the shown rate. */
const RATE_MINUTES = 10;

/** Resolves with 0. */
export const status = async ({
  resolved,
  io,
}: OfflineCommand<'json' | 'queue' | 'redis'>): Promise<ExitCode> =>
  withQueue(resolved.options, 'status', io, async ({ open }) => {
    const state = await queueState(open, io.clock.now());
    await writeData(
      io,
      resolved.options.json ? [{ event: 'status', queue: open.name, ...state }] : stateLines(open, state),
    );
    return 0;
  });

export async function queueState(open: OpenQueue, nowMs: number) {
  const [whole, converting] = await Promise.all([
    backlogOf(open.queue, nowMs),
    backlogOf(open.converting, nowMs),
  ]);
  return {
    ...whole,
    // In both queues: a user does not ask in which part a job failed.
    failed: whole.failed + converting.failed,
    // A job that waits for its conversion is not among the jobs that wait for a worker.
    converting,
    ...(await failures([open.queue, open.converting])),
  };
}

async function backlogOf(queue: JobQueue, nowMs: number) {
  const [counts, workers, metrics, [next], running] = await Promise.all([
    queue.getJobCounts('waiting', 'prioritized', 'delayed', 'active', 'failed'),
    queue.getWorkers().catch(() => []),
    queue.getMetrics('completed', 0, RATE_MINUTES - 1),
    queue.getJobs(['prioritized', 'waiting'], 0, 0, true),
    queue.getActive(0, JOBS_PAGE - 1),
  ]);
  const { waiting = 0, prioritized = 0, delayed = 0, active = 0, failed = 0 } = counts;
  const minutes = donePerMinute(metrics, nowMs, RATE_MINUTES);
  const sum = minutes.reduce((total, count) => total + count, 0);
  return {
    waiting: waiting + prioritized,
    delayed,
    active,
    failed,
    workers: workers.length,
    // The name of the connection has those of the queue and of the worker.
    workerNames: workers.map(({ rawname = '' }) => /:w:([^:]+:\d+)/.exec(rawname)?.[1] ?? 'unknown'),
    // The time since the next job was added, and since the longest attempt began.
    waitingMs: next === undefined ? null : Math.max(0, nowMs - next.timestamp),
    activeMs:
      running.length === 0
        ? null
        : Math.max(0, ...running.map(({ processedOn = nowMs }) => nowMs - processedOn)),
    lastMinute: minutes[0] ?? 0,
    perMinute: minutes.length === 0 ? 0 : Math.round((sum / minutes.length) * 10) / 10,
  };
}

/** Failed jobs by error code. `counted`: how many of them were read. */
async function failures(queues: readonly JobQueue[]) {
  const failedBy: Record<string, number> = {};
  let counted = 0;
  for (const queue of queues)
    for (let at = 0; at < MOST_FAILED; at += JOBS_PAGE) {
      const jobs = await queue.getFailed(at, at + JOBS_PAGE - 1);
      for (const job of jobs) {
        const code = jobErrorOf(job)?.code ?? 'unknown';
        failedBy[code] = (failedBy[code] ?? 0) + 1;
        counted += 1;
      }
      if (jobs.length < JOBS_PAGE) break;
    }
  return { failedBy, counted };
}

/** Some names of workers, and how long a job has waited or run. */
const SHOWN = 5;
const ageText = (what: string, ageMs: number | null): string =>
  ageMs === null ? '' : `, ${what} for ${durationText(ageMs)}`;

function stateLines(open: OpenQueue, state: Awaited<ReturnType<typeof queueState>>): string[] {
  const { waiting, delayed, active, failed, workers, perMinute, lastMinute, failedBy, counted, converting } =
    state;
  const { name, address } = open;
  const names = workers === 0 ? '' : ` (${listText(state.workerNames, SHOWN)})`;
  const staged = converting.waiting + converting.delayed + converting.active;
  const isSplit = staged > 0 || converting.perMinute > 0;
  const left = waiting + delayed + active;
  const time =
    left > 0 && perMinute > 0 ? `, about ${durationText((left / perMinute) * MINUTE_MS)} at this rate` : '';
  const codes = Object.entries(failedBy).sort(([, a], [, b]) => b - a);
  return [
    `queue ${name} at ${shownRedis(address)}`,
    `  waiting    ${numberText(waiting)}${ageText('the next one', state.waitingMs)}${delayed > 0 ? `, ${numberText(delayed)} for their next attempt` : ''}`,
    `  active     ${numberText(active)} in ${countText(workers, 'worker')}${names}${ageText('the longest', state.activeMs)}`,
    `  done       ${numberText(lastMinute)} jobs in the last full minute, ${perMinute} per minute before${time}`,
    ...(isSplit
      ? [
          `  to convert ${numberText(converting.waiting + converting.delayed)}, and ${numberText(converting.active)} active in ${countText(converting.workers, 'worker')}, ${converting.perMinute} per minute`,
        ]
      : []),
    `  failed     ${numberText(failed)}${failed > counted ? `, codes of the newest ${numberText(counted)}` : ''}`,
    ...codes.map(([code, count]) => `    ${numberText(count)} ${code}`),
    ...(failed > 0 ? [`  next       cryptodl retry ${queueWords(open)} puts failed jobs back`] : []),
  ];
}

/**
 * `count`, `prevCount`: jobs that were done until now, and before the minute of `prevTS`, a time in the last minute in which a job was done; 0 if none
 * was. `data`: jobs in each minute before it, the latest first.
 */
type JobMetrics = Pick<Awaited<ReturnType<JobQueue['getMetrics']>>, 'meta' | 'data'>;

/** The jobs in each of the last full minutes, the latest first. Minutes before the first job are left out. */
export function donePerMinute({ meta, data }: JobMetrics, nowMs: number, most: number): number[] {
  if (meta.prevTS === 0) return [];
  const since = Math.floor(nowMs / MINUTE_MS) - Math.floor(meta.prevTS / MINUTE_MS);
  if (since <= 0) return data.slice(0, most);
  const idle = Array.from({ length: Math.min(since - 1, most) }, () => 0);
  return [...idle, meta.count - meta.prevCount, ...data].slice(0, most);
}
