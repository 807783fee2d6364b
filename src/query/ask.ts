/** A query over the lake's views: they are made, the door is shut, then it is run. */
import type { Answer, Session } from '../convert/duckdb.js';
import { quoteName, quoteText } from '../convert/sql.js';
import { CryptodlError, usage } from '../model/errors.js';
import type { DatasetSpec } from '../source/venue.js';
import { queryFault, refuseFault } from './explain-errors.js';
import type { LakeTable } from './lake-tables.js';
import { tableName } from './lake-tables.js';
import { viewOf } from './views.js';

export interface Question {
  readonly root: string;
  readonly text: string;
  readonly statement: Statement;
  readonly tables: readonly LakeTable[];
  /** Of every table that the lake has, also of those that the query does not need. */
  readonly names: readonly string[];
  readonly specOf: (table: LakeTable) => DatasetSpec | undefined;
}

/** Rejects, also while it is read, with usage errors for what DuckDB does not take, and with what the disk says. */
export async function ask(session: Session, question: Question): Promise<Answer> {
  for (const table of question.tables) await session.run(await viewOf(table, question.specOf(table)));
  await shutDoor(session, question.root);
  const answer = await explained(session, question, () => session.select(question.text));
  if (answer === undefined) throw notOneSelect();
  return { columns: answer.columns, batches: explainedBatches(session, question, answer) };
}

/** No file outside the lake, no network, and no way to say otherwise. */
async function shutDoor(session: Session, root: string): Promise<void> {
  for (const setting of [
    "TimeZone = 'UTC'",
    'errors_as_json = true',
    `allowed_directories = [${quoteText(root)}]`,
    'enable_external_access = false',
    'lock_configuration = true',
  ])
    await session.run(`SET ${setting}`);
}

type Batch = Answer['batches'] extends AsyncIterable<infer T> ? T : never;

async function* explainedBatches(
  session: Session,
  question: Question,
  { batches }: Answer,
): AsyncGenerator<Batch> {
  const rows = batches[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await explained(session, question, () => rows.next());
    if (done === true) return;
    yield value;
  }
}

async function explained<T>(session: Session, question: Question, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const fault = error instanceof CryptodlError ? undefined : queryFault(error);
    if (fault === undefined) throw error;
    const columns = fault.missing?.what === 'column' ? await columnsOf(session, question.tables) : [];
    return refuseFault(fault, question.text, { root: question.root, tables: question.names, columns });
  }
}

/** Each once, in the order of the tables. */
async function columnsOf(session: Session, tables: readonly LakeTable[]): Promise<string[]> {
  const columns: string[] = [];
  for (const table of tables) {
    const rows = await session.rows(`DESCRIBE ${quoteName(tableName(table))}`);
    columns.push(...rows.map((row) => String(row['column_name'])));
  }
  return [...new Set(columns)];
}

// One statement of a user as DuckDB's parser sees it, before anything is asked of the lake.

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

function notOneSelect(): Error {
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
