/** Workers of a queue while redis-server is restarted without its data, is away, or has no free memory. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { contentOf, QueueRuns } from '../helpers/queue-runs.js';
import type { StartedWorker } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const SYMBOLS = Array.from({ length: 6 }, (_, index) => `S${index}USDT`);
const scene = useScene({
  archive: [{ symbols: SYMBOLS, from: '2024-05-01', to: '2026-10-31', cadence: 'monthly', interval: '1h' }],
});
const WHAT = ['--interval', '1h', '--symbols', 'all', '--months', '30'];
const WORKERS = [1, 2, 3];
/** A worker that loses the leases of its jobs ends them: it loses at most its objects in flight (--concurrency 4). */
const MOST_LOST = WORKERS.length * 4;

describe.skipIf(!HAS_REDIS)(`a queue on a server with faults${NEEDS_REDIS}`, { timeout: 300_000 }, () => {
  let local: string;
  let localZips: number;
  let runs: QueueRuns;
  const zips = (): number => scene.archive.requests.filter((path) => isZip(path)).length;
  /** Calls `act` when so many zips are requested. */
  const atZip = (count: number, act: () => Promise<void>): Promise<void> =>
    new Promise((resolve, reject) => {
      scene.archive.fault = () => {
        if (zips() < count) return false;
        scene.archive.fault = undefined;
        act().then(resolve, reject);
        return false;
      };
    });
  const open = async (redis: readonly string[] = []): Promise<void> => {
    runs = await QueueRuns.open(scene, { redis });
  };
  const durable = (): string[] => [
    ...'--appendonly yes --appendfsync always --dir'.split(' '),
    scene.newFolder(),
  ];
  const begin = (...words: string[]): StartedWorker[] => WORKERS.map(() => runs.work(words));
  const expectWhole = (): void => {
    expect(contentOf(runs.lake.content())).toEqual(contentOf(local));
    expect(zips()).toBeLessThanOrEqual(localZips + MOST_LOST);
  };

  beforeAll(async () => {
    local = await scene.lakeOf([WHAT]);
    localZips = zips();
  });
  beforeEach(() => {
    scene.reset();
  });
  afterEach(() => runs.close());

  it('goes on after a restart without data when the same command has filled it again', async () => {
    await open();
    expect((await runs.enqueue(WHAT)).code).toBe(0);
    const lost = atZip(60, async () => {
      await runs.redis.kill();
      await runs.redis.start();
    });
    const workers = begin('--lease', '2s');
    await lost;
    expect((await runs.enqueue(WHAT)).code).toBe(0);
    expect((await runs.work(['--drain', '--lease', '2s']).ended).code).toBe(0);
    for (const { process } of workers) process.kill('SIGTERM');
    expect((await Promise.all(workers.map(({ ended }) => ended))).map(({ code }) => code)).toEqual(
      WORKERS.map(() => 143),
    );
    expect(await runs.status()).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    expectWhole();
  });

  it('waits for a server that is away for longer than the leases', async () => {
    await open(durable());
    expect((await runs.enqueue(WHAT)).code).toBe(0);
    const away = atZip(60, async () => {
      await runs.redis.kill();
      await sleep(10_000);
      await runs.redis.start();
    });
    const workers = begin('--drain', '--lease', '2s');
    await away;
    const ends = await Promise.all(workers.map(({ ended }) => ended));
    expect(ends.map(({ code }) => code)).toEqual(WORKERS.map(() => 0));
    expect(await runs.status()).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    expectWhole();
  });

  it('waits for memory of the server', async () => {
    await open(durable());
    expect((await runs.enqueue(WHAT)).code).toBe(0);
    const full = atZip(60, async () => {
      await runs.redis.client.config('SET', 'maxmemory', '1mb');
      await sleep(10_000);
      await runs.redis.client.config('SET', 'maxmemory', '0');
    });
    const workers = begin('--drain', '--lease', '2s');
    await full;
    const ends = await Promise.all(workers.map(({ ended }) => ended));
    expect(ends.map(({ code, stderr }) => [code, stderr])).toEqual(
      WORKERS.map(() => [0, expect.stringContaining('OOM command not allowed')]),
    );
    expect(await runs.status()).toMatchObject({ waiting: 0, active: 0, delayed: 0, failed: 0 });
    expectWhole();
  });
});
