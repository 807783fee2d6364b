/** `enqueue --every`: schedules over a real redis-server, with workers as processes and a lake in a bucket. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cryptodlProcess } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { dataOf, QueueRuns } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const SYMBOLS = ['BTCUSDT', 'ETHUSDT', 'SOLUSDT'];
const scene = useScene({
  now: '2026-11-19T12:00:00Z',
  archive: [{ symbols: SYMBOLS, from: '2026-11-10', to: '2026-11-20' }],
});
const WHAT = ['--interval', '1h', '--symbols', 'all', '--days', '3', '--partition', 'day'];
/** The next of these times comes in no test. */
const YEARLY = ['--every', '0 0 29 2 *'];
const EVERY_SECOND = ['--every', '* * * * * *'];
const DRAIN = ['--drain', '--jobs', '1'];

describe.skipIf(!HAS_REDIS)(`schedules of a queue${NEEDS_REDIS}`, { timeout: 120_000 }, () => {
  let runs: QueueRuns;
  let queue: Queue;
  const zips = (): number => scene.archive.requests.filter((path) => isZip(path)).length;
  const schedule = async (...words: string[]): Promise<CliResult> => {
    // The machines of a queue may have any time zone: patterns are in UTC.
    const env = { ...runs.lake.environment, TZ: 'Asia/Kolkata' };
    const line = ['enqueue', 'vision', ...runs.flags(), ...WHAT, '--json', ...words];
    const end = await cryptodlProcess(line, { env });
    expect([end.code, end.stderr]).toEqual([0, expect.any(String)]);
    return end;
  };
  const scheduled = async (): Promise<readonly Record<string, unknown>[]> =>
    (await runs.status())['schedules'] as Record<string, unknown>[];
  /** The job that waits for its time. */
  const nextJob = async () => {
    const [job, ...others] = await queue.getDelayed();
    if (job === undefined || others.length > 0) throw new Error(`${others.length} jobs more than one`);
    return job;
  };
  const daysOfLake = (): Set<string | undefined> =>
    new Set(Object.keys(dataOf(runs.lake.content())).map((path) => /2026-11-\d\d/.exec(path)?.[0]));
  const until = async (isSo: () => Promise<boolean>): Promise<void> => {
    while (!(await isSo())) await sleep(50);
  };

  beforeEach(async () => {
    runs = await QueueRuns.open(scene);
    queue = new Queue('main', { connection: { url: runs.redis.address }, prefix: 'cryptodl:queue' });
  });
  afterEach(async () => {
    await queue.close();
    await runs.close();
  });

  it('adds the jobs at each time, and requests nothing twice', async () => {
    const { lake } = await scene.vision(WHAT);
    const localZips = zips();
    scene.reset();
    await schedule(...EVERY_SECOND);
    const worker = runs.work([]);
    const [{ id } = { id: '' }] = await scheduled();
    await until(
      async () => Number(await runs.redis.client.hget(`cryptodl:queue:main:repeat:${String(id)}`, 'ic')) > 4,
    );
    await schedule('--every', 'never');
    await until(async () => {
      const { waiting, active, delayed } = await runs.status();
      return waiting === 0 && active === 0 && delayed === 0;
    });
    worker.process.kill('SIGTERM');
    const { stderr } = await worker.ended;
    expect(stderr).toContain(' 0 failed');
    expect(dataOf(runs.lake.content())).toEqual(dataOf(lake));
    expect(zips()).toBe(localZips);
    expect(await scheduled()).toEqual([]);
  });

  it('is changed by another pattern, ended by never, and not by the same command', async () => {
    const first = (await schedule(...YEARLY)).events;
    expect(first).toMatchObject([{ event: 'scheduled', every: '0 0 29 2 *', isChanged: true, jobs: 3 }]);
    const { id } = await nextJob();
    expect((await schedule(...YEARLY)).events).toMatchObject([{ isChanged: false }]);
    expect((await nextJob()).id).toBe(id);
    expect((await schedule('--every', '0 0 28 2 *')).events).toMatchObject([{ isChanged: true }]);
    const lines = await scheduled();
    expect(lines).toMatchObject([
      { every: '0 0 28 2 *', command: expect.stringMatching(/^vision .*--symbols '\*'.*--days 3/) },
    ]);
    expect(lines[0]?.['next']).toMatch(/-02-28T00:00:00.000Z$/);
    // A job that waits for the time of a schedule is no job to wait for.
    expect(await runs.status()).toMatchObject({ delayed: 0, waiting: 0 });
    expect((await runs.work(DRAIN).ended).code).toBe(0);
    // A job whose time has come is removed with its schedule.
    await (await nextJob()).promote();
    expect((await schedule('--every', 'never')).events).toMatchObject([{ isRemoved: true }]);
    expect((await schedule('--every', 'never')).events).toMatchObject([{ isRemoved: false }]);
    expect([await scheduled(), await queue.getDelayedCount(), await queue.getWaitingCount()]).toEqual([
      [],
      0,
      0,
    ]);
  });

  it('runs once for all times that no worker has seen, with the days of the worker', async () => {
    await schedule(...EVERY_SECOND);
    const { timestamp, delay } = await nextJob();
    await until(() => Promise.resolve(Date.now() > timestamp + delay + 2000));
    expect(await queue.getDelayedCount()).toBe(1);
    // From now on there is no further time.
    await schedule('--every', 'never');
    await schedule(...YEARLY);
    await (await nextJob()).promote();
    // The same command leaves a job whose time has come.
    expect((await schedule(...YEARLY)).events).toMatchObject([{ isChanged: false }]);
    expect(await queue.getWaitingCount()).toBe(1);
    const later = await runs.work([...DRAIN, '--now', '2026-11-21T12:00:00Z']).ended;
    expect(later.stderr).toContain('4 jobs done, 0 failed, 9 objects written');
    expect(daysOfLake()).toEqual(new Set(['2026-11-18', '2026-11-19', '2026-11-20']));
    expect(await queue.getDelayedCount()).toBe(1);
  });

  it('leaves the worker while the queue is full, and goes on after its last job', async () => {
    await schedule(...YEARLY, '--max-waiting', '1');
    const next = await nextJob();
    await next.promote();
    const lasts: unknown[] = [];
    // The later worker has another day: the plan goes on with the days of its beginning.
    for (const now of [scene.now, '2026-11-21T12:00:00Z']) {
      const worker = runs.work(['--jobs', '1', '--now', now]);
      let last: unknown;
      await until(async () => {
        const job = await queue.getJob(next.id ?? '');
        const { active = 0, prioritized = 0 } = await queue.getJobCounts('active', 'prioritized');
        if (job === undefined || !(await job.isDelayed()) || active + prioritized > 0) return false;
        ({ last } = job.progress as { readonly last?: unknown });
        return last !== undefined && !lasts.includes(last);
      });
      lasts.push(last);
      worker.process.kill('SIGTERM');
      expect((await worker.ended).stderr).toContain('1 job done, 0 failed, 3 objects written');
      await (await queue.getJob(next.id ?? ''))?.promote();
    }
    const end = await runs.work([...DRAIN, '--now', '2026-11-21T12:00:00Z']).ended;
    expect(end.stderr).toContain('2 jobs done, 0 failed, 3 objects written');
    expect(daysOfLake()).toEqual(new Set(['2026-11-16', '2026-11-17', '2026-11-18']));
  });

  it('is done by workers that fetch, and not by those that convert', async () => {
    await schedule(...YEARLY);
    await (await nextJob()).promote();
    expect((await runs.work(['--role', 'fetch', ...DRAIN]).ended).code).toBe(0);
    expect(await runs.status()).toMatchObject({ waiting: 0, failed: 0, converting: { waiting: 3 } });
    const converting = new Queue('main~convert', {
      connection: { url: runs.redis.address },
      prefix: 'cryptodl:queue',
    });
    await converting.add('vision', (await nextJob()).data, { jobId: 'plan', priority: 1 });
    await converting.close();
    // The job of the schedule fails there.
    expect((await runs.work(['--role', 'convert', ...DRAIN]).ended).code).toBe(4);
    expect(Object.keys(dataOf(runs.lake.content())).length).toBe(9);
    expect(await runs.status()).toMatchObject({ waiting: 0, failed: 1, failedBy: { usage: 1 } });
  });

  it('fails once with one line for data of another program, and is left by an earlier version', async () => {
    await schedule(...YEARLY);
    const { data } = await nextJob();
    const options = { ...data.options, symbols: ['@/etc/passwd'] };
    await queue.add('vision', { ...data, options }, { jobId: 'file' });
    await queue.add('vision', { ...data, options: { ...data.options, days: ['many'] } }, { jobId: 'days' });
    await queue.add('vision', { ...data, v: 3 }, { jobId: 'later' });
    const worker = runs.work([]);
    await until(async () => (await queue.getFailedCount()) === 2 && (await queue.getDelayedCount()) === 2);
    worker.process.kill('SIGTERM');
    const { stderr } = await worker.ended;
    expect(stderr).toContain('failed  file: usage: the symbols of the job are not names or patterns');
    expect(stderr).toContain('failed  days: usage: --days of the schedule: "many" is not');
    expect(stderr).toContain('a later version of cryptodl made some jobs');
    expect(await runs.status()).toMatchObject({ failedBy: { usage: 2 }, delayed: 1 });
  });

  it('are refused with one line if another program has made them, and keep no worker', async () => {
    const { client } = runs.redis;
    await client.hset('cryptodl:queue:main:repeat:other', {
      name: 'x',
      pattern: '* * *',
      data: 'no JSON',
      ic: 1,
    });
    await client.zadd('cryptodl:queue:main:repeat', Date.now() + 3_600_000, 'other');
    expect((await runs.work(DRAIN).ended).code).toBe(0);
    const { code, stderr } = await cryptodlProcess(['status', '--redis', runs.redis.address]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('cryptodl: the queue main has a schedule of another program\n  choose a queue'),
    ]);
    await client.hset('cryptodl:queue:main:repeat:other', { data: '{"v":2}', pattern: '\u001B[31m' });
    const { stdout } = await cryptodlProcess(['status', '--redis', runs.redis.address]);
    expect(stdout).toContain('other, not made by this version of cryptodl');
    expect(stdout).not.toContain('\u001B');
  });
});
