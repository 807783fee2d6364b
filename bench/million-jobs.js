/**
 * `node bench/million-jobs.js` (after a build, on Linux; `--jobs 100000,1000000`): `cryptodl enqueue` of so many jobs into a real redis-server, all at once, and with the
 * usual back-pressure while workers take them. Prints time, CPU time and the largest memory of the process, and the memory of Redis.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { BIN } from './contenders.js';
import { monthsFrom, serveEndless } from './endless.js';
import { startRedis } from './queue-servers.js';

const { values } = parseArgs({ options: { jobs: { type: 'string', default: '100000,1000000' } } });
/** Of trades, a job is a month of a symbol. */
const FIRST_YEAR = 2020;
const MONTHS = 80;
const LAST = monthsFrom(FIRST_YEAR, MONTHS).at(-1) ?? '';
const QUEUE = 'cryptodl:queue:main:';
const TAKEN_AT_ONCE = 10_000;
/** Of Linux: CPU time in /proc counts in these. */
const TICKS_PER_SECOND = 100;

const folder = mkdtempSync(join(tmpdir(), 'cryptodl-jobs-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

console.log('jobs       back-pressure  s      CPU s  jobs/s  peak MB  Redis MB  Redis bytes/job');
for (const jobs of values.jobs.split(',').map(Number))
  for (const isAtOnce of [true, false]) await measure(jobs, isAtOnce);

/**
 * @param {number} jobs
 * @param {boolean} isAtOnce
 */
async function measure(jobs, isAtOnce) {
  const redis = await startRedis(mkdtempSync(join(folder, 'redis-')));
  const archive = await serveEndless({ symbols: jobs / MONTHS, periods: monthsFrom(FIRST_YEAR, MONTHS) });
  const before = await usedMemory(redis.client);
  const range = ['--from', `${FIRST_YEAR}-01`, '--to', LAST, '--now', '2026-11-01T12:00:00Z'];
  const what = ['--dataset', 'trades', '--symbols', 'all', ...range];
  const places = ['--redis', redis.address, '--out', 's3://lake/data', '--listing-url', archive.url];
  const bound = isAtOnce ? ['--max-waiting', String(jobs)] : [];
  const started = process.hrtime.bigint();
  const child = spawn(process.execPath, [BIN, 'enqueue', 'vision', ...what, ...places, ...bound], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr = (stderr + text).slice(-5000)));
  let used = { cpuSeconds: 0, peakMb: 0 };
  let taken = 0;
  const ended = new Promise((resolve) => child.once('close', resolve));
  while (child.exitCode === null) {
    used = usage(child.pid ?? 0) ?? used;
    if (!isAtOnce) taken += await take(redis.client);
    await Promise.race([sleep(50), ended]);
  }
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  const waiting = await redis.client.zcard(`${QUEUE}prioritized`);
  if (child.exitCode !== 0 || waiting + taken !== jobs)
    throw new Error(`${waiting} jobs wait and ${taken} were taken of ${jobs}: ${stderr}`);
  const bytes = (await usedMemory(redis.client)) - before;
  console.log(
    [
      jobs.toLocaleString('en').padEnd(10),
      (isAtOnce ? 'none' : '100,000').padEnd(14),
      seconds.toFixed(1).padEnd(6),
      used.cpuSeconds.toFixed(1).padEnd(6),
      Math.round(jobs / seconds)
        .toLocaleString('en')
        .padEnd(7),
      used.peakMb.toFixed(0).padEnd(8),
      (bytes / 1e6).toFixed(0).padEnd(9),
      (bytes / waiting).toFixed(0),
    ].join(' '),
  );
  redis.close();
  archive.close();
}

/**
 * Removes the first jobs from the full queue, as fast workers would.
 * @param {import('ioredis').Redis} client
 */
async function take(client) {
  if ((await client.zcard(`${QUEUE}prioritized`)) < 99_000) return 0;
  const removed = await client.zpopmin(`${QUEUE}prioritized`, TAKEN_AT_ONCE);
  const ids = removed.filter((_, at) => at % 2 === 0);
  await client.unlink(ids.map((id) => QUEUE + id));
  return ids.length;
}

/** @param {import('ioredis').Redis} client */
async function usedMemory(client) {
  const [, bytes = '0'] = /^used_memory:(\d+)/m.exec(await client.info('memory')) ?? [];
  return Number(bytes);
}

/** @param {number} pid */
function usage(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [, peak] = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    if (peak === undefined) return undefined;
    return {
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
      peakMb: Number(peak) / 1024,
    };
  } catch {
    return undefined;
  }
}
