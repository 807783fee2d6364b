/**
 * `node bench/workers.js` (after a build; `--rounds 2 --workers 1,2,3,4 --series 60 --concurrency 8 --limit 200 --lake-ms 100`): objects per second of workers
 * on one queue. The archive answers a request after 400 ms (median), the S3 server after 100 ms; both, and redis-server, are processes of
 * their own. The concurrency of a worker is fixed and low, so that the waits are the bound and not the cores of this machine.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BIN } from './contenders.js';
import { monthsFrom, serveEndless } from './endless.js';
import { startRedis, startS3 } from './queue-servers.js';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '2' },
    workers: { type: 'string', default: '1,2,3,4' },
    series: { type: 'string', default: '60' },
    concurrency: { type: 'string', default: '8' },
    limit: { type: 'string' },
    'lake-ms': { type: 'string', default: '100' },
    'archive-ms': { type: 'string', default: '400' },
  },
});
const counts = values.workers.split(',').map(Number);
const series = Number(values.series);
const FIRST_YEAR = 2024;
/** Two jobs per series: a year each. */
const MONTHS = 24;

const folder = mkdtempSync(join(tmpdir(), 'cryptodl-workers-'));
const redis = await startRedis(folder);
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

/** @typedef {{ objects: number, perSecond: number, requestsPerSecond: number, refused: number, cpuSeconds: number }} Measured */

/** @type {Map<number, Measured[]>} */
const found = new Map(counts.map((count) => [count, []]));
console.log(`--concurrency ${values.concurrency}, ${series * MONTHS} objects in ${series * 2} jobs`);
console.log('workers  objects/s  requests/s  refused (429)  CPU s of the workers');
for (let round = 0; round < Number(values.rounds); round += 1)
  for (const count of counts) {
    const measured = await runRound(count, `lake-${round}-${count}`);
    found.get(count)?.push(measured);
    const { perSecond, requestsPerSecond, refused, cpuSeconds } = measured;
    console.log(
      [count, perSecond.toFixed(1), requestsPerSecond.toFixed(0), refused, cpuSeconds.toFixed(1)].join('  '),
    );
  }
for (const [count, rounds] of found) {
  const ratios = rounds.map(
    ({ perSecond }, at) => perSecond / (found.get(counts[0] ?? 1)?.[at]?.perSecond ?? 1),
  );
  console.log(
    `${count} workers: ${median(rounds.map(({ perSecond }) => perSecond)).toFixed(1)} objects/s, ` +
      `${median(ratios).toFixed(2)} times ${counts[0]} (${ratios.map((ratio) => ratio.toFixed(2)).join(', ')})`,
  );
}
redis.close();

/**
 * From the first request of a zip to the last answer of the archive: without the start of the processes, and with the end of the queue.
 * @param {number} count
 * @param {string} lake
 * @returns {Promise<Measured>}
 */
async function runRound(count, lake) {
  const s3 = await startS3(Number(values['lake-ms']), folder);
  const archive = await serveEndless({
    symbols: series,
    interval: '1h',
    periods: monthsFrom(FIRST_YEAR, MONTHS),
    medianMs: Number(values['archive-ms']),
    ...(values.limit === undefined ? {} : { limit: Number(values.limit) }),
  });
  const words = [
    '--redis',
    redis.address,
    '--queue',
    lake,
    '--out',
    `s3://lake/${lake}`,
    '--now',
    `${FIRST_YEAR + MONTHS / 12}-06-01T12:00:00Z`,
    '--archive-url',
    archive.url,
    '--listing-url',
    archive.url,
  ];
  const range = ['--from', `${FIRST_YEAR}-01`, '--to', `${FIRST_YEAR + MONTHS / 12 - 1}-12`];
  await cryptodl(s3.environment, [
    'enqueue',
    'vision',
    '--symbols',
    'all',
    '--interval',
    '1h',
    ...range,
    ...words,
  ]);
  const worker = ['worker', '--drain', '--json', '--concurrency', values.concurrency, ...words];
  const ends = await Promise.all(Array.from({ length: count }, () => cryptodl(s3.environment, worker)));
  const { zips, sidecars, refused, first, last } = await archive.counts();
  s3.close();
  archive.close();
  const objects = ends.reduce((sum, { summary }) => sum + summary.written, 0);
  const failed = ends.reduce((sum, { summary }) => sum + summary.failed, 0);
  if (failed > 0 || objects !== series * MONTHS)
    throw new Error(
      `${objects} of ${series * MONTHS} objects written, ${failed} jobs failed: ${JSON.stringify(failures(lake))}`,
    );
  const seconds = (last - first) / 1000;
  return {
    objects,
    perSecond: objects / seconds,
    requestsPerSecond: (zips + sidecars) / seconds,
    refused,
    cpuSeconds: ends.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
  };
}

/** @param {string} queue */
function failures(queue) {
  const { stdout } = spawnSync(process.execPath, [
    BIN,
    'status',
    '--json',
    '--redis',
    redis.address,
    '--queue',
    queue,
  ]);
  return JSON.parse(String(stdout)).failedBy;
}

/**
 * @param {NodeJS.ProcessEnv} environment
 * @param {readonly string[]} words
 * @returns {Promise<{ summary: { written: number, failed: number }, cpuSeconds: number }>}
 */
async function cryptodl(environment, words) {
  const times = 'node=$1; shift; "$node" "$@"; code=$?; times >&2; exit $code';
  const child = spawn('bash', ['-c', times, 'bash', process.execPath, BIN, ...words], {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout = (stdout + text).slice(-10_000)));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr = (stderr + text).slice(-10_000)));
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`cryptodl ${words[0]} ended with ${code}: ${stderr}`);
  // The second line of `times` has the user and system time of the children, as 0m1.23s.
  const cpu = [...(stderr.trimEnd().split('\n').at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g)];
  return {
    summary:
      stdout === '' ? { written: 0, failed: 0 } : JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? ''),
    cpuSeconds: cpu.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0),
  };
}

/** @param {readonly number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
