/** Jobs that go from one queue to another and back, over a real redis-server: nothing is lost, whatever the other queue has of the job. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, UnrecoverableError, Worker, type Job } from 'bullmq';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/model/clock.js';
import { CryptodlError } from '../../src/model/errors.js';
import { addConversion, addFetch } from '../../src/verbs/queue/add-jobs.js';
import { jobData } from '../../src/verbs/queue/job-data.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis, type RedisProcess } from '../helpers/redis-server.js';

const DATA = jobData('vision', { symbols: ['BTCUSDT'] });
const FAILED = [{ key: 'a.zip', error: new CryptodlError('http-server-error', 'HTTP 500') }];

describe.skipIf(!HAS_REDIS)(`a job between two queues${NEEDS_REDIS}`, { timeout: 60_000 }, () => {
  let redis: RedisProcess;
  let names = 0;
  let from: Queue;
  let to: Queue;
  let job: Job;
  const open = (name: string): Queue => new Queue(name, { connection: { url: redis.address } });
  const act = async (words: readonly (typeof FAILED)[number][] = []): Promise<void> => {
    const stop = new AbortController();
    await addConversion(to, job, DATA, words, { clock: systemClock, signal: stop.signal });
  };
  /** Takes the next job of a queue, and ends it as `end` says. */
  const worker = (queue: Queue, end: () => Promise<void>): Worker =>
    new Worker(queue.name, end, { connection: { url: redis.address } });
  const failIn = async (queue: Queue): Promise<void> => {
    await queue.add('vision', { ...DATA, failures: ['old'] }, { jobId: 'job' });
    const failing = worker(queue, () => Promise.reject(new UnrecoverableError('failed before')));
    await once(failing, 'failed');
    await failing.close();
  };

  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    names += 1;
    from = open(`from${names}`);
    to = open(`to${names}`);
    job = await from.add('vision', DATA, { jobId: 'job', priority: 7 });
  });
  afterEach(() => Promise.all([from.close(), to.close()]));
  afterAll(() => redis.close());

  it('is added with its name, its priority and the objects that could not be fetched', async () => {
    await act(FAILED);
    const added = await to.getJob('job');
    expect([await added?.getState(), added?.opts.priority, added?.data]).toEqual([
      'prioritized',
      7,
      { ...DATA, failures: [{ key: 'a.zip', code: 'http-server-error', message: 'HTTP 500' }] },
    ]);
  });

  it('follows a conversion that has begun', async () => {
    await to.add('vision', DATA, { jobId: 'job', removeOnComplete: true });
    let end = (): void => undefined;
    const converter = worker(to, () => new Promise<void>((resolve) => (end = resolve)));
    while ((await to.getJobState('job')) !== 'active') await sleep(10);
    const adding = act(FAILED);
    // It has seen the active job, or it sees it later.
    await Promise.race([adding, sleep(200)]);
    // The job that is added next must wait for the test.
    await converter.pause(true);
    end();
    await adding;
    await converter.close();
    const added = await to.getJob('job');
    expect([await added?.getState(), added?.data]).toEqual([
      'prioritized',
      expect.objectContaining({ failures: expect.any(Array) }),
    ]);
  });

  it('takes the place of a failed one, in both directions', async () => {
    await failIn(to);
    await act();
    expect([await to.getJobState('job'), (await to.getJob('job'))?.data]).toEqual(['prioritized', DATA]);
    await job.remove();
    await failIn(from);
    const conversion = await to.getJob('job');
    if (conversion === undefined) throw new Error('no job');
    const old = { ...DATA, failures: ['old'] };
    await addFetch(from, conversion, old);
    expect([await from.getJobState('job'), (await from.getJob('job'))?.data]).toEqual(['prioritized', DATA]);
  });

  it('changes one that waits, and one that waits for its next attempt goes on at once', async () => {
    await to.add('vision', DATA, { jobId: 'job', delay: 3_600_000 });
    await act(FAILED);
    const delayed = await to.getJob('job');
    expect([await delayed?.getState(), delayed?.data]).toEqual([
      'waiting',
      expect.objectContaining({ failures: expect.any(Array) }),
    ]);
    await act();
    expect([await to.getJobState('job'), (await to.getJob('job'))?.data]).toEqual(['waiting', DATA]);
  });
});
