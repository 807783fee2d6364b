/**
 * `floor.js FOLDER`: every zip below it checked by sha256sum, unpacked by `unzip -p`, and read and written by one DuckDB COPY,
 * two at a time. The lower limit for aggTrades with the same tools and settings, without download, checks of cells and a manifest.
 */
import { spawn } from 'node:child_process';
import { createWriteStream, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { DuckDBInstance } from '@duckdb/node-api';

const AT_ONCE = 2;
const COLUMNS =
  "{'agg_trade_id': 'BIGINT', 'price': 'DOUBLE', 'quantity': 'DOUBLE', 'first_trade_id': 'BIGINT', 'last_trade_id': 'BIGINT', 'transact_time': 'BIGINT', 'is_buyer_maker': 'BOOLEAN'}";

const [folder = ''] = process.argv.slice(2);
const zips = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.zip'))
  .map((name) => join(folder, name))
  .sort();
const instance = await DuckDBInstance.create(':memory:');
const next = zips.values();
await Promise.all(Array.from({ length: AT_ONCE }, work));

async function work() {
  const connection = await instance.connect();
  for (const zip of next) {
    const name = basename(zip, '.zip');
    const csv = `${name}.csv`;
    const checked = ended(
      spawn('sha256sum', ['-c', '--status', `${basename(zip)}.CHECKSUM`], { cwd: join(zip, '..') }),
    );
    const unzip = spawn('unzip', ['-p', zip], { stdio: ['ignore', 'pipe', 'inherit'] });
    await Promise.all([checked, ended(unzip), pipeline(unzip.stdout, createWriteStream(csv))]);
    await connection.run(
      `COPY (SELECT * REPLACE (make_timestamp(transact_time * 1000) AS transact_time)
             FROM read_csv('${csv}', header = true, auto_detect = false, columns = ${COLUMNS}))
       TO '${name}.parquet' (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, COMPRESSION_LEVEL 1)`,
    );
    rmSync(csv);
  }
  connection.closeSync();
}

/** @param {import('node:child_process').ChildProcess} child */
function ended(child) {
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => (code === 0 ? resolve(undefined) : reject(new Error(`exit code ${code}`))));
  });
}
