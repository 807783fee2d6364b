/** Workers that fetch and workers that convert, with objects that are broken or gone, and with files that another worker is writing. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { makeCsv } from '../../scripts/synthetic-archive.js';
import { cryptodlProcess, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { readParquet } from '../helpers/lake.js';
import { memberOf, publishZip } from '../helpers/published.js';
import { contentOf, dataOf, QueueRuns } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const SYMBOLS = ['BTCUSDT', 'ETHUSDT'];
const FROM = '2026-08-01';
const scene = useScene({
  archive: [
    { symbols: SYMBOLS, from: FROM, to: '2026-10-31', cadence: 'monthly', interval: '1h' },
    { symbols: ['BTCUSDT'], from: '2026-09-01', to: '2026-09-30', cadence: 'daily', interval: '1h' },
    { symbols: ['BTCUSDT'], from: '2026-11-01', to: '2026-11-10', cadence: 'daily', interval: '1h' },
  ],
});
const WHAT = ['--interval', '1h', '--symbols', SYMBOLS.join(','), '--from', FROM, '--to', '2026-10-31'];
const FETCH = ['--role', 'fetch', '--drain'];
const CONVERT = ['--role', 'convert', '--drain'];

describe.skipIf(!HAS_REDIS)(`faults of worker roles${NEEDS_REDIS}`, { timeout: 120_000 }, () => {
  let runs: QueueRuns;
  const zips = (): string[] => scene.archive.requests.filter((path) => isZip(path));

  beforeAll(() => {
    // The sidecar fits the month, and its content does not fit its CRC.
    const key = 'data/futures/um/monthly/klines/BTCUSDT/1h/BTCUSDT-1h-2026-09.zip';
    const { csv } = makeCsv({
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbol: 'BTCUSDT',
      period: '2026-09',
    });
    const zip = makeZip([{ name: memberOf(key), data: csv }]);
    zip[60] = (zip[60] ?? 0) ^ 0xff;
    publishZip(scene.folder, key, zip);
  });
  beforeEach(async () => {
    scene.reset();
    runs = await QueueRuns.open(scene);
  });
  afterEach(() => runs.close());

  it('take the days in place of a broken month, and leave out what the archive does not have', async () => {
    const withoutOne = (): void => {
      scene.refuse((path) => path.includes('ETHUSDT-1h-2026-09.zip'), 404);
    };
    withoutOne();
    const { lake } = await scene.vision(WHAT);
    scene.reset();
    withoutOne();
    await runs.enqueue(WHAT);
    expect((await runs.work(FETCH).ended).code).toBe(0);
    const end = await runs.work(CONVERT).ended;
    expect([end.code, end.stderr]).toEqual([0, expect.stringContaining(', 0 failed,')]);
    expect(contentOf(runs.lake.content())).toEqual(contentOf(lake));
    expect(runs.staged()).toEqual([]);
  });

  it.each(['is changed by another writer', 'is damaged'])(
    'lose no day of a file that %s while its job is converted',
    async (what) => {
      const days = (from: number, to: number): string[] => {
        const [first, last] = [from, to].map((day) => `2026-11-0${day}`) as [string, string];
        return ['--interval', '1h', '--symbols', 'BTCUSDT', '--from', first, '--to', last];
      };
      const { out, environment: env } = runs.lake;
      const write = (from: number, to: number): Promise<CliResult> => {
        const places = ['--out', out, '--archive-url', scene.archive.url, '--now', scene.now];
        return cryptodlProcess(['vision', ...days(from, to), ...places, ...FAST], { env });
      };
      const series = 'um/klines/interval=1h/symbol=BTCUSDT';
      const file = `binance/${series}/2026-11.parquet`;
      expect((await write(1, 3)).code).toBe(0);
      await runs.enqueue(days(5, 6));
      expect((await runs.work(FETCH).ended).code).toBe(0);
      let isDone = what === 'is damaged';
      if (isDone) runs.lake.change(file, runs.lake.read(file).subarray(1));
      runs.bucket.fault = async ({ method, key }) => {
        if (isDone || method !== 'PUT' || !key.endsWith('symbol=BTCUSDT.jsonl')) return undefined;
        isDone = true;
        expect((await write(4, 5)).code).toBe(0);
        return undefined;
      };
      const fetcher = runs.work(FETCH.slice(0, 2));
      // The zips come within the pause before the next attempt.
      const converter = await runs.work([...CONVERT, '--retry-delay', '500ms']).ended;
      fetcher.process.kill('SIGTERM');
      await fetcher.ended;
      expect([isDone, converter.code]).toEqual([true, 0]);
      const rows = await readParquet(join(runs.lake.content(), file));
      const held = new Set(rows.map((row) => (row['open_time'] as Date).getUTCDate()));
      expect([...held]).toEqual(what === 'is damaged' ? [1, 2, 3, 5, 6] : [1, 2, 3, 4, 5, 6]);
      expect((await cryptodlProcess(['verify', '--deep', '--out', out], { env })).code).toBe(0);
    },
  );

  it('write a file again that no manifest names', async () => {
    await runs.enqueue(WHAT);
    expect((await runs.work(['--drain']).ended).code).toBe(0);
    const first = zips();
    const data = dataOf(runs.lake.content());
    for (const key of runs.bucket.objects.keys())
      if (key.includes('/_manifests/')) runs.bucket.objects.delete(key);
    scene.reset();
    await runs.enqueue(WHAT);
    expect((await runs.work(['--drain']).ended).code).toBe(0);
    expect(zips().toSorted()).toEqual(first.toSorted());
    expect(dataOf(runs.lake.content())).toEqual(data);
  });

  it('pause the fetchers while 1,000 jobs wait for their conversion', async () => {
    const connection = { url: runs.redis.address };
    const staged = new Queue('main~convert', { connection, prefix: 'cryptodl:queue' });
    await staged.addBulk(
      Array.from({ length: 1000 }, (_, index) => ({
        name: 'vision',
        data: {},
        opts: { jobId: `other-${index}`, priority: 1 },
      })),
    );
    await runs.enqueue(WHAT);
    const fetcher = runs.work(FETCH.slice(0, 2));
    let told = '';
    fetcher.process.stderr?.on('data', (chunk: Buffer) => (told += chunk.toString()));
    while (!told.includes('1000 fetched jobs wait for their conversion') && zips().length === 0)
      await sleep(20);
    expect(zips()).toEqual([]);
    await staged.drain();
    while ((await staged.getJobCounts('prioritized'))['prioritized'] !== 2) await sleep(20);
    fetcher.process.kill('SIGTERM');
    await fetcher.ended;
    expect(zips().length).toBeGreaterThan(0);
    await staged.close();
  });
});
