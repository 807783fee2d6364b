/** Parses a query, creates the views, locks the database, and runs the query. */
import type { DuckDbSession } from '../convert/duckdb.js';
import type { QueryResult } from '../convert/query-stream.js';
import { quotePath, quoteText } from '../convert/sql.js';
import { usage } from '../model/errors.js';
import type { DatasetSpec } from '../source/venue.js';
import { placeOf, queryError } from './explain-errors.js';
import type { LakeTable } from '../catalogue/views.js';
import { viewOf } from '../catalogue/views.js';

export interface PreparedQuery {
  readonly root: string;
  readonly text: string;
  readonly tables: readonly LakeTable[];
  readonly specOf: (table: LakeTable) => DatasetSpec | undefined;
}

/** Rejects, also while rows are read: with usage errors for faults of the query, and with errors of disk, memory or interruption. */
export async function runQuery(session: DuckDbSession, query: PreparedQuery): Promise<QueryResult> {
  for (const table of query.tables) await session.run(await viewOf(table, query.specOf(table)));
  await restrictAccess(session, query.root);
  const answer = await withExplainedErrors(query, () => session.select(query.text));
  if (answer === undefined) throw notOneSelect();
  return { columns: answer.columns, batches: batchesWithExplainedErrors(query, answer) };
}

/** Forbids the network and files outside the lake, and locks these settings. */
async function restrictAccess(session: DuckDbSession, root: string): Promise<void> {
  for (const setting of [
    "TimeZone = 'UTC'",
    'errors_as_json = true',
    // DuckDB checks the pattern of a path, and then the path that it found.
    `allowed_directories = [${quoteText(root)}, ${quotePath(root)}]`,
    'enable_external_access = false',
    'lock_configuration = true',
  ])
    await session.run(`SET ${setting}`);
}

type Batch = QueryResult['batches'] extends AsyncIterable<infer T> ? T : never;

async function* batchesWithExplainedErrors(
  query: PreparedQuery,
  { batches }: QueryResult,
): AsyncGenerator<Batch> {
  const rows = batches[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await withExplainedErrors(query, () => rows.next());
    if (done === true) return;
    yield value;
  }
}

async function withExplainedErrors<T>(query: PreparedQuery, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw queryError(error, query.text, query.root);
  }
}

const READS =
  'sql takes one read-only statement: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE or SHOW TABLES';

/** Functions with which a SELECT could write something or run another statement. */
const REFUSED_FUNCTIONS: ReadonlySet<string> = new Set([
  'arrow_scan',
  'arrow_scan_dumb',
  'enable_logging',
  'enable_profiling',
  'json_execute_serialized_sql',
  'query',
]);

/**
 * The names of tables, views and CTEs in a query, in lower case; a name of DuckDB for SHOW TABLES and similar statements. Rejects with usage
 * errors for statements that are not read-only, and for syntax errors with line and column.
 */
export async function parseStatement(session: DuckDbSession, text: string): Promise<ReadonlySet<string>> {
  if (text.includes('\0')) throw usage('the query holds a NUL character');
  const [row] = await session.rows(`SELECT json_serialize_sql(CAST(${quoteText(text)} AS VARCHAR)) AS tree`);
  const tree = JSON.parse(String(row?.['tree'])) as Tree;
  const { error_type: type, error_message: message = '', position } = tree;
  if (type === 'parser') throw usage(`${message}${placeOf(text, type, Number(position))}`);
  if (tree.statements === undefined) throw notOneSelect();
  if (tree.statements.length === 0) throw usage('the query is empty', 'for example: SHOW TABLES');
  if (tree.statements.length > 1) throw usage(`${READS}; the query has ${tree.statements.length} statements`);
  const names = new Set<string>();
  visit(tree, (node) => {
    if (typeof node['table_name'] === 'string') names.add(node['table_name'].toLowerCase());
    const called = node['function_name'];
    if (typeof called === 'string' && REFUSED_FUNCTIONS.has(called.toLowerCase()))
      throw usage(`${READS}; ${called}() is not allowed`);
  });
  return names;
}

function notOneSelect(): Error {
  return usage(READS, 'for other statements, use DuckDB with the views that cryptodl sql --views prints');
}

interface Tree {
  readonly error_type?: string;
  readonly error_message?: string;
  readonly position?: string;
  readonly statements?: readonly unknown[];
}

type Node = Readonly<Record<string, unknown>>;

function visit(value: unknown, act: (node: Node) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) act(value as Node);
  for (const part of Object.values(value)) visit(part, act);
}
