/**
 * `npm run bench [-- --rounds N] [--only W1,W5] [--full] [--disk FOLDER] [--share 0.1]`: cryptodl and other tools, with the same synthetic
 * archives, the same servers and in the same run. bench/README.md explains the output.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeArchive } from '../scripts/synthetic-archive.js';
import { checkParquet, checkZips, sha256 } from './check.js';
import { chooseMeter, measure } from './measure.js';
import { resultsTable } from './results-table.js';
import { serve } from './servers.js';
import { judge, verdictText } from './targets.js';
import { createWorkloads } from './workloads.js';

/** @import { Contender } from './contenders.js' */
/** @import { Run } from './results-table.js' */
/** @import { Server } from './servers.js' */
/** @import { Workload } from './workloads.js' */

const RESULTS = fileURLToPath(new URL('results.json', import.meta.url));
const LOOP_DELAY = fileURLToPath(new URL('loop-delay.js', import.meta.url));
const MEMORY_FOLDER = '/dev/shm';
/** No settings of this machine: no CRYPTODL_ variables, no proxies, no state of earlier runs. */
const ENVIRONMENT = { PATH: process.env['PATH'], HOME: process.env['HOME'], LC_ALL: 'C' };
/** The target for the delay of the event loop, in ms. */
const MOST_DELAY_MS = 50;

const { rounds, only, full, disk, share, workloads } = asked();
const folders = {
  disk: scratchIn(disk),
  ram: existsSync(MEMORY_FOLDER) ? scratchIn(MEMORY_FOLDER) : undefined,
};
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
const base = folders.ram ?? folders.disk;
const reportFile = join(base, 'usage');
const meter = chooseMeter(reportFile);
const environment = describeMachine();
/** @type {object[]} */
const tables = [];

for (const [name, value] of Object.entries(environment)) console.log(`${name.padEnd(13)}${value}`);
for (const workload of workloads) {
  const isWanted = only === undefined ? workload.isLong === undefined || full : only.includes(workload.id);
  if (isWanted) await runWorkload(workload);
}
writeFileSync(
  RESULTS,
  `${JSON.stringify({ at: new Date().toISOString(), environment, rounds, share, tables }, null, 2)}\n`,
);
console.log(`\nwritten to ${RESULTS}`);
process.exit();

function asked() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      only: { type: 'string' },
      full: { type: 'boolean', default: false },
      disk: { type: 'string', default: tmpdir() },
      share: { type: 'string', default: '1' },
    },
  });
  const count = Number(values.rounds);
  if (!Number.isInteger(count) || count < 1)
    throw new RangeError(`--rounds takes a number of 1 or more, not ${values.rounds}`);
  const part = Number(values.share);
  if (!(part > 0 && part <= 1)) throw new RangeError(`--share takes a number up to 1, not ${values.share}`);
  const all = createWorkloads(part);
  const ids = all.map(({ id }) => id);
  const names = values.only?.split(',').map((name) => name.trim());
  const unknown = names?.find((name) => !ids.includes(name));
  if (unknown !== undefined) throw new RangeError(`--only takes ${ids.join(', ')}, not ${unknown}`);
  return { rounds: count, only: names, full: values.full, disk: values.disk, share: part, workloads: all };
}

/** @param {string} parent */
function scratchIn(parent) {
  const folder = mkdtempSync(join(parent, 'cryptodl-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

function describeMachine() {
  const [curl = ''] = (spawnSync('curl', ['--version'], { encoding: 'utf8' }).stdout ?? '').split(' (');
  return {
    node: process.version,
    cores: `${availableParallelism()}, ${cpus()[0]?.model.trim() ?? 'unknown'}`,
    disk: `${fileSystemOf(folders.disk)} (${disk})`,
    ram: folders.ram === undefined ? 'absent' : `${fileSystemOf(folders.ram)} (${MEMORY_FOLDER})`,
    curl: curl || 'absent',
    'load before': loadavg()
      .map((load) => load.toFixed(1))
      .join(' '),
    'CPU by': meter.name,
  };
}

/** @param {string} folder */
function fileSystemOf(folder) {
  return spawnSync('stat', ['-f', '-c', '%T', folder], { encoding: 'utf8' }).stdout?.trim() || 'unknown';
}

/** @param {Workload} workload */
async function runWorkload(workload) {
  const archive = join(base, 'archive');
  rmSync(archive, { recursive: true, force: true });
  const made = makeArchive(archive, workload.archive);
  const { market, dataset, interval, symbols, from, to } = workload.archive;
  const what = [market, dataset, interval].filter(Boolean).join(' ');
  console.log(
    `\n${workload.id}  ${what}, ${symbols.length} symbols, ${from} … ${to}: ${made.objects} zips, ${made.bytes} bytes, ${made.rows} rows`,
  );
  const server = await serve(workload.server, archive, base);
  const { url, listingUrl } = server;
  const all = workload.contenders({ url, listingUrl, archive, keys: made.keys, files: join(base, 'list') });
  for (const { id, name, missing } of all)
    if (missing.length > 0) console.log(`(${id}) ${name} is absent: apt install ${missing.join(' ')}`);
  const contenders = all.filter(({ missing }) => missing.length === 0);
  const digests = new Map(made.keys.map((key) => [key, sha256(join(archive, key))]));
  for (const on of workload.on) {
    const folder = folders[on];
    if (folder === undefined) console.log(`not run on ram: there is no ${MEMORY_FOLDER}`);
    else await runOn({ workload, server, contenders, digests, on, out: join(folder, 'out') });
  }
  server.close();
}

/**
 * @typedef {object} Scene
 * @property {Workload} workload
 * @property {Server & { faults?: () => Promise<number> }} server
 * @property {readonly Contender[]} contenders
 * @property {ReadonlyMap<string, string>} digests
 * @property {'ram' | 'disk'} on
 * @property {string} out
 */

/** @param {Scene} scene */
async function runOn(scene) {
  const { workload, contenders, on, server } = scene;
  /** @type {{ contender: Contender, runs: Run[] }[]} */
  const results = contenders.map((contender) => ({ contender, runs: [] }));
  // Before the clock starts, the server has every page and digest in memory, and the folder is filled if the workload needs that.
  for (const contender of contenders)
    if (contender.id === (workload.before ?? 'a')) await runOnce(scene, contender, { isFresh: true });
  for (let round = 1; round <= rounds; round += 1)
    for (const { contender, runs } of results)
      runs.push(await runOnce(scene, contender, { isFresh: contender.keepsOut !== true }));
  const verdicts = judge(workload.targets, results, on);
  const delayMs = await loopDelay(scene);
  console.log(
    `\n${workload.id} on ${on} (${fileSystemOf(scene.out)}), from ${server.name}, ${rounds} rounds\n`,
  );
  console.log(`${resultsTable(results, workload.yardstick)}\n`);
  for (const { id, shown } of contenders) console.log(`(${id}) ${shown}`);
  for (const verdict of verdicts) console.log(verdictText(verdict));
  if (delayMs !== undefined) {
    const isMet = delayMs <= MOST_DELAY_MS ? 'met' : 'MISSED';
    console.log(
      `target  event-loop delay p99 of (${workload.delayOf}) <= ${MOST_DELAY_MS} ms: ${delayMs.toFixed(1)}, ${isMet}`,
    );
  }
  tables.push({
    workload: workload.id,
    on,
    server: server.name,
    verdicts,
    ...(delayMs === undefined ? {} : { delayMs }),
    contenders: results.map(({ contender, runs }) => ({
      id: contender.id,
      name: contender.name,
      command: contender.shown,
      runs,
    })),
  });
}

/**
 * @param {Scene} scene
 * @param {Contender} contender
 * @param {{ isFresh: boolean, env?: NodeJS.ProcessEnv }} how
 * @returns {Promise<Run>}
 */
async function runOnce({ workload, server, digests, out }, contender, { isFresh, env = {} }) {
  const state = join(dirname(out), 'state');
  if (isFresh) for (const folder of [out, state]) rmSync(folder, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const before = { requests: await server.requests(), faults: await server.faults?.() };
  const measured = await measure(meter, reportFile, contender.command, {
    cwd: out,
    env: { ...ENVIRONMENT, XDG_STATE_HOME: state, ...env },
  });
  const after = { requests: await server.requests(), faults: await server.faults?.() };
  const { stdout: _, stderr, ...numbers } = measured;
  const verdict =
    contender.makes === 'zip'
      ? checkZips(out, digests)
      : contender.makes === 'parquet'
        ? await checkParquet(out, workload.parquet)
        : { right: 0, wrong: 0, missing: 0 };
  // nginx counts the request for its count too.
  const own = server.faults === undefined ? 1 : 0;
  const objectRequests =
    before.requests === undefined || after.requests === undefined
      ? undefined
      : after.requests - before.requests - own;
  const faults =
    before.faults === undefined || after.faults === undefined ? {} : { faults: after.faults - before.faults };
  const requests = contender.requests(measured) ?? objectRequests;
  const run = { ...numbers, ...verdict, requests, objectRequests, ...faults };
  const isRight = run.exitCode === 0 && run.wrong === 0 && run.missing === 0;
  if (!isRight)
    console.log(`(${contender.id}) ended with ${run.exitCode}: ${stderr.trim().split('\n').at(-1) ?? ''}`);
  if (!isRight && contender.isOurs) process.exitCode = 1;
  return run;
}

/**
 * In ms; in a run of its own, because the measurement takes time.
 * @param {Scene} scene
 */
async function loopDelay(scene) {
  const contender = scene.contenders.find(({ id }) => id === scene.workload.delayOf);
  if (contender === undefined) return undefined;
  const file = join(base, 'delay');
  const env = { NODE_OPTIONS: `--import ${LOOP_DELAY}`, LOOP_DELAY_FILE: file };
  await runOnce(scene, contender, { isFresh: true, env });
  return Number(readFileSync(file, 'utf8'));
}
