/** The end of a job, as a worker tells it to the queue. The run of the job is replaced. */
import { DelayedError, UnrecoverableError, WaitingError } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ErrorCode } from '../../src/model/errors.js';
import { createSerializer } from '../../src/queue/in-order.js';
import type { QueuedJob } from '../../src/workers/bullmq.js';
import { jobData } from '../../src/workers/job-data.js';
import type { ProcessContext } from '../../src/workers/process-job.js';

const RUN_JOB = '../../src/workers/run-job.js';
let failure: Error | undefined;
let errors: typeof import('../../src/model/errors.js');
let jobs: typeof import('../../src/workers/process-job.js');

// All files of a worker share their modules, so they are loaded again before and after the replacement.
beforeAll(async () => {
  vi.resetModules();
  vi.doMock(RUN_JOB, () => ({
    runJob: () => Promise.resolve({ counts: {}, failed: [{ key: 'a.zip', error: failure }], written: 0 }),
  }));
  errors = await import('../../src/model/errors.js');
  jobs = await import('../../src/workers/process-job.js');
});
afterAll(() => {
  vi.doUnmock(RUN_JOB);
  vi.resetModules();
});

const OPTIONS = {
  market: ['um'],
  dataset: ['trades'],
  symbols: ['BTCUSDT'],
  from: ['2024-01-01'],
  to: ['2024-01-02'],
  out: ['/lake'],
};

/** Runs a job whose object fails with this code. Its worker is stopped while the queue is told. */
async function stoppedAtEnd(code: ErrorCode): Promise<{ thrown: unknown; moves: number }> {
  failure = new errors.CryptodlError(code, 'failed');
  const stop = new AbortController();
  let moves = 0;
  const job = {
    id: 'job',
    data: jobData('vision', OPTIONS),
    attemptsMade: 0,
    opts: { attempts: 3 },
    updateProgress: () => {
      stop.abort(new errors.CryptodlError('interrupted', 'stopped'));
      return Promise.resolve();
    },
    moveToWait: () => {
      moves += 1;
      return Promise.resolve(1);
    },
  };
  const context = {
    signal: stop.signal,
    open: {
      bullmq: { DelayedError, UnrecoverableError, WaitingError },
      connection: { client: { eval: () => Promise.resolve(0) } },
      queue: { name: 'queue' },
    },
    lake: '/lake',
    isLakeGiven: true,
    absolute: (path: string) => path,
    serialize: createSerializer(),
    newRequests: () => ({}),
    onEnd: () => undefined,
  };
  const end = jobs.processJob(
    context as unknown as ProcessContext,
    job as unknown as QueuedJob,
    'token',
    'whole',
  );
  const thrown: unknown = await end.then(
    () => undefined,
    (error: unknown) => error,
  );
  return { thrown, moves };
}

describe('a job that fails while its worker is stopped', () => {
  it('ends as failed, or waits for its next attempt, and does not begin again at once', async () => {
    const [lost, later] = [await stoppedAtEnd('row-malformed'), await stoppedAtEnd('http-server-error')];
    expect([lost.thrown, later.thrown]).toEqual([
      expect.any(UnrecoverableError),
      expect.any(jobs.RetryLater),
    ]);
    expect([lost.moves, later.moves]).toEqual([0, 0]);
  });
});
