/** One statement of a user as DuckDB's parser sees it, before anything is asked of the lake. */
import type { Session } from '../duckdb.js';
import { usage } from '../errors.js';
import { quoteText } from '../sql.js';
import { refuseFault } from './refusals.js';

export interface Statement {
  /** Names of tables and views, of CTEs as well, in lower case. */
  readonly names: ReadonlySet<string>;
  /** It asks which views there are. */
  readonly listsViews: boolean;
}

/** What `SHOW TABLES`, and `SHOW ALL TABLES` or `DESCRIBE`, read in DuckDB's tree. */
const LISTS_OF_VIEWS = ['"tables"', '__show_tables_expanded'];

const READS = 'sql only reads: one SELECT (or WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW TABLES)';

/** What a SELECT could still change something with, or hide another statement in. */
const REFUSED_FUNCTIONS: ReadonlySet<string> = new Set([
  'arrow_scan',
  'arrow_scan_dumb',
  'enable_logging',
  'enable_profiling',
  'json_execute_serialized_sql',
  'query',
]);

/** Throws usage errors for what is no SELECT, and for what DuckDB cannot parse, with its place. */
export async function readStatement(session: Session, text: string): Promise<Statement> {
  if (text.includes('\0')) throw usage('the query holds a NUL character');
  const [row] = await session.rows(`SELECT json_serialize_sql(CAST(${quoteText(text)} AS VARCHAR)) AS tree`);
  const tree = JSON.parse(String(row?.['tree'])) as Tree;
  const { error_type: type, error_message: message = '', position } = tree;
  if (type === 'parser')
    refuseFault({ type, text: message, position: Number(position), missing: undefined }, text);
  if (tree.statements === undefined) throw notOneSelect();
  if (tree.statements.length === 0) throw usage('the query is empty', undefined, { operand: 'SHOW TABLES' });
  if (tree.statements.length > 1) throw usage(`${READS}; these are ${tree.statements.length} statements`);
  const names = new Set<string>();
  visit(tree, (node) => {
    if (typeof node['table_name'] === 'string') names.add(node['table_name'].toLowerCase());
    const called = node['function_name'];
    if (typeof called === 'string' && REFUSED_FUNCTIONS.has(called.toLowerCase()))
      throw usage(`${READS}; ${called}() is none of it`);
  });
  return { names, listsViews: LISTS_OF_VIEWS.some((name) => names.has(name)) };
}

export function notOneSelect(): Error {
  return usage(READS, 'for anything else, DuckDB itself with the views that cryptodl sql --views prints');
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
