/** The memory of `enqueue`: what it keeps of each job that it adds. Measured with a million jobs by bench/million-jobs.js. */
import { Writable } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, describe, expect, it } from 'vitest';
import { parseDay } from '../../src/model/calendar.js';
import { systemClock } from '../../src/model/clock.js';
import type { SelectedSeries } from '../../src/plan/series-request.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { addJobs } from '../../src/verbs/queue/add-jobs.js';
import type { JobData } from '../../src/verbs/queue/job-data.js';
import { openQueue } from '../../src/verbs/queue/open-queue.js';
import { splitSeries } from '../../src/verbs/queue/enqueue.js';
import { PendingJobs } from '../../src/verbs/queue/wait-for-jobs.js';
import { SETTINGS } from '../helpers/conversion.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis, type RedisProcess } from '../helpers/redis-server.js';

const SYMBOLS = 400;
const MONTHS = 60;
const [FIRST, LAST] = [4000, 20_000];
/** The smallest leak is a reference per job: 8 bytes and the growth of its list. The name of a job has about 80. */
const MOST_BYTES_PER_JOB = 40;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const dayOf = (text: string): number => {
  const day = parseDay(text);
  if (day === undefined) throw new Error(text);
  return day;
};

describe.skipIf(!HAS_REDIS)(`the memory of enqueue${NEEDS_REDIS}`, { timeout: 120_000 }, () => {
  const servers: RedisProcess[] = [];
  afterAll(() => Promise.all(servers.map((server) => server.close())));

  it.each([true, false])(
    'keeps nothing of a job that is in the queue, waited for: %s',
    async (isWaitedFor) => {
      const server = await startRedis();
      servers.push(server);
      const requests = Array.from({ length: SYMBOLS }, (_, index): SelectedSeries => {
        const series = { market: 'um', dataset: 'trades', symbol: `S${index}USDT` };
        const ranges = [{ from: dayOf('2020-01-01'), to: dayOf('2025-01-01') }];
        return { series, settings: SETTINGS, cadences: ['monthly'], ranges };
      });
      const heap: number[] = [];
      function* watched(jobs: Iterable<JobData>): Generator<JobData> {
        let count = 0;
        for (const job of jobs) {
          count += 1;
          if (count === FIRST || count === LAST) {
            collect();
            heap.push(process.memoryUsage().heapUsed);
          }
          yield job;
        }
      }
      const split = { verb: 'vision', exchange: loadBinance(), today: dayOf('2026-01-01') } as const;
      const jobs = splitSeries(requests, { ...split, shared: { out: ['s3://lake/data'] }, orders: [] });
      const open = await openQueue({ redis: server.address, queue: 'main' }, 'enqueue', () => undefined);
      const pendingJobs = isWaitedFor ? new PendingJobs(open) : undefined;
      await pendingJobs?.begin();
      const { jobs: added } = await addJobs(watched(jobs), {
        open,
        pendingJobs,
        options: { priority: 'normal', maxWaiting: SYMBOLS * MONTHS, quiet: false },
        // The queue is never full, so nothing is printed.
        io: { clock: systemClock, stderr: new Writable() },
        signals: new AbortController(),
      });
      await pendingJobs?.close();
      expect([added, (await open.queue.getJobCounts('prioritized'))['prioritized']]).toEqual([
        SYMBOLS * MONTHS,
        SYMBOLS * MONTHS,
      ]);
      await open.close();
      const [before = 0, after = 0] = heap;
      expect(Math.round((after - before) / (LAST - FIRST))).toBeLessThan(MOST_BYTES_PER_JOB);
    },
  );
});
