/**
 * `node bench/queue.js [--tasks 10000,1000000] [--full] [--rounds N]`, after a build: plans and runs tasks, compared with
 * as many empty ones in p-queue, in turns. `--full` adds 10,000,000. bench/README.md explains the output.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeHeldSeries } from './queue-tasks.js';

/**
 * @typedef {object} Used
 * @property {number} cpuSeconds
 * @property {number} wallSeconds
 * @property {number} peakMb
 * @property {number} [planCpuSeconds]
 * @property {Record<string, number>} outcomes
 */

const MEASURED = fileURLToPath(new URL('queue-tasks.js', import.meta.url));
const MOST_MB = 250;
const MOST_RATIO = 6;
const MOST_GROWTH = 1.2;

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '10000,1000000' },
    full: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
  },
});
const sizes = [...values.tasks.split(',').map(Number), ...(values.full ? [10_000_000] : [])];
const rounds = Number(values.rounds);
if (![...sizes, rounds].every((number) => Number.isInteger(number) && number > 0))
  throw new RangeError('--tasks and --rounds take whole numbers of 1 or more');

const lake = mkdtempSync(join(tmpdir(), 'cryptodl-bench-'));
process.on('exit', () => rmSync(lake, { recursive: true, force: true }));
const load = loadavg().map((each) => each.toFixed(1));
console.log(`node ${process.version}, load before ${load.join(' ')}, medians of ${rounds} rounds in turns`);
console.log(line(['tasks', 'what', 'CPU s', 'of it plan', 'wall s', 'peak MB', 'CPU us/task', '/ loop']));
/** @type {Map<number, number>} */
const peaks = new Map();
for (const tasks of sizes) measureSize(tasks);
const [million, most] = [peaks.get(1_000_000), peaks.get(10_000_000)];
if (million !== undefined && most !== undefined)
  console.log(
    `peak of 10,000,000 / 1,000,000 tasks: ${(most / million).toFixed(2)} (at most ${MOST_GROWTH})`,
  );
console.log(`at most: peak ${MOST_MB} MB, CPU per task ${MOST_RATIO} x the loop`);

/** @param {number} tasks */
function measureSize(tasks) {
  rmSync(lake, { recursive: true, force: true });
  const held = makeHeldSeries(lake, tasks);
  /** @type {Used[]} */
  const loops = [];
  /** @type {Used[]} */
  const ours = [];
  for (let round = 0; round < rounds; round += 1) {
    loops.push(run('loop', tasks));
    const used = run('tasks', tasks, lake);
    const { ok, skipped } = used.outcomes;
    if (ok !== tasks - held || skipped !== held)
      throw new Error(`of ${tasks} tasks, ${held} held: ${JSON.stringify(used.outcomes)}`);
    ours.push(used);
  }
  const base = median(loops.map(({ cpuSeconds }) => cpuSeconds));
  for (const [name, all] of /** @type {const} */ ([
    ['p-queue, empty', loops],
    ['cryptodl', ours],
  ])) {
    const cpu = median(all.map(({ cpuSeconds }) => cpuSeconds));
    const plan = median(all.map(({ planCpuSeconds }) => planCpuSeconds ?? Number.NaN));
    const peak = Math.max(...all.map(({ peakMb }) => peakMb));
    if (all === ours) peaks.set(tasks, peak);
    const wall = median(all.map(({ wallSeconds }) => wallSeconds));
    const perTask = ((cpu / tasks) * 1e6).toFixed(2);
    const shown = [cpu.toFixed(2), Number.isNaN(plan) ? '-' : plan.toFixed(2), wall.toFixed(2)];
    console.log(
      line([tasks.toLocaleString('en'), name, ...shown, peak.toFixed(0), perTask, (cpu / base).toFixed(1)]),
    );
  }
}

/**
 * @param {string} what
 * @param {number} tasks
 * @param {string[]} more
 * @returns {Used}
 */
function run(what, tasks, ...more) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MEASURED, what, String(tasks), ...more], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`ended with ${status}: ${stderr.slice(-2000)}`);
  return /** @type {Used} */ (JSON.parse(stdout));
}

/** @param {readonly string[]} cells */
function line(cells) {
  return cells.map((cell, at) => (at === 1 ? cell.padEnd(15) : cell.padStart(at === 0 ? 10 : 11))).join(' ');
}

/** @param {readonly number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
