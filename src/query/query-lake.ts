/** Runs a query on a lake. Takes no lock, sends no request and writes nothing into the lake. */
import { rm } from 'node:fs/promises';
import { availableParallelism, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { createEngine } from '../convert/duckdb.js';
import type { QueryResult, DuckDbSession } from '../convert/duckdb.js';
import type { Series } from '../model/task.js';
import { heldSeries } from '../select/held-series.js';
import { findDataset } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { shownPath } from '../text/paths.js';
import { runQuery, parseStatement } from './run-query.js';
import { noViews } from './explain-errors.js';
import { readTables, tableName } from './lake-tables.js';
import type { LakeTable, LeftOut } from './lake-tables.js';
import { viewOf } from './views.js';
import type { Source } from '../source/source.js';

export interface QueriedLake {
  readonly venue: Source;
  /** Absolute. */
  readonly root: string;
  readonly warn: (message: string) => void;
}

export interface LakeQuery extends QueriedLake {
  readonly text: string;
  /** Folder for DuckDB's temporary files; undefined: that of the system. */
  readonly tempFolder: string | undefined;
  readonly signal: AbortSignal;
}

/** Calls `read` with the result while the database is open. Rejects with usage errors for faults of the query. */
export async function queryLake<T>(query: LakeQuery, read: (answer: QueryResult) => Promise<T>): Promise<T> {
  const spill = join(query.tempFolder ?? tmpdir(), `cryptodl-sql-${process.pid}`);
  const engine = createEngine({
    threads: availableParallelism(),
    memoryBytes: totalmem() / 2,
    tempFolder: spill,
  });
  const onAbort = (): void => {
    engine.interrupt();
  };
  query.signal.addEventListener('abort', onAbort, { once: true });
  let session: DuckDbSession | undefined;
  try {
    session = await engine.session();
    const statement = await parseStatement(session, query.text);
    const held = await seriesOf(query);
    const names = [...new Set(held.map(tableName))].sort();
    const named = held.filter((series) => statement.names.has(tableName(series).toLowerCase()));
    // A query that names no table of the lake may list the views (SHOW TABLES), so it gets all of them.
    const tables = await tablesOf(query, named.length > 0 ? named : held);
    if (statement.listsViews && tables.length === 0) throw noViews(query.root, names);
    const specOf = (table: LakeTable): DatasetSpec | undefined => specIn(query.venue, table);
    const answer = await runQuery(session, { ...query, statement, tables, names, specOf });
    return await read(answer);
  } finally {
    query.signal.removeEventListener('abort', onAbort);
    // `read` may have ended before the last row.
    engine.interrupt();
    session?.close();
    engine.close();
    await rm(spill, { recursive: true, force: true });
  }
}

/** The CREATE VIEW statements, each with a semicolon. Throws a usage error for an empty lake. */
export async function* lakeViews(lake: QueriedLake): AsyncGenerator<string> {
  const held = await seriesOf(lake);
  const tables = await tablesOf(lake, held);
  if (tables.length === 0) throw noViews(lake.root, held.map(tableName));
  for (const table of tables) yield `${await viewOf(table, specIn(lake.venue, table), true)};\n`;
}

async function seriesOf({ root, venue, warn }: QueriedLake): Promise<Series[]> {
  const all: Series[] = [];
  for await (const series of heldSeries(root, venue, warn)) all.push(series);
  return all;
}

async function tablesOf(lake: QueriedLake, series: readonly Series[]): Promise<LakeTable[]> {
  const { tables, leftOut } = await readTables(lake.root, lake.venue.name, series);
  for (const text of leftOutTexts(leftOut)) lake.warn(text);
  return tables;
}

function specIn(venue: Source, { market, dataset }: LakeTable): DatasetSpec | undefined {
  return findDataset(venue, market, dataset);
}

function leftOutTexts({ unsound, overlapping }: LeftOut): string[] {
  return [
    ...leftOutText(unsound, 'missing or different from its commit; not queried (cryptodl verify says more)'),
    ...leftOutText(overlapping, 'CSV with some days that Parquet files hold too; not queried'),
  ];
}

function leftOutText(files: readonly string[], why: string): string[] {
  const [first] = files;
  if (first === undefined) return [];
  const others = files.length === 1 ? '' : ` and ${files.length - 1} more`;
  return [`${shownPath(first)}${others}: ${why}`];
}
