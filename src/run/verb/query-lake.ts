/** A query on the lake. Takes no lock, sends no request and writes nothing into the lake. */
import { verbEngine, type DuckDb } from '../../convert/duckdb.js';
import type { QueryResult } from '../../convert/stream-rows.js';
import { quotePath, quoteText } from '../../convert/sql.js';
import { tableName, viewOf } from '../../lake/catalogue/views.js';
import type { QueryFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { absolutePath } from '../../text/printable.js';
import { shownBy, tablesOf, type ShownRows } from './lake-tables.js';
import { noViews, queryError } from './query-errors.js';
import { notOneSelect, tablesInStatement } from './read-statement.js';

/** An open result. The caller must close it. */
export interface LakeResult extends QueryResult {
  readonly close: () => Promise<void>;
}

/** Runs a query. Rejects with usage errors for its faults, also while the caller reads the rows. Without `shown`, the flags of the request decide. */
export async function queryLake(
  text: string,
  request: VerbRequest<QueryFlag>,
  shown?: ShownRows,
): Promise<LakeResult> {
  const engine = verbEngine('sql', request, Number.POSITIVE_INFINITY);
  let duckdb: DuckDb | undefined;
  const close = async (): Promise<void> => {
    // The caller may have ended before the last row, so the query may still run.
    engine.interrupt();
    duckdb?.close();
    await engine.end();
  };
  try {
    duckdb = await engine.connect();
    const names = await tablesInStatement(duckdb, text);
    const root = absolutePath(request.resolved.options.out, request.surroundings.home);
    const { series: held, range } = shown ?? (await shownBy(request));
    const named = held.filter((series) => names.has(tableName(series).toLowerCase()));
    // A query that names no table of the lake may list the views (SHOW TABLES), so it gets all of them.
    const tables = await tablesOf(root, request, { series: named.length > 0 ? named : held, range });
    const isEmpty = tables.length === 0;
    if (isEmpty && LISTS_OF_VIEWS.some((name) => names.has(name))) throw noViews(root, held.map(tableName));
    for (const table of tables) await duckdb.run(await viewOf(table, range));
    await restrictAccess(duckdb, root);
    const answer = await runQuery(duckdb, text, root).catch((error: unknown) => {
      const isUnknown = error instanceof Error && error.message.startsWith('Table with name ');
      throw isEmpty && isUnknown ? noViews(root, held.map(tableName)) : error;
    });
    return { ...answer, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Table names in DuckDB's tree for `SHOW TABLES`, and for `SHOW ALL TABLES` or `DESCRIBE`. */
const LISTS_OF_VIEWS = ['"tables"', '__show_tables_expanded'];

/** The CREATE VIEW statements, each with a semicolon. Throws a usage error for an empty lake. */
export async function* lakeViews(request: VerbRequest<QueryFlag>): AsyncGenerator<string> {
  const root = absolutePath(request.resolved.options.out, request.surroundings.home);
  const shown = await shownBy(request);
  const tables = await tablesOf(root, request, shown);
  if (tables.length === 0) throw noViews(root, shown.series.map(tableName));
  for (const table of tables) yield `${await viewOf(table, shown.range, true)};\n`;
}

/** Rejects, also while rows are read: with usage errors for faults of the query, and with errors of disk, memory or interruption. */
async function runQuery(duckdb: DuckDb, text: string, root: string): Promise<QueryResult> {
  const explained = async function* ({ batches }: QueryResult) {
    try {
      yield* batches;
    } catch (error) {
      throw queryError(error, root);
    }
  };
  const answer = await duckdb.select(text).catch((error: unknown) => {
    throw queryError(error, root);
  });
  if (answer === undefined) throw notOneSelect();
  return { columns: answer.columns, batches: explained(answer) };
}

/** Forbids the network and files outside the lake, and locks these settings. */
async function restrictAccess(duckdb: DuckDb, root: string): Promise<void> {
  for (const setting of [
    "TimeZone = 'UTC'",
    // DuckDB checks the pattern of a path, and then the path that it found.
    `allowed_directories = [${quoteText(root)}, ${quotePath(root)}]`,
    'enable_external_access = false',
    'lock_configuration = true',
  ])
    await duckdb.run(`SET ${setting}`);
}
