/** Checks the files of a contender. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';

/** @typedef {{ right: number, wrong: number, missing: number }} Verdict */

/**
 * Zips under the archive's own keys. A zip is right if it has the archive's bytes. A zip that the archive does not have is wrong.
 * @param {string} out
 * @param {ReadonlyMap<string, string>} digests SHA-256 by key
 * @returns {Verdict}
 */
export function checkZips(out, digests) {
  const verdict = { right: 0, wrong: strangers(out, '.zip', new Set(digests.keys())), missing: 0 };
  for (const [key, digest] of digests) {
    const file = join(out, key);
    if (!existsSync(file)) verdict.missing += 1;
    else if (sha256(file) === digest) verdict.right += 1;
    else verdict.wrong += 1;
  }
  return verdict;
}

/** @typedef {{ file: string, rows: number }} ExpectedFile relative to the folder */

/**
 * Parquet files. A file is right if DuckDB reads the expected number of rows from it, with as many different values of a column.
 * @param {string} out
 * @param {{ files: readonly ExpectedFile[], distinct: string }} expected
 * @returns {Promise<Verdict>}
 */
export async function checkParquet(out, { files, distinct }) {
  const names = new Set(files.map(({ file }) => file));
  const verdict = { right: 0, wrong: strangers(out, '.parquet', names), missing: 0 };
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  for (const { file, rows } of files) {
    const path = join(out, file);
    if (!existsSync(path)) verdict.missing += 1;
    else if (await hasRows(connection, path, { rows, distinct })) verdict.right += 1;
    else verdict.wrong += 1;
  }
  connection.closeSync();
  instance.closeSync();
  return verdict;
}

/**
 * @param {import('@duckdb/node-api').DuckDBConnection} connection
 * @param {string} path
 * @param {{ rows: number, distinct: string }} expected
 */
async function hasRows(connection, path, { rows, distinct }) {
  const sql = `SELECT count(*), count(DISTINCT ${distinct}) FROM read_parquet('${path.replaceAll("'", "''")}')`;
  try {
    const reader = await connection.runAndReadAll(sql);
    return reader.getRows()[0]?.every((count) => Number(count) === rows) === true;
  } catch {
    // An unreadable file is wrong.
    return false;
  }
}

/**
 * @param {string} out
 * @param {string} ending
 * @param {ReadonlySet<string>} expected
 */
function strangers(out, ending, expected) {
  const files = readdirSync(out, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => file.endsWith(ending) && !expected.has(file)).length;
}

/** @param {string} file */
export function sha256(file) {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
