/**
 * The main job on a machine without internet: a small synthetic archive, served with `cryptodl serve`, downloaded with
 * `cryptodl vision`, and a few rows read back from Parquet by SQL.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DuckDBInstance } from '@duckdb/node-api';
import { makeArchive } from './synthetic-archive.js';

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const NOW = '2026-11-21T12:00:00Z';

const folder = mkdtempSync(join(tmpdir(), 'cryptodl-demo-'));
try {
  const made = makeArchive(join(folder, 'archive'), {
    market: 'um',
    dataset: 'klines',
    interval: '1m',
    symbols: ['BTCUSDT', 'ETHUSDT'],
    from: '2026-11-14',
    to: '2026-11-20',
    cadence: 'daily',
  });
  console.log(`made a synthetic archive of ${made.objects} zips, ${made.rows} rows\n`);
  const server = spawn(process.execPath, [BIN, 'serve', join(folder, 'archive'), '--port', '0']);
  const url = await firstLine(server.stdout);
  const lake = join(folder, 'data');
  const command = [
    'vision',
    '--symbols',
    'BTCUSDT,ETHUSDT',
    '--days',
    '7',
    '--now',
    NOW,
    '--archive-url',
    url,
    '--out',
    lake,
  ];
  console.log(`$ cryptodl ${command.join(' ')}`);
  const first = await run(command);
  console.log(`\n$ cryptodl ${command.join(' ')}   # again`);
  const second = await run(command);
  server.kill('SIGTERM');
  if (first !== 0 || second !== 0) throw new Error(`the runs ended with exit codes ${first} and ${second}`);
  await show(
    `SELECT symbol, open_time, open, high, low, close, volume
     FROM read_parquet('${lake}/binance/um/klines/**/*.parquet', hive_partitioning = true)
     ORDER BY open_time DESC, symbol LIMIT 4`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * @param {import('node:stream').Readable} stream
 * @returns {Promise<string>}
 */
function firstLine(stream) {
  return new Promise((resolve) => {
    stream.once('data', (chunk) => resolve(String(chunk).trim()));
  });
}

/**
 * @param {string[]} args
 * @returns {Promise<number | null>}
 */
function run(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [BIN, ...args], { stdio: 'inherit' });
    child.on('error', reject);
    child.on('close', resolve);
  });
}

/** @param {string} sql */
async function show(sql) {
  console.log(`\nSQL> ${sql.replaceAll(/\s+/g, ' ')}`);
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const reader = await connection.runAndReadAll(sql);
  console.table(reader.getRowObjectsJson());
  connection.closeSync();
}
