/** The pause before a further attempt of a job. */
import { expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { QueuedJob } from '../../../src/verbs/queue/bullmq.js';
import { fail } from '../../../src/verbs/queue/end-attempt.js';
import type { ProcessContext } from '../../../src/verbs/queue/end-attempt.js';
import { readyWorker } from '../../../src/verbs/queue/open-worker.js';
import { systemClock } from '../../../src/model/clock.js';

type Backoff = (attempts: number, type: string, error: Error) => number;

const RATE_LIMITED = new CryptodlError('rate-limited', 'wait', { retryAfterMs: 60_000 });

/** What BullMQ gets for a worker. */
async function backoffOf(retryDelayMs: number): Promise<Backoff> {
  let found: Backoff | undefined;
  const openWorker = (...of: readonly unknown[]): object => {
    found = (of[3] as { settings: { backoffStrategy: Backoff } }).settings.backoffStrategy;
    return { on: () => undefined, waitUntilReady: () => Promise.resolve() };
  };
  const context = {
    open: { bullmq: { openWorker }, connection: {} },
    lake: '',
    isLakeGiven: false,
    clock: systemClock,
    signal: new AbortController().signal,
  };
  const options = { jobs: 1, leaseMs: 30_000, retryDelayMs };
  await readyWorker('main', 'whole', options, context as unknown as ProcessContext);
  if (found === undefined) throw new Error('no worker');
  return found;
}

it('the pause before a further attempt is that of the host, or a longer one of its own', async () => {
  const backoff = await backoffOf(1000);
  const plain = new Error('lost');
  expect([1, 2, 3].map((attempts) => backoff(attempts, 'cryptodl', plain))).toEqual([
    10_000, 40_000, 160_000,
  ]);
  expect([1, 2, 3].map((attempts) => backoff(attempts, 'cryptodl', RATE_LIMITED))).toEqual([
    60_000, 60_000, 160_000,
  ]);
});

it('an attempt that fails hands the wait of the host to the queue', async () => {
  const job = { id: 'job', attemptsMade: 0, opts: { attempts: 3 }, updateProgress: () => Promise.resolve() };
  const context = { open: { bullmq: {} }, newRequests: () => ({}), onEnd: () => undefined };
  const end = { failed: [{ key: 'a.zip', error: RATE_LIMITED }], counts: {}, written: 0 };
  const failing = fail(context as unknown as ProcessContext, job as unknown as QueuedJob, end);
  await expect(failing).rejects.toMatchObject({ code: 'rate-limited', retryAfterMs: 60_000 });
});
