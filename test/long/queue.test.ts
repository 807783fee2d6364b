/** The queue: a real redis-server, an S3 server, and workers as processes that are killed, paused and restarted. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cryptodlProcess } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { inBuckets, inFolders } from '../helpers/lake-kinds.js';
import { MISSING } from '../helpers/local-faults.js';
import type { LakeKind, TestLake } from '../helpers/lake-kinds.js';
import { QueueCommands } from '../helpers/queue-runs.js';
import type { StartedWorker } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import type { RedisProcess } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const SYMBOLS = Array.from({ length: 10 }, (_, index) => `S${index}USDT`);
const MONTHS = 30;

const scene = useScene({
  archive: [{ symbols: SYMBOLS, from: '2024-05-01', to: '2026-10-31', cadence: 'monthly', interval: '1h' }],
});
const WHAT = ['--interval', '1h', '--symbols', 'all', '--months', String(MONTHS)];

async function restart(server: RedisProcess): Promise<void> {
  await server.kill();
  await server.start();
}

const byText = (a: string, b: string): number => (a < b ? -1 : 1);

function objectsOf(manifest: string): string[] {
  return manifest
    .split('\n')
    .filter((line) => line.includes('"kind":"object"'))
    .map((line) => {
      const { key, sha256, rows } = JSON.parse(line) as { key: string; sha256: string; rows: number };
      return `${key} ${sha256} ${rows}`;
    })
    .toSorted(byText);
}

describe.skipIf(!HAS_REDIS)(`a queue${NEEDS_REDIS}`, { timeout: 300_000 }, () => {
  let buckets: LakeKind;
  let local: string;
  let localZips: number;
  const servers: RedisProcess[] = [];

  const redis = async (words: readonly string[] = []): Promise<RedisProcess> => {
    const server = await startRedis(words);
    servers.push(server);
    return server;
  };
  const zips = (part = ''): number =>
    scene.archive.requests.filter((path) => isZip(path) && path.includes(part)).length;
  const of = (server: RedisProcess, lake: TestLake): QueueCommands => new QueueCommands(scene, server, lake);
  const enqueue = (server: RedisProcess, lake: TestLake, words = WHAT): Promise<CliResult> =>
    of(server, lake).enqueue(words);
  const work = (server: RedisProcess, lake: TestLake, ...words: string[]): StartedWorker =>
    of(server, lake).work(words);
  const status = (server: RedisProcess): Promise<Readonly<Record<string, unknown>>> =>
    of(server, buckets.make()).status();

  /** All files but those of the runs. Of a manifest: its objects with their digests and rows, in any order. */
  const contentOf = (folder: string): Map<string, string> =>
    new Map(
      filesBelow(folder)
        .filter((path) => !path.startsWith('.cryptodl/'))
        .map((path) => {
          const bytes = readFileSync(join(folder, path));
          if (!path.startsWith('_manifests/')) return [path, bytes.toString('base64')];
          return [path, objectsOf(bytes.toString()).join('\n')];
        }),
    );
  const expectWhole = (lake: TestLake): void => {
    const [found, wanted] = [contentOf(lake.content()), contentOf(local)];
    expect([...found.keys()].toSorted(byText)).toEqual([...wanted.keys()].toSorted(byText));
    for (const [path, content] of wanted) expect([path, found.get(path)]).toEqual([path, content]);
  };

  beforeAll(async () => {
    buckets = await inBuckets(scene.scratch);
    local = await scene.lakeOf([WHAT]);
    localZips = zips();
    scene.reset();
  });
  afterAll(async () => {
    await buckets.close();
    await Promise.all(servers.map((server) => server.close()));
  });

  it('gives three workers each object once, although it was filled twice', async () => {
    const [server, lake] = [await redis(), buckets.make()];
    const first = await enqueue(server, lake);
    expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('30 jobs for 10 series')]);
    expect((await enqueue(server, lake)).code).toBe(0);
    expect(await status(server)).toMatchObject({ waiting: 30, failed: 0 });
    const workers = [1, 2, 3].map(() => work(server, lake, '--drain'));
    const ends = await Promise.all(workers.map(({ ended }) => ended));
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
    expectWhole(lake);
    expect(zips()).toBeLessThanOrEqual(localZips * 1.05);
    expect(await status(server)).toMatchObject({ waiting: 0, active: 0, failed: 0 });
  });

  it('loses nothing when two workers are killed and the server is restarted', async () => {
    const folder = scene.newFolder();
    const server = await redis(['--appendonly', 'yes', '--appendfsync', 'always', '--dir', folder]);
    const lake = buckets.make();
    expect((await enqueue(server, lake)).code).toBe(0);
    // A busy machine may keep a process from renewing a shorter lease in time, which costs objects too.
    const [first, second, third] = [1, 2, 3].map(() => work(server, lake, '--drain', '--lease', '5s'));
    const killed: string[] = [];
    const at = (count: number, name: string, act: () => void): void => {
      if (killed.includes(name) || zips() < count) return;
      killed.push(name);
      act();
    };
    const restarted = new Promise<void>((resolve, reject) => {
      scene.archive.fault = () => {
        at(60, 'first', () => first?.process.kill('SIGKILL'));
        at(120, 'second', () => second?.process.kill('SIGKILL'));
        at(180, 'server', () => {
          restart(server).then(resolve, reject);
        });
        return false;
      };
    });
    expect((await first?.ended)?.signal).toBe('SIGKILL');
    expect((await second?.ended)?.signal).toBe('SIGKILL');
    await restarted;
    const end = await third?.ended;
    expect([end?.code, end?.stderr]).toEqual([0, expect.stringContaining('0 failed')]);
    expectWhole(lake);
    // A killed worker loses at most four objects (--concurrency 4), because each partition has one.
    expect(zips()).toBeLessThanOrEqual(localZips + 2 * 4);
    expect(localZips + 2 * 4).toBeLessThanOrEqual(localZips * 1.05);
  });

  it.skipIf(MISSING.faketime !== undefined)(
    `gives each object once to workers with clocks that differ by twenty minutes${MISSING.faketime === undefined ? '' : ` (${MISSING.faketime})`}`,
    async () => {
      const [server, lake] = [await redis(), buckets.make()];
      // A job with a further attempt waits for a time by the clock of a worker.
      let refusals = 0;
      scene.archive.fault = (path, _, response) => {
        if (!isZip(path) || !path.includes('S3USDT-1h-2025-03') || refusals >= 6) return false;
        refusals += 1;
        response.writeHead(500).end();
        return true;
      };
      expect((await enqueue(server, lake)).code).toBe(0);
      const workers = ['+10m', '-10m'].map((shift) =>
        of(server, lake).work(['--drain', '--retries', '2'], undefined, ['faketime', '-m', '-f', shift]),
      );
      const ends = await Promise.all(workers.map(({ ended }) => ended));
      expect(ends.map(({ code, stderr }) => [code, stderr.includes('lease')])).toEqual([
        [0, false],
        [0, false],
      ]);
      expectWhole(lake);
      expect(refusals).toBe(6);
      expect(zips() - refusals).toBe(localZips);
    },
  );

  it('is filled again by the same command after the server has lost it', async () => {
    const [server, lake] = [await redis(), buckets.make()];
    const waiting = enqueue(server, lake, [...WHAT, '--wait']);
    const worker = work(server, lake);
    scene.archive.fault = () => {
      if (zips() !== 150) return false;
      scene.archive.fault = undefined;
      void restart(server);
      return false;
    };
    const { code, stderr } = await waiting;
    expect([code, stderr]).toEqual([3, expect.stringContaining('has lost the jobs')]);
    const again = await enqueue(server, lake, [...WHAT, '--wait', '--json']);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('append-only')]);
    const { outcomes } = again.events.at(-1) as { outcomes: Record<string, number> };
    expect((outcomes['ok'] ?? 0) + (outcomes['skipped'] ?? 0)).toBe(localZips);
    worker.process.kill('SIGTERM');
    expect((await worker.ended).code).toBe(143);
    expectWhole(lake);
  });

  it('ends --wait like a local run, keeps typed failures, and puts them back', async () => {
    const [server, lake] = [await redis(), buckets.make()];
    scene.refuse((path) => isZip(path) && path.includes('S3USDT-1h-2025-03'), 500);
    const worker = work(server, lake);
    const wait = await enqueue(server, lake, [...WHAT, '--wait', '--json']);
    expect(wait.code).toBe(3);
    expect(wait.events.at(-1)).toMatchObject({
      event: 'summary',
      jobs: { all: 30, done: 29, failed: 1, open: 0 },
      outcomes: { ok: 299, skipped: 0, failed: 1 },
      failed: { 'http-server-error': 1 },
      exitCode: 3,
    });
    expect(await status(server)).toMatchObject({ failed: 1, failedBy: { 'http-server-error': 1 } });
    const back = (codes: string): Promise<CliResult> =>
      cryptodlProcess(['retry', '--redis', server.address, '--codes', codes, '--json']);
    expect((await back('row-malformed')).events).toMatchObject([{ jobs: 0 }]);
    scene.reset();
    const before = zips();
    expect((await back('http-server-error')).events).toMatchObject([{ jobs: 1 }]);
    while ((await status(server))['active'] !== 0 || (await status(server))['waiting'] !== 0) await sleep(50);
    worker.process.kill('SIGTERM');
    await worker.ended;
    expect(zips() - before).toBe(1);
    expectWhole(lake);
  });

  it('parks a job that ends each worker, and does the others', async () => {
    const [server, lake] = [await redis(), buckets.make()];
    expect((await enqueue(server, lake)).code).toBe(0);
    // With a shorter lease, a busy worker loses the job too, and that counts like a kill.
    let worker = work(server, lake, '--drain', '--lease', '2s', '--jobs', '1');
    const kills: ChildProcess[] = [];
    scene.answer(
      (path) => isZip(path) && path.includes('S4USDT-1h-2025-03'),
      () => {
        kills.push(worker.process);
        worker.process.kill('SIGKILL');
      },
    );
    let end = await worker.ended;
    while (end.signal === 'SIGKILL' && kills.length < 12) {
      worker = work(server, lake, '--drain', '--lease', '2s', '--jobs', '1');
      end = await worker.ended;
    }
    expect([end.code, kills.length]).toEqual([4, 6]);
    expect(await status(server)).toMatchObject({ waiting: 0, failed: 1, failedBy: { 'job-stalled': 1 } });
    scene.reset();
    await cryptodlProcess(['retry', '--redis', server.address]);
    expect((await work(server, lake, '--drain').ended).code).toBe(0);
    expectWhole(lake);
  });

  it('does no harm when the holder of a job is paused for longer than its lease', async () => {
    const [server, lake] = [await redis(), buckets.make()];
    expect((await enqueue(server, lake)).code).toBe(0);
    const paused = work(server, lake, '--drain', '--lease', '500ms');
    await new Promise<void>((resolve) => {
      scene.archive.fault = () => {
        if (zips() === 20) {
          paused.process.kill('SIGSTOP');
          resolve();
        }
        return false;
      };
    });
    const other = await work(server, lake, '--drain', '--lease', '500ms').ended;
    expect(other.code).toBe(0);
    paused.process.kill('SIGCONT');
    expect((await paused.ended).code).toBe(0);
    expect(await status(server)).toMatchObject({ waiting: 0, active: 0, failed: 0 });
    expectWhole(lake);
  });

  it('ends a job whose lease another worker has', async () => {
    const [server, lake] = [await redis(), buckets.make()];
    const client = new Redis(server.address, { maxRetriesPerRequest: null });
    const year = ['--interval', '1h', '--from', '2025-01-01', '--to', '2025-12-31', '--symbols'];
    expect((await enqueue(server, lake, [...year, 'S0USDT'])).code).toBe(0);
    // These requests stay without an answer.
    scene.answer(
      (path) => isZip(path) && path.includes('S0USDT'),
      () => undefined,
    );
    const worker = work(server, lake, '--lease', '500ms', '--jobs', '1', '--concurrency', '1');
    while (zips('S0USDT') < 1) await sleep(20);
    const [lease = ''] = await client.keys('*:lock');
    await client.set(lease, 'another worker');
    expect((await enqueue(server, lake, [...year, 'S1USDT'])).code).toBe(0);
    while (zips('S1USDT') < 12) await sleep(50);
    expect(zips('S0USDT')).toBeLessThan(12);
    worker.process.kill('SIGTERM');
    const { code, stderr } = await worker.ended;
    expect([code, stderr]).toEqual([143, expect.stringContaining('the lease of a job ran out')]);
    client.disconnect();
  });

  it('gives back the jobs in hand after SIGTERM', async () => {
    const [server, lake] = [await redis(), buckets.make()];
    expect((await enqueue(server, lake)).code).toBe(0);
    const worker = work(server, lake);
    await new Promise<void>((resolve) => {
      scene.archive.fault = () => {
        if (zips() === 20) resolve();
        return false;
      };
    });
    worker.process.kill('SIGTERM');
    expect((await worker.ended).code).toBe(143);
    expect(await status(server)).toMatchObject({ active: 0, failed: 0, delayed: 0 });
    expect((await work(server, lake, '--drain').ended).code).toBe(0);
    expectWhole(lake);
    expect(zips()).toBeLessThanOrEqual(localZips * 1.05);
  });

  it('leaves the jobs of another lake to other workers, and fails hostile ones and those of a later version', async () => {
    const folders = await inFolders(scene.scratch);
    const [server, lake] = [await redis(), folders.make()];
    const client = new Redis(server.address, { maxRetriesPerRequest: null });
    const queue = new Queue('main', { connection: client, prefix: 'cryptodl:queue' });
    const options = {
      market: ['um'],
      dataset: ['klines'],
      interval: ['1h'],
      symbols: ['S0USDT'],
      from: ['2024-05-01'],
      to: ['2024-05-31'],
      out: [lake.out],
    };
    const opts = { attempts: 3, removeOnComplete: true };
    await queue.add('lake', { v: 1, verb: 'vision', options: { ...options, out: ['/elsewhere'] } }, opts);
    const hostile = [
      { v: 99, verb: 'vision', options },
      { v: 1, verb: 'vision', options: { ...options, symbols: ['@/etc/passwd'] } },
      { v: 1, verb: 'vision', options: { ...options, 'archive-url': ['http://127.0.0.1:1'] } },
      { v: 1, verb: 'vision', options: { ...options, symbols: ['../../S0USDT'] } },
      { v: 1, verb: 'serve', options },
      { v: 1, verb: 'vision', options: { ...options, symbols: ['S0USDT', 'S1USDT'] } },
      { v: 1 },
      'text',
    ];
    for (const data of hostile) await queue.add('hostile', data, opts);
    // A damaged server or another program may leave data that are not JSON.
    const torn = await queue.add('torn', {}, opts);
    await client.hset(queue.toKey(torn.id ?? ''), 'data', '{"v":1,');
    const ends = hostile.length + 1;
    const worker = work(server, lake);
    while ((await queue.getFailedCount()) < ends || (await queue.getDelayedCount()) < 1) await sleep(50);
    worker.process.kill('SIGTERM');
    const { stderr } = await worker.ended;
    expect(stderr).toContain('the job is for the lake /elsewhere');
    expect(stderr).not.toContain('connection');
    expect(await status(server)).toMatchObject({ delayed: 1, active: 0, failedBy: { usage: ends } });
    expect(zips()).toBe(0);
    await queue.close();
    client.disconnect();
    await once(client, 'end').catch(() => undefined);
  });

  it('refuses a second worker of a folder before it takes a job', async () => {
    const folders = await inFolders(scene.scratch);
    const [server, lake] = [await redis(), folders.make()];
    // These requests stay without an answer.
    scene.answer(isZip, () => undefined);
    expect((await enqueue(server, lake)).code).toBe(0);
    const first = work(server, lake);
    while (zips() === 0) await sleep(20);
    const second = await work(server, lake).ended;
    expect([second.code, second.stderr]).toEqual([
      6,
      expect.stringContaining(`another worker of the queue main writes to the folder ${lake.out}`),
    ]);
    expect(await status(server)).toMatchObject({
      waiting: 28,
      active: 2,
      delayed: 0,
      workerNames: [`${hostname()}:${first.process.pid}`],
    });
    first.process.kill('SIGTERM');
    expect((await first.ended).code).toBe(143);
  });

  it('does the jobs of a folder in one worker, and again without a request', async () => {
    const folders = await inFolders(scene.scratch);
    const [server, lake] = [await redis(), folders.make()];
    for (const expected of [localZips, 0]) {
      scene.archive.requests.length = 0;
      expect((await enqueue(server, lake)).code).toBe(0);
      expect((await work(server, lake, '--drain').ended).code).toBe(0);
      expect(zips()).toBe(expected);
    }
    expectWhole(lake);
  });

  it('ends enqueue with exit code 3 when the server is out of memory, and refuses one that drops keys', async () => {
    const lake = buckets.make();
    const full = await redis(['--maxmemory', '1mb']);
    const { code, stderr } = await enqueue(full, lake);
    expect([code, stderr]).toEqual([3, expect.stringContaining('OOM command not allowed')]);
    const dropping = await redis(['--maxmemory-policy', 'allkeys-lru']);
    const refused = await enqueue(dropping, lake);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('noeviction')]);
  });
});
