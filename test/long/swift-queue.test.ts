/** Workers of a queue with a lake in a bucket of OpenStack Swift, a real S3 server: two of them are killed, and redis-server is restarted. */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bucketOf } from '../helpers/bucket.js';
import { contentOf, QueueCommands } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import type { RedisProcess } from '../helpers/redis-server.js';
import { makeBucket } from '../helpers/s3-make-bucket.js';
import { isZip, useScene } from '../helpers/scene.js';
import { HAS_SWIFT, NEEDS_SWIFT, START_MS, startSwift } from '../helpers/swift.js';
import type { SwiftServer } from '../helpers/swift.js';

const SYMBOLS = Array.from({ length: 10 }, (_, index) => `S${index}USDT`);
const scene = useScene({
  archive: [{ symbols: SYMBOLS, from: '2024-05-01', to: '2026-10-31', cadence: 'monthly', interval: '1h' }],
});
const WHAT = ['--interval', '1h', '--symbols', 'all', '--months', '30'];
const OUT = 's3://lake/of/workers';

describe.skipIf(!HAS_REDIS || !HAS_SWIFT)(
  `a queue with a lake on Swift${NEEDS_REDIS}${NEEDS_SWIFT}`,
  { timeout: 300_000 },
  () => {
    let swift: SwiftServer | undefined;
    let redis: RedisProcess | undefined;
    const zips = (): number => scene.archive.requests.filter((path) => isZip(path)).length;

    beforeAll(async () => {
      swift = await startSwift();
      await makeBucket(swift.environment, 'lake');
    }, START_MS);
    afterAll(async () => {
      await redis?.close();
      await swift?.close();
    });

    it('has the lake of a local run after two workers were killed and redis-server was restarted', async () => {
      const { lake: local, code } = await scene.vision(WHAT);
      expect(code).toBe(0);
      const localZips = zips();
      expect(localZips).toBe(300);
      scene.reset();

      const words = ['--appendonly', 'yes', '--appendfsync', 'always', '--dir', scene.newFolder()];
      const server = await startRedis(words);
      redis = server;
      const environment = swift?.environment ?? {};
      const runs = new QueueCommands(scene, server, { out: OUT, environment });
      expect((await runs.enqueue(WHAT)).code).toBe(0);
      const [first, second, third] = [1, 2, 3].map(() => runs.work(['--drain', '--lease', '5s']));
      const restarted = new Promise<void>((resolve, reject) => {
        const acts = new Map<number, () => void>([
          [60, () => first?.process.kill('SIGKILL')],
          [120, () => second?.process.kill('SIGKILL')],
          [
            180,
            () => {
              server
                .kill()
                .then(() => server.start())
                .then(resolve, reject);
            },
          ],
        ]);
        scene.archive.fault = () => {
          acts.get(zips())?.();
          return false;
        };
      });
      expect((await first?.ended)?.signal).toBe('SIGKILL');
      expect((await second?.ended)?.signal).toBe('SIGKILL');
      await restarted;
      const end = await third?.ended;
      expect([end?.code, end?.stderr]).toEqual([0, expect.stringContaining(' 0 failed')]);

      const { bucket } = bucketOf({ environment, address: OUT });
      const copy = scene.newFolder();
      for await (const { key } of bucket.list('')) {
        const path = join(copy, key);
        mkdirSync(dirname(path), { recursive: true });
        await bucket.get(key, path);
      }
      expect(contentOf(copy)).toEqual(contentOf(local));
      // A killed worker loses at most four objects (--concurrency 4), because each partition has one.
      expect(zips()).toBeLessThanOrEqual(localZips + 2 * 4);
    });
  },
);
