/** Workers that fetch and workers that convert: a real redis-server, an S3 server, and workers as processes that are killed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { contentOf, dataOf, QueueRuns } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const SYMBOLS = Array.from({ length: 4 }, (_, index) => `S${index}USDT`);
const scene = useScene({
  archive: [{ symbols: SYMBOLS, from: '2024-05-01', to: '2026-10-31', cadence: 'monthly', interval: '1h' }],
});
const WHAT = ['--interval', '1h', '--symbols', 'all', '--months', '30'];
const FETCH = ['--role', 'fetch', '--drain'];
const CONVERT = ['--role', 'convert', '--drain'];

describe.skipIf(!HAS_REDIS)(`roles of workers${NEEDS_REDIS}`, { timeout: 300_000 }, () => {
  let local: string;
  let localZips: number;
  /** The archive of the workers that convert. */
  let second: TestArchive;
  let runs: QueueRuns;
  const zips = (): number => scene.archive.requests.filter((path) => isZip(path)).length;

  beforeAll(async () => {
    local = await scene.lakeOf([WHAT]);
    localZips = zips();
    second = await startArchive(scene.folder);
  });
  beforeEach(async () => {
    scene.reset();
    second.requests.length = 0;
    runs = await QueueRuns.open(scene);
  });
  afterEach(() => runs.close());
  afterAll(() => second.close());

  it('makes the lake of a local run, and converters request no zip and no sidecar', async () => {
    const wait = runs.enqueue([...WHAT, '--wait', '--json']);
    while ((await runs.status())['waiting'] !== 12) await sleep(50);
    const converter = runs.work(CONVERT, second.url);
    const fetchers = [runs.work(FETCH), runs.work(FETCH)];
    const ends = await Promise.all([...fetchers, converter].map(({ ended }) => ended));
    expect(ends.map(({ code, stderr }) => [code, stderr.includes(' 0 failed')])).toEqual(
      ends.map(() => [0, true]),
    );
    expect(contentOf(runs.lake.content())).toEqual(contentOf(local));
    expect(zips()).toBe(localZips);
    expect(second.objectRequests()).toEqual([]);
    expect(runs.staged()).toEqual([]);
    const { code, events } = await wait;
    expect([code, events.at(-1)]).toMatchObject([
      0,
      { jobs: { all: 12, done: 12, failed: 0 }, outcomes: { ok: localZips, skipped: 0, failed: 0 } },
    ]);
    expect(Number(events.at(-1)?.['requests'])).toBeGreaterThanOrEqual(2 * localZips);
  });

  it('keeps what is fetched when no worker converts yet, and lets a worker of both roles convert it', async () => {
    await runs.enqueue(WHAT);
    expect((await runs.work(FETCH).ended).code).toBe(0);
    expect(await runs.status()).toMatchObject({ waiting: 0, failed: 0, converting: { waiting: 12 } });
    expect(runs.staged().length).toBe(localZips);
    expect((await runs.work(['--drain'], second.url).ended).code).toBe(0);
    expect(second.objectRequests()).toEqual([]);
    expect(contentOf(runs.lake.content())).toEqual(contentOf(local));
    expect(runs.staged()).toEqual([]);
  });

  it('loses nothing when a fetcher and a converter are killed', async () => {
    await runs.enqueue(WHAT);
    const lease = ['--lease', '1s'];
    const fetcher = runs.work([...FETCH, ...lease]);
    scene.archive.fault = () => {
      if (zips() === 40) fetcher.process.kill('SIGKILL');
      return false;
    };
    expect((await fetcher.ended).signal).toBe('SIGKILL');
    const converter = runs.work([...CONVERT, ...lease], second.url);
    let removed = 0;
    runs.bucket.fault = ({ method }) => {
      if (method === 'DELETE') removed += 1;
      // In the middle of the removal of the zips of a job.
      if (removed === 3) converter.process.kill('SIGKILL');
      return undefined;
    };
    const others = runs.work([...FETCH, ...lease]);
    expect((await converter.ended).signal).toBe('SIGKILL');
    runs.bucket.fault = undefined;
    expect((await others.ended).code).toBe(0);
    expect((await runs.work([...CONVERT, ...lease], second.url).ended).code).toBe(0);
    expect(contentOf(runs.lake.content())).toEqual(contentOf(local));
    expect(second.objectRequests()).toEqual([]);
    // The killed worker had at most so many objects in flight.
    expect(zips()).toBeLessThanOrEqual(localZips + 4);
    expect(runs.staged()).toEqual([]);
    expect(await runs.status()).toMatchObject({ failed: 0, converting: { waiting: 0, delayed: 0 } });
  });

  it('fetches damaged and missing zips again', async () => {
    await runs.enqueue(WHAT);
    await runs.work(FETCH).ended;
    const [damaged = '', missing = '', other = ''] = runs.staged();
    const { bytes: sound = '', metadata = {} } = runs.bucket.objects.get(damaged) ?? {};
    const bytes = Buffer.from(sound);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    runs.bucket.store(damaged, bytes, metadata);
    runs.bucket.objects.delete(missing);
    runs.bucket.store(other, 'without a record');
    const [fetcher, converter] = [runs.work(FETCH.slice(0, 2)), runs.work(CONVERT, second.url)];
    expect((await converter.ended).code).toBe(0);
    fetcher.process.kill('SIGTERM');
    await fetcher.ended;
    expect(dataOf(runs.lake.content())).toEqual(dataOf(local));
    expect(zips()).toBe(localZips + 3);
    expect(second.objectRequests()).toEqual([]);
    expect(runs.staged()).toEqual([]);
  });

  it('keeps the typed failure of an object that cannot be fetched, converts the others, and puts the job back', async () => {
    scene.refuse((path) => isZip(path) && path.includes('S3USDT-1h-2025-03'), 500);
    const workers = [runs.work(['--role', 'fetch']), runs.work(['--role', 'convert'], second.url)];
    const { code, events } = await runs.enqueue([...WHAT, '--wait', '--json']);
    expect([code, events.at(-1)]).toMatchObject([
      3,
      {
        jobs: { all: 12, done: 11, failed: 1 },
        outcomes: { ok: localZips - 1, failed: 1 },
        failed: { 'http-server-error': 1 },
      },
    ]);
    expect(await runs.status()).toMatchObject({ failed: 1, failedBy: { 'http-server-error': 1 } });
    scene.reset();
    await runs.retry();
    const none = { waiting: 0, delayed: 0, active: 0 };
    const isDone = async (): Promise<void> =>
      expect(await runs.status()).toMatchObject({ failed: 0, ...none, converting: none });
    await vi.waitFor(isDone, { timeout: 60_000, interval: 500 });
    for (const { process } of workers) process.kill('SIGTERM');
    await Promise.all(workers.map(({ ended }) => ended));
    expect(zips()).toBe(1);
    expect(runs.staged()).toEqual([]);
    expect(dataOf(runs.lake.content())).toEqual(dataOf(local));
  });

  it('does jobs without a conversion in the workers that fetch', async () => {
    await runs.enqueue([...WHAT, '--format', 'zip']);
    expect((await runs.work(FETCH).ended).code).toBe(0);
    expect(await runs.status()).toMatchObject({ waiting: 0, failed: 0, converting: { waiting: 0 } });
    const kept = [...runs.bucket.objects.keys()].filter((key) => isZip(key) && !key.includes('.cryptodl'));
    expect(kept.length).toBe(localZips);
    expect(runs.staged()).toEqual([]);
  });
});
