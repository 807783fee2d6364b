/**
 * `cryptodl sql`: runs a query on the lake and prints a table on a terminal, else CSV or NDJSON. Takes no lock, sends no
 * request and writes nothing into the lake.
 */
import { readFile, rm } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { printError } from '../cli/print-error.js';
import type { Typed } from '../cli/print-error.js';
import { writeText } from '../cli/write-data.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import type { QueryResult } from '../convert/query-stream.js';
import { createEngine } from '../convert/duckdb.js';
import { errnoOf, toCryptodlError, usage } from '../model/errors.js';
import { exitCodeOfSignal } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import { watchSignals } from '../model/io.js';
import type { Io } from '../model/io.js';
import type { Series } from '../model/task.js';
import { numberText } from '../model/units.js';
import { homeOf } from '../options/environment.js';
import type { Resolved } from '../options/resolve.js';
import { heldSeries } from '../select/held-series.js';
import type { Source } from '../source/source.js';
import { findDataset } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { absolutePath, linesText, printLines, shownPath } from '../text/printable.js';
import { noViews } from './explain-errors.js';
import { readTables, tableName } from './lake-tables.js';
import type { LakeTable, LeftOut } from './lake-tables.js';
import { csvLine, jsonLine, printTable } from './print-table.js';
import { parseStatement, runQuery } from './run-query.js';
import { viewOf } from './views.js';

export interface SqlRun {
  readonly source: Source;
  readonly resolved: Resolved;
  readonly io: Io;
  readonly typed: Typed;
}

/** `operand` is the query, `-` for stdin, or `@FILE`. Throws usage errors. */
export async function sql(operand: string | undefined, run: SqlRun): Promise<ExitCode> {
  const { source, io, typed, resolved } = run;
  const { options } = resolved;
  if (options.csv && options.json)
    throw usage('--csv and --json exclude each other', 'keep one', { flags: { csv: null } });
  const home = homeOf(io.environment);
  const lake: QueriedLake = {
    venue: source,
    root: absolutePath(options.out, home),
    warn: (message) => {
      printLines(io.stderr, [`warning: ${message}`]);
    },
  };
  if (options.views) return printViews(lake, operand, io);
  const text = await readQuery(operand, io);
  const signals = watchSignals(io);
  const tempFolder = options.tempDir === undefined ? undefined : absolutePath(options.tempDir, home);
  try {
    const rows = await queryLake({ ...lake, text, tempFolder, signal: signals.signal }, (answer) =>
      print(run, answer),
    );
    if (rows !== undefined && !options.quiet)
      printLines(io.stderr, [`${numberText(rows)} ${rows === 1 ? 'row' : 'rows'}`]);
    return 0;
  } catch (error) {
    const signal = signals.signalled();
    if (signal !== undefined) return exitCodeOfSignal(signal);
    return printError(toCryptodlError(error), typed);
  } finally {
    signals.release();
  }
}

async function printViews(lake: QueriedLake, operand: string | undefined, io: Io): Promise<ExitCode> {
  if (operand !== undefined)
    throw usage('--views prints all views and takes no query', undefined, { flags: { views: null } });
  for await (const statement of lakeViews(lake)) if (!(await writeExact(io, statement))) break;
  return 0;
}

async function readQuery(operand: string | undefined, io: Io): Promise<string> {
  if (operand === undefined)
    throw usage('sql needs a query', '- reads it from stdin, @FILE from a file', {
      command: ['sql', 'SHOW TABLES'],
    });
  if (operand === '-') return readAll(io.stdin);
  if (!operand.startsWith('@')) return operand;
  const path = operand.slice(1);
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw usage(`sql: cannot read ${path} (${errnoOf(error)})`, 'write @FILE for a query in a file');
  }
}

/** Resolves with the number of rows; undefined when the reader of stdout has closed it. */
async function print({ io, resolved }: SqlRun, answer: QueryResult): Promise<number | undefined> {
  const { options } = resolved;
  if (!options.json && !options.csv && io.stdout.isTTY === true) return printTable(io, answer);
  const names = answer.columns.map(({ name }) => name);
  const lineOf = options.json ? jsonLine(names) : csvLine;
  if (!options.json && !(await writeExact(io, csvLine(names)))) return undefined;
  let number = 0;
  for await (const rows of answer.batches) {
    number += rows.length;
    if (!(await writeExact(io, rows.map(lineOf).join('')))) return undefined;
  }
  return number;
}

/** Replaces control characters only on a terminal. */
function writeExact(io: Io, text: string): Promise<boolean> {
  const isTerminal = io.stdout.isTTY === true;
  return writeText(io, isTerminal ? linesText(text.split('\n').slice(0, -1)) : text);
}

// The query on the lake.

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
  const engine = createEngine({ memoryBytes: totalmem() / 2, tempFolder: spill, signal: query.signal });
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
    // `read` may have ended before the last row, so the query may still run.
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
  const { tables, leftOut } = await readTables(lake.root, lake.venue, series);
  for (const text of leftOutTexts(leftOut)) lake.warn(text);
  return tables;
}

function specIn(venue: Source, { market, dataset }: LakeTable): DatasetSpec | undefined {
  return findDataset(venue, market, dataset);
}

function leftOutTexts({ unsound, overlapping }: LeftOut): string[] {
  return [
    ...leftOutText(
      unsound,
      'missing or different from its commit; not queried (cryptodl verify gives details)',
    ),
    ...leftOutText(overlapping, 'CSV with some days that Parquet files hold too; not queried'),
  ];
}

function leftOutText(files: readonly string[], why: string): string[] {
  const [first] = files;
  if (first === undefined) return [];
  const others = files.length === 1 ? '' : ` and ${files.length - 1} more`;
  return [`${shownPath(first)}${others}: ${why}`];
}
