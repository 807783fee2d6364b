/**
 * `node bench/export.js [--symbols N] [--months N] [--rounds N] [--folder DIR]`, after a build: the time of `cryptodl export freqtrade` of 1m klines, and of one
 * DuckDB statement that reads the same rows and writes them into one file. The process of the statement has the threads and the client of the program.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { makeArchive } from '../scripts/synthetic-archive.js';

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const SERIES = 'binance/um/klines/interval=1m';
const FIRST = 'S00000USDT';

const { values } = parseArgs({
  options: {
    symbols: { type: 'string', default: '100' },
    months: { type: 'string', default: '12' },
    rounds: { type: 'string', default: '3' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const folder = mkdtempSync(join(values.folder, 'cryptodl-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

const lake = join(folder, 'lake');
const months = Number(values.months);
const symbols = Array.from(
  { length: Number(values.symbols) },
  (_, at) => `S${String(at).padStart(5, '0')}USDT`,
);
makeLake();
console.log(`${symbols.length} symbols x ${months} months of 1m klines`);
console.log('round  program s  again s  statement s  ratio');
const ratios = [];
for (let round = 1; round <= Number(values.rounds); round += 1) {
  const target = join(folder, `target-${round}`);
  const first = run([BIN, 'export', 'freqtrade', '--out', lake, '--target', target, '--quiet']);
  const again = run([BIN, 'export', 'freqtrade', '--out', lake, '--target', target, '--quiet']);
  rmSync(target, { recursive: true });
  const statement = run(['--input-type=module', '-e', statementProgram(join(folder, 'one.parquet'))]);
  rmSync(join(folder, 'one.parquet'));
  ratios.push(first / statement);
  const cells = [
    String(round).padStart(5),
    ...[first, again, statement, first / statement].map((n) => n.toFixed(2)),
  ];
  console.log(
    `${cells[0]}  ${cells[1]?.padStart(9)}  ${cells[2]?.padStart(7)}  ${cells[3]?.padStart(11)}  ${cells[4]}`,
  );
}
const median = ratios.sort((a, b) => a - b)[Math.floor(ratios.length / 2)] ?? Number.NaN;
console.log(`median of the ratios: ${median.toFixed(2)} (at most 2)`);

/** One symbol is downloaded from a synthetic archive; the others are copies of its files under other names. */
function makeLake() {
  const archive = join(folder, 'archive');
  const year = 2023 + Math.floor((months - 1) / 12);
  const last = `${year}-${String(((months - 1) % 12) + 1).padStart(2, '0')}`;
  makeArchive(archive, {
    market: 'um',
    cadence: 'monthly',
    dataset: 'klines',
    interval: '1m',
    symbols: [FIRST],
    from: '2023-01-01',
    to: `${last}-28`,
  });
  // The server is a process of its own, because the download blocks this one.
  const download = `
    const { spawn, spawnSync } = await import('node:child_process');
    const server = spawn(process.execPath, [${JSON.stringify(BIN)}, 'serve', ${JSON.stringify(archive)}, '--port', '0']);
    const url = await new Promise((resolve) => server.stdout.once('data', (text) => resolve(String(text).trim())));
    const { status, stderr } = spawnSync(process.execPath, [${JSON.stringify(BIN)}, 'vision', '-m', 'um', '-i', '1m', '-s', '${FIRST}', '--from', '2023-01', '--to', '${last}', '--archive-url', url, '--out', ${JSON.stringify(lake)}, '--quiet'], { encoding: 'utf8' });
    server.kill();
    if (status !== 0) { console.error(stderr); process.exit(1); }`;
  run(['--input-type=module', '-e', download]);
  const manifest = readFileSync(join(lake, '_manifests', SERIES, `symbol=${FIRST}.jsonl`), 'utf8');
  mkdirSync(join(lake, '_manifests', SERIES), { recursive: true });
  for (const symbol of symbols.slice(1)) {
    cpSync(join(lake, SERIES, `symbol=${FIRST}`), join(lake, SERIES, `symbol=${symbol}`), {
      recursive: true,
    });
    writeFileSync(
      join(lake, '_manifests', SERIES, `symbol=${symbol}.jsonl`),
      manifest.replaceAll(FIRST, symbol),
    );
  }
}

/**
 * Seconds of a run of Node.
 * @param {readonly string[]} args
 */
function run(args) {
  const from = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    cwd: new URL('.', import.meta.url),
  });
  if (status !== 0) throw new Error(stderr);
  return (performance.now() - from) / 1000;
}

/** @param {string} target */
function statementProgram(target) {
  return `
    const { DuckDBInstance } = await import('@duckdb/node-api');
    const instance = await DuckDBInstance.create(':memory:', { threads: '${availableParallelism()}' });
    const connection = await instance.connect();
    await connection.run(\`COPY (SELECT open_time::TIMESTAMP_NS AS date, open, high, low, close, volume, symbol FROM read_parquet('${lake}/${SERIES}/*/*.parquet', hive_partitioning = true))
      TO '${target}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)\`);`;
}
