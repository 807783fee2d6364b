/**
 * `node bench/startup.js [--rounds 10]`, after a build: the time to start, compared with `node -e 0`, in turns. The output is explained in
 * bench/README.md.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeArchive } from '../scripts/synthetic-archive.js';

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
/** No settings of this machine: no CRYPTODL_ variables, no proxies, and no NODE_EXTRA_CA_CERTS, which alone doubles the time of `node -e 0`. */
const ENVIRONMENT = { PATH: process.env['PATH'], HOME: process.env['HOME'], LC_ALL: 'C' };
/** `times` of bash counts milliseconds. GNU time counts hundredths of a second, which is too coarse for 60 ms. */
const METER = '"$@" >/dev/null; code=$?; times; exit $code';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '10' } } });
const rounds = Number(values.rounds);
if (!Number.isInteger(rounds) || rounds < 1)
  throw new RangeError('--rounds takes a whole number of 1 or more');

const folder = mkdtempSync(join(tmpdir(), 'cryptodl-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const url = await serve();
const out = join(folder, 'out');
const object = `vision --dataset metrics --symbols SYNUSDT --from 2024-01-01 --to 2024-01-01 --progress none --out ${out} --state-dir ${join(folder, 'state')} --archive-url ${url}`;
/** @type {Record<string, readonly string[]>} */
const contenders = {
  'node -e 0': ['-e', '0'],
  '--version': [BIN, '--version'],
  '--help': [BIN, '--help'],
  'vision --help': [BIN, 'vision', '--help'],
  'one object': [BIN, ...object.split(' ')],
};
/** @type {Map<string, { cpuMs: number, wallMs: number }[]>} */
const runs = new Map(Object.keys(contenders).map((name) => [name, []]));
for (let round = 0; round < rounds; round += 1)
  for (const [name, command] of Object.entries(contenders)) runs.get(name)?.push(measured(command));
const load = loadavg().map((each) => each.toFixed(1));
console.log(`node ${process.version}, load ${load.join(' ')}, medians of ${rounds} rounds in turns`);
console.log(line(['what', 'CPU ms', 'wall ms', 'CPU / node', 'wall / node']));
const base = medians('node -e 0');
for (const name of runs.keys()) {
  const { cpuMs, wallMs } = medians(name);
  const ratios = [cpuMs / base.cpuMs, wallMs / base.wallMs].map((ratio) => ratio.toFixed(2));
  console.log(line([name, cpuMs.toFixed(0), wallMs.toFixed(0), ...ratios]));
}
console.log('at most, CPU: --help 1.6 x node -e 0, one object 17 x');
process.exit();

/** @returns {Promise<string>} URL of a server that lives until this process ends */
function serve() {
  const archive = join(folder, 'archive');
  makeArchive(archive, {
    market: 'um',
    dataset: 'metrics',
    symbols: ['SYNUSDT'],
    from: '2024-01-01',
    to: '2024-01-02',
    cadence: 'daily',
  });
  const server = spawn(process.execPath, [BIN, 'serve', archive, '--port', '0'], {
    env: ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  process.on('exit', () => server.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.on('exit', (code) => reject(new Error(`the server ended with exit code ${code}`)));
    server.stdout.once('data', (chunk) => resolve(String(chunk).trim()));
  });
}

/** @param {readonly string[]} command */
function measured(command) {
  rmSync(out, { recursive: true, force: true });
  const started = process.hrtime.bigint();
  const { status, stdout, stderr, error } = spawnSync(
    'bash',
    ['--norc', '-c', METER, 'bash', process.execPath, ...command],
    // Node's pipes are sockets. With a socket as stdin, bash acts as a remote shell and reads ~/.bashrc.
    { encoding: 'utf8', env: ENVIRONMENT, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  if (error !== undefined) throw error;
  const wallMs = Number(process.hrtime.bigint() - started) / 1e6;
  if (status !== 0) throw new Error(`${command.join(' ')} ended with ${status}: ${stderr.slice(-2000)}`);
  // Two lines of user and system time as `0m1.234s`: the shell's own, and its children's.
  const [minutes = 0, user = 0, more = 0, system = 0] = [
    ...(stdout.trim().split('\n')[1] ?? '').matchAll(/\d+(\.\d+)?/g),
  ].map(([text]) => Number(text));
  return { cpuMs: ((minutes + more) * 60 + user + system) * 1000, wallMs };
}

/** @param {string} name */
function medians(name) {
  const all = runs.get(name) ?? [];
  return { cpuMs: median(all.map(({ cpuMs }) => cpuMs)), wallMs: median(all.map(({ wallMs }) => wallMs)) };
}

/** @param {readonly string[]} cells */
function line(cells) {
  return cells.map((cell, at) => (at === 0 ? cell.padEnd(15) : cell.padStart(12))).join(' ');
}

/** @param {readonly number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
