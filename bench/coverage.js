/**
 * `node bench/coverage.js [--series N] [--rounds N]`, after a build: CPU time of `cryptodl coverage` for a lake of
 * N × 1,000 objects, compared with JSON.parse of the same lines in one loop. bench/README.md explains the output.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { LARGE_LAKE_NOW, makeLargeLake } from '../scripts/synthetic-lake.js';

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
/** A process writes this line to stderr when it ends. */
const METER = `data:text/javascript,process.on('exit',()=>{const{user,system}=process.cpuUsage();process.stderr.write('\\nused '+JSON.stringify({cpuSeconds:(user+system)/1e6,peakMb:process.resourceUsage().maxRSS/1024})+'\\n')})`;

const { values } = parseArgs({
  options: {
    series: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
    folder: { type: 'string' },
  },
});

if (values.folder !== undefined) parseLines(values.folder);
else compare();

function compare() {
  const lake = mkdtempSync(join(tmpdir(), 'cryptodl-bench-'));
  process.on('exit', () => rmSync(lake, { recursive: true, force: true }));
  makeLargeLake(lake, Number(values.series));
  console.log(
    `${values.series} series × 1,000 lines; medians of ${values.rounds} rounds in turns, CPU seconds`,
  );
  const place = ['coverage', '--out', lake, '--now', LARGE_LAKE_NOW];
  const contenders = {
    'JSON.parse': [fileURLToPath(import.meta.url), '--folder', lake],
    coverage: [BIN, ...place],
    'coverage --json': [BIN, ...place, '--json'],
  };
  /** @type {Record<string, { cpuSeconds: number, peakMb: number }[]>} */
  const runs = {};
  for (let round = 0; round < Number(values.rounds); round += 1)
    for (const [name, command] of Object.entries(contenders)) (runs[name] ??= []).push(measured(command));
  const parse = median((runs['JSON.parse'] ?? []).map(({ cpuSeconds }) => cpuSeconds));
  for (const [name, all] of Object.entries(runs)) {
    const seconds = median(all.map(({ cpuSeconds }) => cpuSeconds));
    const peak = Math.max(...all.map(({ peakMb }) => peakMb));
    const ratio = (seconds / parse).toFixed(2);
    console.log(`${name.padEnd(16)} ${seconds.toFixed(2)} s  × ${ratio}  peak ${peak.toFixed(0)} MB`);
  }
}

/** @param {readonly string[]} command */
function measured(command) {
  const { status, stderr } = spawnSync(process.execPath, ['--import', METER, ...command], {
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const used = /^used (.*)$/m.exec(stderr)?.[1];
  if (status !== 0 || used === undefined) throw new Error(`ended with ${status}: ${stderr.slice(-2000)}`);
  return /** @type {{ cpuSeconds: number, peakMb: number }} */ (JSON.parse(used));
}

/**
 * The loop for comparison. It measures parsing, not reading.
 * @param {string} lake
 */
function parseLines(lake) {
  let micros = 0;
  let rows = 0;
  for (const path of readdirSync(lake, { recursive: true, encoding: 'utf8' })) {
    if (!path.endsWith('.jsonl')) continue;
    const lines = readFileSync(join(lake, path), 'utf8').trimEnd().split('\n');
    const before = process.cpuUsage();
    for (const line of lines) rows += JSON.parse(line).rows;
    const { user, system } = process.cpuUsage(before);
    micros += user + system;
  }
  process.removeAllListeners('exit');
  const peakMb = process.resourceUsage().maxRSS / 1024;
  process.stderr.write(`\nused ${JSON.stringify({ cpuSeconds: micros / 1e6, peakMb, rows })}\n`);
}

/** @param {readonly number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
