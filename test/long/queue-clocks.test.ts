/** A worker whose clock is behind that of the command that made its jobs. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { cryptodlProcess, FAST } from '../helpers/cli.js';
import { MISSING } from '../helpers/local-faults.js';
import { dataOf } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import { useScene } from '../helpers/scene.js';

const DAY_MS = 86_400_000;
const dayBefore = (days: number): string => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
const [FIRST, LAST] = [dayBefore(9), dayBefore(2)];

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT'], from: FIRST, to: LAST, cadence: 'daily', interval: '1h' }],
});
const isMissing = !HAS_REDIS || MISSING.faketime !== undefined;

describe.skipIf(isMissing)(`a clock that is behind${NEEDS_REDIS || (MISSING.faketime ?? '')}`, () => {
  it('leaves out no day of a job', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    const out = scene.newFolder();
    const what = ['--symbols', 'BTCUSDT', '--interval', '1h', '--from', FIRST, '--to', LAST];
    const flags = [
      '--redis',
      redis.address,
      '--archive-url',
      scene.archive.url,
      ...FAST.filter((word) => !['--progress', 'none'].includes(word)),
    ];
    const queued = await cryptodlProcess(['enqueue', 'vision', ...flags, '--out', out, ...what]);
    expect([queued.code, queued.stderr]).toEqual([0, expect.stringContaining('1 job')]);
    const wrap = ['faketime', '-m', '-f', '-4d'];
    const worked = await cryptodlProcess(['worker', ...flags, '--out', out, '--drain'], { wrap });
    expect([worked.code, worked.stderr]).toEqual([0, expect.stringContaining('1 job done, 0 failed')]);
    const local = scene.newFolder();
    const run = await cryptodlProcess([
      'vision',
      '--archive-url',
      scene.archive.url,
      ...FAST,
      ...what,
      '--out',
      local,
    ]);
    expect(run.code).toBe(0);
    expect(dataOf(out)).toEqual(dataOf(local));
  });
});
