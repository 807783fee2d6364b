/**
 * `npm run bench [-- --rounds N]`: cryptodl beside the chain of curl and sha256sum, on the same made-up archive and the
 * same server. How to read it: bench/README.md.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeArchive } from '../scripts/synthetic-archive.js';
import { checkParquet, checkZips, sha256 } from './check.js';
import { createContenders } from './contenders.js';
import { chooseMeter, measure } from './measure.js';
import { medianWall, resultsTable } from './results-table.js';

/** @import { Contender } from './contenders.js' */
/** @import { Result, Run } from './results-table.js' */

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const RESULTS = fileURLToPath(new URL('results.json', import.meta.url));
const FROM = '2024-01-01';
const TO = '2024-01-31';
const SYMBOLS = Array.from({ length: 100 }, (_, index) => `SYN${String(index).padStart(3, '0')}USDT`);
const PARQUETS = SYMBOLS.map((symbol) => `binance/um/metrics/symbol=${symbol}/2024-01.parquet`);
/** Nobody's settings: no CRYPTODL_ twins, no proxies. */
const ENVIRONMENT = { PATH: process.env['PATH'], HOME: process.env['HOME'], LC_ALL: 'C' };

const rounds = roundsAsked();
const folder = mkdtempSync(join(tmpdir(), 'cryptodl-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

const out = join(folder, 'out');
const reportFile = join(folder, 'usage');
const meter = chooseMeter(reportFile);
const environment = describeMachine();
console.log(
  Object.entries(environment)
    .map(([name, value]) => `${name.padEnd(13)}${value}`)
    .join('\n'),
);

const archive = join(folder, 'archive');
const made = makeArchive(archive, {
  market: 'um',
  dataset: 'metrics',
  symbols: SYMBOLS,
  from: FROM,
  to: TO,
  cadence: 'daily',
  seed: 1,
});
const digests = new Map(made.keys.map((key) => [key, sha256(join(archive, key))]));
const workload = `um metrics, ${SYMBOLS.length} symbols, ${FROM} … ${TO}: ${made.objects} zips, ${made.bytes} bytes, ${made.rows} rows`;
console.log(`${'workload'.padEnd(13)}${workload}\n`);

const url = await serve(archive);
const configs = join(folder, 'curl');
const contenders = createContenders({ url, keys: made.keys, from: FROM, to: TO, configs });
for (const { id, name, missing } of contenders) {
  if (missing.length > 0) console.log(`(${id}) ${name} is absent: apt install ${missing.join(' ')}`);
}
const present = contenders.filter(({ missing }) => missing.length === 0);
/** @type {{ contender: Contender, runs: Run[] }[]} */
const results = present.map((contender) => ({ contender, runs: [] }));
await warmUp();
for (let round = 1; round <= rounds; round += 1) {
  for (const { contender, runs } of results) {
    const run = await runOnce(contender);
    runs.push(run);
    console.log(`round ${round}/${rounds}  (${contender.id}) ${run.wallSeconds.toFixed(2)} s`);
  }
}
conclude();

function roundsAsked() {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });
  const asked = Number(values.rounds);
  if (Number.isInteger(asked) && asked > 0) return asked;
  throw new RangeError(`--rounds takes a number of 1 or more, not ${values.rounds}`);
}

function describeMachine() {
  const { stdout } = spawnSync('stat', ['-f', '-c', '%T', folder], { encoding: 'utf8' });
  const [curl = ''] = (spawnSync('curl', ['--version'], { encoding: 'utf8' }).stdout ?? '').split(' (');
  return {
    node: process.version,
    cores: `${availableParallelism()}, ${cpus()[0]?.model.trim() ?? 'unknown'}`,
    'file system': `${stdout?.trim() || 'unknown'} (${folder})`,
    curl: curl || 'absent',
    'load before': loadavg()
      .map((load) => load.toFixed(1))
      .join(' '),
    'CPU by': meter.name,
  };
}

/**
 * The server lives in a process of its own until this one ends.
 * @param {string} directory
 * @returns {Promise<string>} its URL
 */
function serve(directory) {
  const server = spawn(process.execPath, [BIN, 'serve', directory, '--port', '0'], {
    env: ENVIRONMENT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  process.on('exit', () => server.kill('SIGTERM'));
  let complaint = '';
  server.stderr.on('data', (chunk) => (complaint += String(chunk)));
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.on('exit', (code) => reject(new Error(`the server ended with exit code ${code}: ${complaint}`)));
    server.stdout.once('data', (chunk) => resolve(String(chunk).trim()));
  });
}

/** Asks for everything once, so that the server knows all its digests when the clock starts. */
async function warmUp() {
  const everything = contenders.find(({ id }) => id === 'd');
  if (everything !== undefined) await runOnce(everything);
}

/**
 * @param {Contender} contender
 * @returns {Promise<Run>}
 */
async function runOnce(contender) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out);
  const measured = await measure(meter, reportFile, contender.command, { cwd: out, env: ENVIRONMENT });
  const { stdout: _, stderr, ...numbers } = measured;
  const verdict =
    contender.makes === 'zip'
      ? checkZips(out, digests)
      : await checkParquet(out, PARQUETS, made.rows / PARQUETS.length);
  const run = { ...numbers, ...verdict, requests: contender.requests(measured) };
  if (!isRight(run)) {
    console.log(`(${contender.id}) ended with ${run.exitCode}:\n${stderr.slice(-2000)}`);
    process.exitCode = 1;
  }
  return run;
}

/** @param {Run} run */
function isRight({ exitCode, wrong, missing }) {
  return exitCode === 0 && wrong === 0 && missing === 0;
}

function conclude() {
  console.log(`\n${resultsTable(results, 'b')}\n`);
  for (const { contender } of results) console.log(`(${contender.id}) ${contender.shown}`);
  const file = {
    at: new Date().toISOString(),
    environment,
    workload,
    rounds,
    contenders: results.map(({ contender, runs }) => ({ ...contender, command: contender.shown, runs })),
  };
  writeFileSync(RESULTS, `${JSON.stringify(file, null, 2)}\n`);
  console.log(`\nwritten to ${RESULTS}\n${verdictLine(results)}`);
  process.exit();
}

/** @param {readonly Result[]} all */
function verdictLine(all) {
  const ours = all.find(({ contender }) => contender.id === 'a');
  const chain = all.find(({ contender }) => contender.id === 'b');
  if (ours === undefined || chain === undefined) return 'no ratio: the chain is absent';
  const ratio = (medianWall(ours) / medianWall(chain)).toFixed(2);
  return `(a)/(b) = ${ratio}: median wall time of \`${ours.contender.shown}\` over that of the chain (b), npm run bench -- --rounds ${rounds}.`;
}
