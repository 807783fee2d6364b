/** Three workers of a queue, one of them killed, with the lake in a bucket of a server that does not come from this repository. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cryptodlProcess } from '../helpers/cli.js';
import { QueueCommands } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import type { RedisProcess } from '../helpers/redis-server.js';
import { s3rver } from '../helpers/s3rver.js';
import type { ForeignServer } from '../helpers/s3rver.js';
import { isZip, useScene } from '../helpers/scene.js';

const SYMBOLS = Array.from({ length: 100 }, (_, index) => `S${index}USDT`);
const scene = useScene({
  archive: [{ symbols: SYMBOLS, from: '2026-10-21', to: '2026-11-20', interval: '1h' }],
});
const WHAT = ['--interval', '1h', '--symbols', 'all', '--days', '31'];
const SQL = 'SELECT symbol, open_time, open, high, low, close, volume FROM um_klines ORDER BY 1, 2';

describe.skipIf(!HAS_REDIS)(`three workers and a foreign bucket${NEEDS_REDIS}`, { timeout: 600_000 }, () => {
  let server: ForeignServer;
  let redis: RedisProcess;
  beforeAll(async () => {
    server = await s3rver(join(scene.newFolder(), 's3rver'), { hasConditions: true });
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis.close();
    await server.close();
  });

  it('make the rows of a local run, and check calls the lake complete', async () => {
    const { lake } = await scene.vision(WHAT);
    const zips = scene.archive.requests.filter((path) => isZip(path)).length;
    expect(zips).toBe(100 * 31);
    scene.reset();
    const { environment: env } = server;
    const runs = new QueueCommands(scene, redis, { out: 's3://lake/data', environment: env });
    const ask = (...words: string[]) => cryptodlProcess([...words, '--out', runs.lake.out], { env });
    expect((await runs.enqueue(WHAT)).code).toBe(0);
    const workers = [1, 2, 3].map(() => runs.work(['--drain', '--lease', '5s']));
    scene.archive.fault = () => {
      if (scene.archive.requests.filter((path) => isZip(path)).length === 900)
        workers[0]?.process.kill('SIGKILL');
      return false;
    };
    const ends = await Promise.all(workers.map(({ ended }) => ended));
    expect(ends.map(({ code, signal }) => code ?? signal)).toEqual(['SIGKILL', 0, 0]);
    expect(await runs.status()).toMatchObject({ waiting: 0, active: 0, failed: 0 });
    expect(scene.archive.requests.filter((path) => isZip(path)).length).toBeLessThanOrEqual(1.03 * zips);
    const local = await cryptodlProcess(['sql', SQL, '--csv', '--out', lake]);
    const remote = await ask('sql', SQL, '--csv');
    expect(remote.stdout.split('\n').length).toBe(100 * 31 * 24 + 2);
    expect(remote.stdout === local.stdout).toBe(true);
    expect(await ask('check', '--now', scene.now)).toMatchObject({ code: 0 });
    expect(await ask('verify')).toMatchObject({ code: 0 });
  });
});
