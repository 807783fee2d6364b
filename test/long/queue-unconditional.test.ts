/** Workers of a queue with a lake in a bucket without conditional writes: they cannot join their lines in one manifest. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { contentOf, QueueRuns } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [
    {
      symbols: ['S0USDT', 'S1USDT'],
      from: '2024-05-01',
      to: '2026-10-31',
      cadence: 'monthly',
      interval: '1h',
    },
  ],
});
/** Three jobs for each series. */
const WHAT = ['--interval', '1h', '--symbols', 'all', '--months', '30'];

describe.skipIf(!HAS_REDIS)(`a queue without conditional writes${NEEDS_REDIS}`, { timeout: 300_000 }, () => {
  let local: string;
  let runs: QueueRuns;
  const zips = (part = ''): number =>
    scene.archive.requests.filter((path) => isZip(path) && path.includes(part)).length;

  beforeAll(async () => {
    const { lake, code } = await scene.vision(WHAT);
    if (code !== 0) throw new Error('the local run failed');
    local = lake;
  });
  afterEach(() => runs.close());

  it.each(['refused', 'ignored'] as const)(
    'lets one worker at a time write a series: conditions %s',
    async (conditions) => {
      scene.reset();
      runs = await QueueRuns.open(scene, { s3: { conditions } });
      // Two writers compare the manifest, and then both put it.
      runs.bucket.fault = ({ method, key }) =>
        method === 'PUT' && key.includes('_manifests/') ? { delayMs: 100 } : undefined;
      expect((await runs.enqueue(WHAT)).code).toBe(0);
      const workers = [1, 2, 3].map(() => runs.work(['--drain']));
      const ends = await Promise.all(workers.map(({ ended }) => ended));
      expect(ends.map(({ code, stderr }) => [code, stderr.includes(' 0 failed')])).toEqual(
        workers.map(() => [0, true]),
      );
      expect(contentOf(runs.lake.content())).toEqual(contentOf(local));
      expect(zips()).toBe(60);
    },
  );

  it('takes a series over from a job whose lease has ended', async () => {
    scene.reset();
    runs = await QueueRuns.open(scene, { s3: { conditions: 'refused' } });
    expect((await runs.enqueue(WHAT)).code).toBe(0);
    const { client } = runs.redis;
    const [prefix, lease] = ['cryptodl:queue:main', 'cryptodl:queue:main:gone:lock'];
    const series = `${runs.lake.out}~um~klines~1h~S0USDT`;
    await client.hset(`${prefix}:cryptodl:turn:${series}`, { lease, token: 'of a worker' });
    await client.set(lease, 'of a worker');
    const worker = runs.work(['--drain']);
    while (zips('S1USDT') < 30) await sleep(50);
    expect(zips('S0USDT')).toBe(0);
    await client.del(lease);
    expect((await worker.ended).code).toBe(0);
    expect(contentOf(runs.lake.content())).toEqual(contentOf(local));
    expect(await client.keys('*:turn:*')).toEqual([]);
  });
});
