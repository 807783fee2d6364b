/** Workers, redis-server and the server of the bucket are killed at random moments of one queue: the lake is that of a local run. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { filesBelow } from '../helpers/lake.js';
import { dataOf, QueueRuns } from '../helpers/queue-runs.js';
import type { StartedWorker } from '../helpers/queue-runs.js';
import { randoms } from '../helpers/randoms.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';
import { SIZE } from './size.js';

/** Kills of each kind. A killed worker loses at most four objects (--concurrency 4) of 1d, each of a month. */
const KILLS = SIZE.queueKills;
const MONTHS = 70;
const SYMBOLS = Array.from({ length: KILLS * 2 }, (_, index) => `S${index}USDT`);
const random = randoms(KILLS);

const scene = useScene({
  archive: [{ symbols: SYMBOLS, from: '2021-01-01', to: '2026-10-31', cadence: 'monthly', interval: '1d' }],
});
const WHAT = ['--interval', '1d', '--symbols', 'all', '--months', String(MONTHS)];

it.skipIf(!HAS_REDIS)(`${KILLS} kills of each kind lose nothing${NEEDS_REDIS}`, async () => {
  const { lake: local } = await scene.vision(WHAT);
  const zips = (): number => scene.archive.requests.filter(isZip).length;
  const objects = zips();
  scene.reset();
  const appended = ['--appendonly', 'yes', '--appendfsync', 'always', '--dir', scene.newFolder()];
  const runs = await QueueRuns.open(scene, { redis: appended, s3: { pageSize: 1000 } });
  const { redis, bucket } = runs;
  const port = Number(new URL(bucket.url).port);
  expect((await runs.enqueue(WHAT)).code).toBe(0);
  const workers: StartedWorker[] = [];
  /** As a service does, starts a killed worker again, and one that began while a server was away. */
  const start = (at: number): void => {
    const started = runs.work(['--lease', '5s']);
    workers[at] = started;
    void started.ended.then(({ code, signal }) => {
      if (code === 3 || signal === 'SIGKILL') start(at);
    });
  };
  for (const at of [0, 1, 2]) start(at);
  const acts = {
    worker: async () => {
      const started = workers[Math.floor(random() * workers.length)];
      started?.process.kill('SIGKILL');
      await started?.ended;
    },
    redis: async () => {
      await redis.kill();
      await sleep(random() * 500);
      await redis.start();
    },
    bucket: async () => {
      await bucket.close();
      await sleep(random() * 500);
      await bucket.listen(port);
    },
  };
  const kills = (['worker', 'redis', 'bucket'] as const).flatMap((kind) =>
    Array.from({ length: KILLS }, () => ({ kind, at: (0.05 + random() * 0.9) * objects })),
  );
  for (const { kind, at } of kills.toSorted((one, other) => one.at - other.at)) {
    while (zips() < at) await sleep(5);
    await sleep(random() * 50);
    await acts[kind]();
  }
  await runs.emptied();
  const ends = workers.map(({ process, ended }) => {
    process.kill('SIGTERM');
    return ended;
  });
  expect((await Promise.all(ends)).map(({ code }) => code)).toEqual([143, 143, 143]);
  expect(await runs.status()).toMatchObject({ failed: 0 });
  const content = runs.lake.content();
  expect(dataOf(content)).toEqual(dataOf(local));
  expect(filesBelow(content).filter((path) => path.startsWith('_quarantine'))).toEqual([]);
  expect(zips()).toBeLessThanOrEqual(objects * 1.03);
  await runs.close();
});
