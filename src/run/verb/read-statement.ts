/** Reads a statement of `sql`: the tables that it names. Refuses statements that are not read-only. */
import type { DuckDb } from '../../convert/duckdb.js';
import { quoteText } from '../../convert/sql.js';
import { usage } from '../../model/errors.js';

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
 * errors for statements that are not read-only, and for syntax errors.
 */
export async function tablesInStatement(duckdb: DuckDb, text: string): Promise<ReadonlySet<string>> {
  if (text.includes('\0')) throw usage('the query holds a NUL character');
  const [row] = await duckdb.rows(`SELECT json_serialize_sql(CAST(${quoteText(text)} AS VARCHAR)) AS tree`);
  const tree = JSON.parse(String(row?.['tree'])) as Tree;
  const { error_type: type, error_message: message = '', position } = tree;
  if (type === 'parser') throw usage(message, restFrom(text, Number(position)));
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

export const notOneSelect = (): Error =>
  usage(READS, 'for other statements, use DuckDB with the views that cryptodl sql --views prints');

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

/** The beginning of the text from a character on; undefined without one. */
function restFrom(text: string, position: number): string | undefined {
  const rest = Array.from(text).slice(position, position + 60);
  return Number.isNaN(position) || rest.length === 0 ? undefined : `at: ${rest.join('')}`;
}
