/** What is in a lake, read by readers that are not ours. */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { manifestPlace } from '../../src/lake/manifest-place.js';

export type LakeRow = Record<string, unknown>;

export async function readParquet(file: string): Promise<LakeRow[]> {
  return parquetReadObjects({ file: await asyncBufferFromFile(file), compressors });
}

export async function parquetMetadata(
  file: string,
): Promise<Awaited<ReturnType<typeof parquetMetadataAsync>>> {
  return parquetMetadataAsync(await asyncBufferFromFile(file));
}

/** The files hold neither quotes nor commas within cells. */
export function readCsv(file: string): Record<string, string>[] {
  const [header = '', ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n');
  const names = header.split(',');
  return lines.map((line) => {
    const cells = line.split(',');
    return Object.fromEntries(names.map((name, index) => [name, cells[index] ?? '']));
  });
}

/** Paths of all files below a folder, relative to it, sorted. */
export function filesBelow(folder: string, ending = ''): string[] {
  return (readdirSync(folder, { recursive: true }) as string[])
    .filter((path) => path.endsWith(ending) && statSync(join(folder, path)).isFile())
    .sort();
}

/** Files below `.cryptodl`, except for the records of runs and debug dumps. */
export function leftInternally(lake: string): string[] {
  return filesBelow(join(lake, '.cryptodl')).filter((path) => !/^(runs\/|orders\/|debug-)/.test(path));
}

/** The manifest of a series, by the folder of the series in a lake. */
export function manifestOf(seriesFolder: string): string {
  return manifestPlace(seriesFolder).path;
}

/** A commit journal of this lake. All names are relative, as in the journals that the program writes. */
export interface TestJournal {
  readonly series: string;
  readonly publications: readonly { readonly staged: string; readonly target: string }[];
  readonly dead: readonly string[];
  readonly lines: readonly object[];
}

/** The content of a commit journal that a killed run has left in the lake. */
export function journalOf(lake: string, journal: TestJournal): object {
  const { dev, ino } = statSync(join(lake, '.cryptodl'), { bigint: true });
  return { lake: { path: realpathSync(lake), device: String(dev), inode: String(ino) }, ...journal };
}

export function manifestLines(seriesFolder: string): Record<string, unknown>[] {
  return readFileSync(manifestOf(seriesFolder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** One line per Parquet file of a lake: its path, row count and a digest of its rows in their order. */
export async function parquetDigests(lake: string): Promise<string[]> {
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const reader = await connection.runAndReadAll(
    `SELECT filename, count(*) AS rows, md5(string_agg(row_hash::VARCHAR, '|' ORDER BY file_row_number)) AS digest
     FROM (SELECT filename, file_row_number, hash(t) AS row_hash
           FROM (SELECT * REPLACE (substr(filename, ${lake.length + 1}) AS filename)
                 FROM read_parquet('${lake}/binance/**/*.parquet', filename = true, file_row_number = true, hive_partitioning = false)) t)
     GROUP BY filename ORDER BY filename`,
  );
  const rows = reader.getRowObjectsJson();
  connection.closeSync();
  instance.closeSync();
  return rows.map((row) => JSON.stringify(row));
}
