/** The end of a worker: after a stop, or when its queues are empty. */
import type { Clock } from '../model/clock.js';
import type { JobQueue } from './bullmq.js';

const DRAIN_POLL_MS = 500;

interface Ending {
  readonly isDrain: boolean;
  /** Jobs that this worker leaves to others. */
  readonly left: ReadonlySet<string>;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Resolves after a stop; with `isDrain`, also when the queues have no job that this worker may still do. */
export async function untilEnd(queues: readonly JobQueue[], ending: Ending): Promise<void> {
  const { isDrain, left, signal, clock } = ending;
  const stopped = new Promise<'stopped'>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve('stopped');
    });
  });
  while (!signal.aborted) {
    await clock.sleep(DRAIN_POLL_MS, signal).catch(() => undefined);
    // Without a connection, the counts come with the next one.
    if (isDrain && (await Promise.race([stopped, openJobs(queues, left)])) === 0) return;
  }
}

/** The number of jobs that this worker may still do. A job that goes from one queue to the next is in both for a moment. */
async function openJobs(queues: readonly JobQueue[], left: ReadonlySet<string>): Promise<number> {
  try {
    let open = 0;
    for (const queue of queues) {
      const counts = await queue.getJobCounts('waiting', 'prioritized', 'delayed', 'active');
      open += Object.values(counts).reduce((sum, count) => sum + count, 0);
      if (left.size === 0) continue;
      const delayed = await queue.getDelayed(0, left.size - 1);
      open -= delayed.filter(({ id = '' }) => left.has(id)).length;
    }
    return open;
  } catch {
    return Number.NaN;
  }
}
