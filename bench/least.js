/**
 * `least.js URL KEYS`: what requests.js does, and each zip unpacked, the rows of a month put into one file, and each file read and
 * written by one DuckDB COPY, several months at a time. The lower limit for Parquet with undici, zlib and DuckDB in Node: no cell is
 * checked, no row counted, no file synced, no manifest written.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { DuckDBInstance } from '@duckdb/node-api';
import { bothOf } from './both.js';

const NEWLINE = 0x0a;
const LETTER = 0x41;
const KINDS = {
  metrics: {
    order: 'create_time',
    columns:
      "{'create_time': 'TIMESTAMP', 'symbol': 'VARCHAR', 'a': 'DOUBLE', 'b': 'DOUBLE', 'c': 'DOUBLE', 'd': 'DOUBLE', 'e': 'DOUBLE', 'f': 'DOUBLE'}",
  },
  klines: {
    order: 'open_time',
    columns:
      "{'open_time': 'BIGINT', 'open': 'DOUBLE', 'high': 'DOUBLE', 'low': 'DOUBLE', 'close': 'DOUBLE', 'volume': 'DOUBLE', 'close_time': 'BIGINT', 'quote_volume': 'DOUBLE', 'count': 'BIGINT', 'taker_volume': 'DOUBLE', 'taker_quote_volume': 'DOUBLE', 'ignore': 'BIGINT'}",
  },
};

const [url = '', file = ''] = process.argv.slice(2);
const both = bothOf(url);
const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
const months = monthsOf(readFileSync(file, 'utf8').trim().split('\n'));
const next = months.entries();
await Promise.all(Array.from({ length: 2 * availableParallelism() }, work));
await both.close();

async function work() {
  const connection = await instance.connect();
  for (const [month, keys] of next) {
    const rows = await Promise.all(keys.map(async (key) => rowsIn(await both.get(key))));
    const csv = `${month}.csv`;
    writeFileSync(csv, Buffer.concat(rows));
    const { columns, order } = keys[0]?.includes('/metrics/') === true ? KINDS.metrics : KINDS.klines;
    await connection.run(
      `COPY (SELECT * FROM read_csv('${csv}', header = false, auto_detect = false, columns = ${columns}) ORDER BY ${order})
       TO '${month}.parquet' (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, COMPRESSION_LEVEL 1)`,
    );
    rmSync(csv);
  }
  connection.closeSync();
}

/**
 * @param {readonly string[]} keys
 * @returns {Map<string, string[]>} by `SYMBOL-2024-01`
 */
function monthsOf(keys) {
  /** @type {Map<string, string[]>} */
  const byMonth = new Map();
  for (const key of keys) {
    const name = basename(key, '.zip').slice(0, -'-31'.length);
    byMonth.set(name, [...(byMonth.get(name) ?? []), key]);
  }
  return byMonth;
}

/**
 * @param {Buffer} zip with one member
 * @returns {Buffer} its lines without the header
 */
function rowsIn(zip) {
  const directory = zip.readUInt32LE(zip.lastIndexOf('PK\u0005\u0006', undefined, 'latin1') + 16);
  const local = zip.readUInt32LE(directory + 42);
  const data = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
  const csv = inflateRawSync(zip.subarray(data, data + zip.readUInt32LE(directory + 20)));
  return (csv[0] ?? 0) >= LETTER ? csv.subarray(csv.indexOf(NEWLINE) + 1) : csv;
}
