/** What a queue promises about its jobs: attempts, order, back-pressure, and counts of --wait. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CliResult } from '../helpers/cli.js';
import { QueueRuns } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const SYMBOLS = Array.from({ length: 6 }, (_, index) => `S${index}USDT`);
const scene = useScene({
  archive: [{ symbols: SYMBOLS, from: '2025-01-01', to: '2025-12-31', cadence: 'monthly', interval: '1h' }],
});
/** One job for each series. */
const YEAR = ['--interval', '1h', '--from', '2025-01-01', '--to', '2025-12-31', '--symbols'];

describe.skipIf(!HAS_REDIS)(`jobs of a queue${NEEDS_REDIS}`, { timeout: 120_000 }, () => {
  let runs: QueueRuns;
  const zips = (): string[] => scene.archive.requests.filter((path) => isZip(path));

  beforeEach(async () => {
    runs = await QueueRuns.open(scene);
  });
  afterEach(() => runs.close());

  it('tries a job three times if its failure may pass, and once otherwise', async () => {
    scene.archive.fault = (path, _, response) => {
      const status = path.includes('S0USDT-1h-2025-03') ? 500 : path.includes('S1USDT-1h-2025-03') ? 400 : 0;
      if (!isZip(path) || status === 0) return false;
      response.writeHead(status).end();
      return true;
    };
    expect((await runs.enqueue([...YEAR, 'S0USDT,S1USDT,S2USDT'])).code).toBe(0);
    const { stderr } = await runs.work(['--drain', '--retry-delay', '60ms']).ended;
    // The back-off of a job is ten times that of a request, and four times longer after its second failure.
    const told = await runs.redis.client.xrange('cryptodl:queue:main:events', '-', '+');
    const delays = told.flatMap(([id, words]) => {
      const at = words.indexOf('delay');
      return at === -1 ? [] : [Number(words[at + 1]) - Number.parseInt(id, 10)];
    });
    expect(delays.map((ms) => Math.round(ms / 600))).toEqual([1, 4]);
    expect(stderr).toContain('1 job done, 2 failed, 34 objects written');
    const connection = runs.redis.client.duplicate({ maxRetriesPerRequest: null, lazyConnect: false });
    const queue = new Queue('main', { connection, prefix: 'cryptodl:queue' });
    const failed = (await queue.getFailed()).map(({ progress }) => progress as { code: string });
    await queue.close();
    connection.disconnect();
    expect(failed.toSorted((a, b) => (a.code < b.code ? -1 : 1))).toMatchObject([
      { code: 'http-refused', attempts: 1, keys: [expect.stringContaining('S1USDT-1h-2025-03')] },
      { code: 'http-server-error', attempts: 3, keys: [expect.stringContaining('S0USDT-1h-2025-03')] },
    ]);
  });

  it('drains a queue only when its later jobs are done too', async () => {
    expect((await runs.enqueue([...YEAR, 'S0USDT'])).code).toBe(0);
    const connection = runs.redis.client.duplicate({ maxRetriesPerRequest: null, lazyConnect: false });
    const queue = new Queue('main', { connection, prefix: 'cryptodl:queue' });
    const [job] = await queue.getPrioritized();
    await job?.remove();
    await queue.add('vision', job?.data, { delay: 3000 });
    await queue.close();
    connection.disconnect();
    expect((await runs.work(['--drain']).ended).code).toBe(0);
    expect(zips().length).toBe(12);
  });

  it('does --jobs jobs at once', async () => {
    const symbols = new Set<string>();
    const held: (() => void)[] = [];
    let atOnce: number | undefined;
    scene.archive.fault = (path, request, response) => {
      if (!isZip(path) || atOnce !== undefined) return false;
      symbols.add(/S\dUSDT/.exec(path)?.[0] ?? '');
      // Time for a fourth job.
      if (held.length === 0) setTimeout(release, 3000);
      held.push(() => {
        scene.archive.serve(request, response);
      });
      return true;
    };
    const release = (): void => {
      atOnce = symbols.size;
      for (const serve of held) serve();
    };
    expect((await runs.enqueue([...YEAR, 'all'])).code).toBe(0);
    const worker = runs.work(['--drain', '--jobs', '3', '--concurrency', '99']);
    expect([(await worker.ended).code, atOnce]).toEqual([0, 3]);
  });

  it('does a job of higher priority first', async () => {
    const [low, high] = [
      [...YEAR, 'S0USDT,S1USDT', '--priority', 'low'],
      [...YEAR, 'S2USDT', '--priority', 'high'],
    ];
    expect((await runs.enqueue(low)).code).toBe(0);
    expect((await runs.enqueue(high)).code).toBe(0);
    expect((await runs.work(['--drain', '--jobs', '1', '--concurrency', '1']).ended).code).toBe(0);
    const order = zips().map((path) => /S\dUSDT/.exec(path)?.[0]);
    expect(order).toEqual(
      ['S2USDT', 'S0USDT', 'S1USDT'].flatMap((symbol) => Array.from({ length: 12 }, () => symbol)),
    );
  });

  it('adds no more jobs than may wait, and leaves no key for ever if it is killed then', async () => {
    const enqueue = runs.enqueue([...YEAR, 'all', '--max-waiting', '2', '--wait']);
    const key = 'cryptodl:queue:main:prioritized';
    while ((await runs.redis.client.zcard(key)) < 2) await sleep(10);
    const waitedFor = await runs.redis.client.keys('*:cryptodl:wait:*');
    const lives = await Promise.all(waitedFor.map((each) => runs.redis.client.ttl(each)));
    expect(lives).toEqual([expect.toSatisfy((seconds: number) => seconds > 3600)]);
    const worker = runs.work([]);
    let most = 0;
    while ((await Promise.race([enqueue, sleep(5)])) === undefined)
      most = Math.max(most, await runs.redis.client.zcard(key));
    const { code, stderr } = await enqueue;
    expect([code, stderr]).toEqual([0, expect.stringContaining('2 jobs wait in the queue: adding more')]);
    expect(most).toBe(2);
    await runs.emptied();
    worker.process.kill('SIGTERM');
    await worker.ended;
    expect(zips().length).toBe(72);
  });

  it('counts a job for each command that waits, whichever command added it', async () => {
    const wait = (): Promise<CliResult> => runs.enqueue([...YEAR, 'S0USDT,S1USDT', '--wait', '--json']);
    const first = wait();
    while ((await runs.status())['waiting'] !== 2) await sleep(20);
    const second = wait();
    // The two jobs of both commands, and a name of their own each.
    const waitedFor = async (): Promise<number> => {
      const { client } = runs.redis;
      const sizes = (await client.keys('*:cryptodl:wait:*')).map((key) => client.scard(key));
      return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    };
    while ((await waitedFor()) !== 6) await sleep(20);
    expect((await runs.work(['--drain']).ended).code).toBe(0);
    const summary = { jobs: { all: 2, done: 2, failed: 0, open: 0 }, outcomes: { ok: 24, skipped: 0 } };
    for (const { code, events } of await Promise.all([first, second]))
      expect([code, events.at(-1)]).toMatchObject([0, summary]);
  });
});
