/** A query over the lake's views: they are made, the door is shut, then it is run. */
import type { Answer, Session } from '../duckdb.js';
import { CryptodlError } from '../errors.js';
import { quoteName, quoteText } from '../sql.js';
import type { DatasetSpec } from '../venue/venue.js';
import type { LakeTable } from './lake-tables.js';
import { tableName } from './lake-tables.js';
import { queryFault, refuseFault } from './refusals.js';
import type { Statement } from './statement.js';
import { notOneSelect } from './statement.js';
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
