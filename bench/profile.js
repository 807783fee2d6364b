/**
 * `profile.js --only W1,W2 --of a,q`: runs contenders of a workload (`a` is cryptodl) once each under perf and prints their CPU time by thread and by kind of
 * work. Needs perf and the permission to use it; Node writes the names of its functions for perf. perf itself takes time: compare shares, not sums.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeArchive } from '../scripts/synthetic-archive.js';
import { serve } from './servers.js';
import { createWorkloads } from './workloads.js';

/** @import { Workload } from './workloads.js' */

const PER_SECOND = 999;
/** The kinds of work. The first frame that matches, from the innermost outwards, decides the kind of a sample, by function and library. */
const ABOUT = /** @type {const} */ ([
  ['DuckDB', /libduckdb|duckdb\.node/],
  ['zlib', /inflate|deflate|crc32_z|compress2/],
  ['hashes', /sha256_|sha512_|md5_block|EVP_Digest/],
  [
    'compiling',
    /v8::internal::(?:compiler|baseline|maglev|parsing|interpreter::BytecodeGen)|OptimizedCompilationJob|Builtins_CompileLazy/,
  ],
  ['collecting', /Scaveng|MarkCompact|ConcurrentMarking|Sweeper|Evacuat|CollectGarbage/],
  ['undici', /\/undici\/|wasm-function|wasm-to-js/],
  ['other packages', /\/node_modules\//],
  ["the program's own", /cryptodl-bundle|\/dist\/|\/bench\//],
  ["Node's own", /node:/],
]);
const REST = 'system and rest';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'W1' },
    of: { type: 'string', default: 'a' },
    share: { type: 'string', default: '1' },
  },
});
if (spawnSync('perf', ['--version']).error !== undefined)
  throw new Error('perf is absent: apt install linux-perf');
const base = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'cryptodl-profile-'));
process.on('exit', () => rmSync(base, { recursive: true, force: true, maxRetries: 5 }));
for (const workload of createWorkloads(Number(values.share)))
  if (values.only.split(',').includes(workload.id)) await profileAll(workload);
process.exit();

/** @param {Workload} workload */
async function profileAll(workload) {
  const archive = join(base, 'archive');
  rmSync(archive, { recursive: true, force: true });
  const { keys } = makeArchive(archive, workload.archive);
  const server = await serve(workload.server, archive, base);
  const { url, listingUrl } = server;
  const all = workload.contenders({ url, listingUrl, archive, keys, files: join(base, 'list') });
  const out = join(base, 'out');
  for (const contender of all.filter(({ id }) => values.of.split(',').includes(id))) {
    for (const folder of [out, join(base, 'state')]) emptied(folder);
    if (workload.before !== undefined) run(contender.command, out);
    const data = join(base, 'perf.data');
    const { status } = run(
      ['perf', 'record', '-q', '-F', String(PER_SECOND), '-g', '-o', data, '--', ...contender.command],
      out,
      { NODE_OPTIONS: '--perf-basic-prof --interpreted-frames-native-stack' },
    );
    console.log(`\n${workload.id} (${contender.id}) ${contender.name}: ended with ${status}`);
    const samples = samplesOf(data);
    console.log(table(samples));
    // Node writes the names of its functions here.
    for (const { pid } of samples) rmSync(`/tmp/perf-${pid}.map`, { force: true });
  }
  server.close();
}

/** @param {string} folder */
function emptied(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

/**
 * @param {readonly string[]} command
 * @param {string} cwd
 * @param {NodeJS.ProcessEnv} [more] of the environment
 */
function run([program = '', ...args], cwd, more = {}) {
  const env = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    LC_ALL: 'C',
    XDG_STATE_HOME: join(base, 'state'),
    ...more,
  };
  return spawnSync(program, args, { cwd, env, stdio: ['ignore', 'ignore', 'ignore'] });
}

/**
 * @typedef {object} Sample
 * @property {string} pid
 * @property {string} tid
 * @property {readonly string[]} frames innermost first, `function (library)`
 */

/**
 * @param {string} data
 * @returns {Sample[]}
 */
function samplesOf(data) {
  const { stdout } = spawnSync('perf', ['script', '-i', data, '-F', 'pid,tid,ip,sym,dso'], {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
  });
  return stdout.split('\n\n').flatMap((block) => {
    const [head = '', ...lines] = block.trim().split('\n');
    const [, pid, tid] = /^(\d+)[/ ]+(\d+)$/.exec(head.trim()) ?? [];
    return pid === undefined || tid === undefined
      ? []
      : [{ pid, tid, frames: lines.map((line) => line.trim().replace(/^[0-9a-f]+ /, '')) }];
  });
}

/** @param {readonly Sample[]} samples */
function table(samples) {
  const threadOf = threadsOf(samples);
  const kinds = [...ABOUT.map(([name]) => name), REST];
  /** @type {Map<string, Map<string, number>>} */
  const byThread = new Map();
  for (const { pid, tid, frames } of samples) {
    const thread = threadOf.get(`${pid}/${tid}`) ?? '';
    const counts = byThread.get(thread) ?? new Map();
    const kind = aboutOf(frames);
    counts.set(kind, (counts.get(kind) ?? 0) + 1000 / PER_SECOND);
    byThread.set(thread, counts);
  }
  const rows = [...byThread].map(([thread, counts]) => [
    thread,
    sum(counts.values()),
    ...kinds.map((kind) => counts.get(kind) ?? 0),
  ]);
  const total = [
    'all',
    ...[1, ...kinds.map((_, at) => at + 2)].map((at) => sum(rows.map((row) => Number(row[at])))),
  ];
  const cells = [['CPU ms', 'all', ...kinds], ...rows, total].map((row) =>
    row.map((cell) => (typeof cell === 'number' ? Math.round(cell).toLocaleString('en-US') : cell)),
  );
  const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => String(row[at]).length)));
  return cells
    .map((row) =>
      row
        .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
        .join('  '),
    )
    .join('\n');
}

/** @param {Iterable<number>} numbers */
function sum(numbers) {
  return [...numbers].reduce((a, b) => a + b, 0);
}

/** @param {readonly string[]} frames */
function aboutOf(frames) {
  for (const frame of frames) for (const [name, pattern] of ABOUT) if (pattern.test(frame)) return name;
  return REST;
}

/**
 * The first thread of a process has its number; V8's come from Node's platform, the others are libuv's pool or threads of the program.
 * @param {readonly Sample[]} samples
 * @returns {Map<string, string>}
 */
function threadsOf(samples) {
  /** @type {Map<string, string>} */
  const threads = new Map();
  for (const { pid, tid, frames } of samples) {
    const id = `${pid}/${tid}`;
    if (pid === tid) threads.set(id, 'event loop');
    else if (frames.some((frame) => frame.includes('PlatformWorkerThread'))) threads.set(id, "V8's threads");
    else if (!threads.has(id)) threads.set(id, 'pool and others');
  }
  return threads;
}
