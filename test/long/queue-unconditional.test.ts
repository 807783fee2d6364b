/** Workers of a queue with a lake in a bucket without conditional writes: they cannot join their lines in one manifest. */
import { afterEach, describe, expect, it } from 'vitest';
import { QueueRuns } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [
    { symbols: ['S0USDT'], from: '2026-10-01', to: '2026-10-31', cadence: 'monthly', interval: '1h' },
  ],
});
const WHAT = ['--interval', '1h', '--symbols', 'all', '--months', '1'];

describe.skipIf(!HAS_REDIS)(`a queue without conditional writes${NEEDS_REDIS}`, { timeout: 300_000 }, () => {
  let runs: QueueRuns;
  afterEach(() => runs.close());

  it.each(['refused', 'ignored', 'absence', 'version'] as const)(
    'ends a worker before its first job: conditions %s',
    async (conditions) => {
      scene.reset();
      runs = await QueueRuns.open(scene, { s3: { conditions } });
      expect((await runs.enqueue(WHAT)).code).toBe(0);
      const { code, stderr } = await runs.work(['--drain']).ended;
      expect(code).toBe(1);
      expect(stderr).toContain('the server has no conditional writes');
      expect(stderr).toContain('--shard');
      expect(scene.archive.requests.filter(isZip)).toEqual([]);
      expect(await runs.status()).toMatchObject({ waiting: 1, failed: 0 });
    },
  );
});
