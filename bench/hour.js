/**
 * `node bench/hour.js` (after a build; `--minutes 60 --symbols 2500 --folder FOLDER`): one run of `cryptodl vision` at the default settings against an archive
 * in a process of its own. Each minute: the requests that the archive answered, CPU time and memory of the run. It ends with
 * requests per hour and per day, and with the growth of memory.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { BIN } from './contenders.js';
import { daysFrom, serveEndless } from './endless.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    symbols: { type: 'string', default: '2500' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const minutes = Number(values.minutes);
const FIRST_DAY = '2020-10-01';
const DAYS = 2222;
/** Small objects: an hour of them fits on a disk. */
const INTERVAL = '1h';
/** Of Linux: CPU time in /proc counts in these. */
const TICKS_PER_SECOND = 100;

const archive = await serveEndless({
  symbols: Number(values.symbols),
  interval: INTERVAL,
  periods: daysFrom(FIRST_DAY, DAYS),
});
const folder = mkdtempSync(join(values.folder, 'cryptodl-hour-'));
const words = `vision --interval ${INTERVAL} --symbols all --progress none --now 2026-11-01T12:00:00Z --from ${FIRST_DAY} --to 2026-10-31`;
const child = spawn(
  process.execPath,
  [BIN, ...words.split(' '), '--archive-url', archive.url, '--listing-url', archive.url, '--out', folder],
  { stdio: ['ignore', 'ignore', 'pipe'] },
);
let stderr = '';
child.stderr.setEncoding('utf8').on('data', (text) => (stderr = (stderr + text).slice(-5000)));
const ended = new Promise((resolve) => child.once('close', resolve));
const stop = () => {
  child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
};
process.on('exit', stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

console.log('minute  zips  sidecars  listings  requests/s  CPU s  RSS MB');
/** @type {number[]} memory by minute, MB */
const memory = [];
let before = 0;
let total = 0;
for (let minute = 1; minute <= minutes && child.exitCode === null; minute += 1) {
  await Promise.race([sleep(60_000), ended]);
  if (child.exitCode !== null) break;
  const { zips, sidecars, listings } = await archive.counts();
  total = zips + sidecars + listings;
  const { cpuSeconds, rssMb } = usage(child.pid ?? 0);
  memory.push(rssMb);
  console.log(
    [minute, zips, sidecars, listings, Math.round((total - before) / 60), Math.round(cpuSeconds), rssMb].join(
      '  ',
    ),
  );
  before = total;
}
const isEarly = child.exitCode !== null;
child.kill('SIGTERM');
await ended;
console.log(stderr.trimEnd());
if (isEarly) throw new Error('the run ended before the time: use more --symbols');
const hourly = (total / minutes) * 60;
console.log(
  `${round(hourly)} requests in an hour, ${round(hourly * 24)} in a day; largest memory of the first ten minutes ` +
    `${Math.max(...memory.slice(0, 10))} MB, of the last ten ${Math.max(...memory.slice(-10))} MB`,
);
archive.close();

/** @param {number} pid */
function usage(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [, rss = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
    rssMb: Math.round(Number(rss) / 1024),
  };
}

/** @param {number} count */
function round(count) {
  return Math.round(count).toLocaleString('en');
}
