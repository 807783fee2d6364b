/** What the commands of a queue say and return, over a real redis-server. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { cryptodlProcess } from '../helpers/cli.js';
import { QueueRuns } from '../helpers/queue-runs.js';
import { HAS_REDIS, NEEDS_REDIS } from '../helpers/redis-server.js';
import { isZip, useScene } from '../helpers/scene.js';

const SYMBOLS = ['BTCUSDT', 'ETHUSDT', 'XRPUSDT'];
const scene = useScene({
  archive: [{ symbols: SYMBOLS, from: '2026-09-01', to: '2026-10-31', cadence: 'monthly', interval: '1h' }],
});
const WHAT = ['--interval', '1h', '--symbols', 'all', '--months', '2'];

describe.skipIf(!HAS_REDIS)(`the commands of a queue${NEEDS_REDIS}`, { timeout: 120_000 }, () => {
  let runs: QueueRuns;
  const redis = (): string[] => ['--redis', runs.redis.address];

  beforeEach(async () => {
    scene.reset();
    runs = await QueueRuns.open(scene);
  });
  afterEach(() => runs.close());

  /** One job fails for good, two are done. */
  const failOne = async (): Promise<void> => {
    scene.refuse((path) => isZip(path) && path.includes('ETHUSDT'), 403);
    await runs.enqueue(WHAT);
    const worker = await runs.work(['--drain']).ended;
    expect(worker.stderr).toContain('2 jobs done, 1 failed, 4 objects written');
    expect(worker.code).toBe(4);
    scene.reset();
  };

  it('enqueue says how many jobs an earlier command had added', async () => {
    const first = await runs.enqueue(WHAT);
    expect(first.stderr).toMatch(/^3 jobs for 3 series in the queue main at redis:\S+$/m);
    const second = await runs.enqueue(WHAT);
    expect(second.stderr).toMatch(/^3 jobs for 3 series in .*, 3 of them since an earlier command$/m);
    const { events } = await runs.enqueue([...WHAT, '--json']);
    expect(events).toContainEqual({ event: 'enqueued', queue: 'main', series: 3, jobs: 3, new: 0 });
  });

  it.each([2, 3])('a worker does its jobs when connection %i to the server is cut at once', async (cut) => {
    await runs.enqueue(WHAT);
    let connections = 0;
    const relay = createServer((socket) => {
      connections += 1;
      const server = connect(runs.redis.port, '127.0.0.1');
      const end = (): void => {
        socket.destroy();
        server.destroy();
      };
      for (const side of [socket, server]) side.on('error', end).on('close', end);
      if (connections === cut) socket.once('data', () => socket.resetAndDestroy());
      else socket.pipe(server).pipe(socket);
    });
    await once(relay.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void relay.close());
    const { port } = relay.address() as AddressInfo;
    const { ended } = runs.work(['--drain', '--lease', '5s', '--redis', `redis://127.0.0.1:${port}`]);
    expect((await ended).stderr).toContain('6 objects written');
    expect(connections).toBeGreaterThan(cut);
  });

  it('workers leave the order of a command in the lake, as a run does', async () => {
    const { lake } = await scene.vision(WHAT);
    const place = '.cryptodl/orders/';
    const [name = ''] = readdirSync(join(lake, place));
    const ofRun = JSON.parse(readFileSync(join(lake, place, name), 'utf8')) as object;
    await runs.enqueue(WHAT);
    await runs.enqueue(WHAT);
    expect((await runs.work(['--drain']).ended).code).toBe(0);
    const { objects } = runs.bucket;
    const keys = [...objects.keys()].filter((key) => key.includes(place));
    expect(keys).toEqual([`lake/${place}${name}`]);
    const ofJobs = JSON.parse(String(objects.get(keys[0] ?? '')?.bytes)) as object;
    expect(ofJobs).toEqual({ ...ofRun, at: expect.any(String) });
  });

  it('retry with --dry-run leaves the failed jobs where they are', async () => {
    await failOne();
    const dry = await cryptodlProcess(['retry', '-n', ...redis()]);
    expect(dry).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^1 failed job would go back into the queue main at /) as string,
    });
    const { events } = await cryptodlProcess(['retry', '-n', '--json', ...redis()]);
    expect(events).toEqual([{ event: 'planned', queue: 'main', jobs: 1 }]);
    expect(await runs.status()).toMatchObject({ failed: 1, waiting: 0 });
    await runs.retry();
    expect(await runs.status()).toMatchObject({ failed: 0, waiting: 1 });
  });

  it('a worker counts a job with a further attempt as put off, and ends with the code of its failed jobs', async () => {
    scene.refuse((path) => isZip(path) && path.includes('ETHUSDT'), 503);
    await runs.enqueue(WHAT);
    const { events, code } = await runs.work(['--drain', '--json']).ended;
    const jobs = events.filter(({ event, id }) => event === 'job' && String(id).includes('ETHUSDT'));
    expect(jobs.map(({ failure, isPutOff }) => [failure, isPutOff])).toEqual([
      ['http-server-error', true],
      ['http-server-error', true],
      ['http-server-error', false],
    ]);
    expect(events.at(-1)).toMatchObject({ event: 'summary', jobs: 2, failed: 1, exitCode: 3 });
    expect(code).toBe(3);
  });

  it('a job that retry puts back has all of its attempts again', async () => {
    scene.refuse((path) => isZip(path) && path.includes('ETHUSDT'), 503);
    await runs.enqueue(WHAT);
    await runs.work(['--drain']).ended;
    await runs.retry();
    const { events } = await runs.work(['--drain', '--json']).ended;
    const jobs = events.filter(({ event }) => event === 'job');
    expect(jobs.map(({ isPutOff }) => isPutOff)).toEqual([true, true, false]);
  });

  it('a worker with --drain ends when only jobs of another lake are left', async () => {
    await runs.enqueue(WHAT);
    const { stderr, code } = await runs.work(['--drain', '--out', 's3://lake/other']).ended;
    expect(stderr).toContain(
      'this worker leaves the job to others; to do it here: cryptodl worker --out s3://lake/lake\n',
    );
    expect(stderr).toContain('0 jobs done, 0 failed, 0 objects written');
    expect(code).toBe(0);
    expect(await runs.status()).toMatchObject({ delayed: 3 });
  });

  it('a worker without --out does the jobs of the other buckets when one refuses, and fails those after their attempts', async () => {
    expect((await runs.enqueue([...WHAT, '--out', 's3://typo/lake'])).code).toBe(0);
    await runs.enqueue(WHAT);
    const flags = runs.flags();
    flags.splice(flags.indexOf('--out'), 2);
    const { events, code } = await cryptodlProcess(['worker', ...flags, '--drain', '--json'], {
      env: runs.lake.environment,
    });
    const ends = events
      .filter(({ event }) => event === 'job')
      .map(({ failure, isPutOff }) => [failure, isPutOff]);
    const counts = [
      [null, false],
      ['lake-refused', true],
      ['lake-refused', false],
    ].map((end) => ends.filter((each) => String(each) === String(end)).length);
    expect([code, counts]).toEqual([4, [3, 6, 3]]);
    expect(await runs.status()).toMatchObject({ waiting: 0, failed: 3, failedBy: { 'lake-refused': 3 } });
  });

  it('enqueue --wait says that there is no worker, and after Ctrl-C how many jobs are left', async () => {
    let told = '';
    const waiting = await cryptodlProcess(['enqueue', 'vision', ...runs.flags(), ...WHAT, '--wait'], {
      env: runs.lake.environment,
      onSpawn: (child) => {
        child.stderr?.on('data', (text: Buffer) => {
          told += text.toString();
          if (told.includes('no worker takes jobs')) child.kill('SIGINT');
        });
      },
    });
    expect(waiting.stderr).toContain(
      'no worker takes jobs of this queue: start one with cryptodl worker --redis URL\n',
    );
    expect(waiting.stderr).toMatch(/^3 jobs not done in /m);
    expect(waiting.stderr).not.toContain('nothing to do');
    expect(waiting.code).toBe(130);
  });

  it('status counts the minutes since the last job', async () => {
    const client = new Redis(runs.redis.address);
    const metrics = 'cryptodl:queue:main:metrics:completed';
    // Five jobs three minutes ago, and seven in the minute before.
    await client.hset(metrics, { count: 12, prevCount: 7, prevTS: Date.now() - 180_000 });
    await client.lpush(`${metrics}:data`, 7);
    client.disconnect();
    expect(await runs.status()).toMatchObject({ lastMinute: 0 });
  });

  it('a server that takes connections and answers nothing ends a command with exit code 3', async () => {
    runs.redis.suspend();
    const { stderr, code } = await cryptodlProcess(['status', ...redis()]);
    runs.redis.resume();
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining(`Redis at ${runs.redis.address}: Socket timeout`),
    ]);
  });

  it('a database that the server does not have is refused', async () => {
    const { stderr, code } = await cryptodlProcess(['status', '--redis', `${runs.redis.address}/99`]);
    expect(stderr).toMatch(/^cryptodl: Redis at redis:\S+\/99: ERR DB index is out of range\n {2}check /);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(code).toBe(1);
  });
});
