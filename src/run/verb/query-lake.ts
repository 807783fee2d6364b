/** A query on the lake. Takes no lock, sends no request and writes nothing into the lake. */
import { existsSync } from 'node:fs';
import { verbEngine, type DuckDb } from '../../convert/duckdb.js';
import type { QueryResult } from '../../convert/stream-rows.js';
import { quotePath, quoteText } from '../../convert/sql.js';
import { tableName, viewOf, type LakeTable } from '../../lake/catalogue/views.js';
import { nowMsOf, type QueryFlag, type VerbRequest } from '../../plan/options/verb-request.js';
import { absolutePath, lakeFlag, shellWord, shownPath } from '../../text/printable.js';
import { bringIn } from '../../files/backing.js';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import type { Series } from '../../model/task.js';
import { CryptodlError, usage } from '../../model/errors.js';
import { listText } from '../../model/units.js';
import { givenRange } from '../../plan/select/date-range.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { filesOfRange, type LakeFile } from '../../lake/catalogue/lake-file.js';

/** Runs a query. The caller must close its result. Rejects with usage errors for its faults, also while the caller reads the rows. Without `shown`, the flags of the request decide. */
export async function queryLake(
  text: string,
  request: VerbRequest<QueryFlag>,
  shown?: ShownRows,
): Promise<QueryResult & { readonly close: () => Promise<void> }> {
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
    return { ...(await runQuery(duckdb, text, root, isEmpty ? held : undefined)), close };
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

/**
 * Rejects, also while rows are read: with usage errors for faults of the query, and with errors of disk, memory or interruption. `unreadable`: the
 * series of a lake without views.
 */
async function runQuery(
  duckdb: DuckDb,
  text: string,
  root: string,
  unreadable?: readonly Series[],
): Promise<QueryResult> {
  const explained = async function* ({ batches }: QueryResult) {
    try {
      yield* batches;
    } catch (error) {
      throw queryError(error, root);
    }
  };
  const answer = await duckdb.select(text).catch((error: unknown) => {
    throw unreadable !== undefined && isUnknownTable(error)
      ? noViews(root, unreadable.map(tableName))
      : queryError(error, root);
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

interface ShownRows {
  readonly series: readonly Series[];
  readonly range: Partial<DayRange>;
}

/** The series and days that the flags select; without flags, the whole lake. */
async function shownBy(request: VerbRequest<QueryFlag>): Promise<ShownRows> {
  const range = givenRange(request.resolved.options, nowMsOf(request), request.exchange) ?? {};
  const { held } = await readVerbLake(request);
  return { series: held.length === 0 ? held : await selectGiven(held, request), range };
}

/** The tables with at least one readable file, ordered by name, with the files that may have shown rows. Rejects for a damaged manifest. */
async function tablesOf(
  root: string,
  { exchange, observer, signal }: VerbRequest<never>,
  { series: selected, range }: ShownRows,
): Promise<LakeTable[]> {
  const tables = new Map<string, LakeTable>();
  // A table without a row of the range has its columns from one file.
  const spare = new Map<string, readonly LakeFile[]>();
  const unsound: string[] = [];
  const overlapping: string[] = [];
  for await (const held of openCatalogue(root, exchange, signal).series(selected)) {
    if (held.damage !== undefined) throw held.damage;
    unsound.push(...held.unsound);
    overlapping.push(...held.overlapping);
    if (held.files.length === 0) continue;
    const { series, spec } = held;
    const name = tableName(series);
    const known = tables.get(name)?.files ?? [];
    const files = [...known, ...(spec === undefined ? held.files : filesOfRange(held, spec, range))];
    spare.set(name, held.files.slice(0, 1));
    tables.set(name, { ...series, hasInterval: series.interval !== undefined, files, spec });
  }
  const warnOf = (files: readonly string[], why: string): void => {
    if (files.length > 0) observer.warn(`${listText(files.map(shownPath), 1)}: ${why}`);
  };
  warnOf(unsound, 'missing or different from its commit; not queried (cryptodl verify gives details)');
  warnOf(overlapping, 'CSV with some days that Parquet files hold too; not queried');
  const all = [...tables]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, table]) => (table.files.length > 0 ? table : { ...table, files: spare.get(name) ?? [] }));
  await bringIn(...all.flatMap(({ files }) => files.map(({ path }) => path)));
  return all;
}

/** `Catalog Error: Table with name um_kline does not exist!`, followed by a suggestion and the line of the query. */
const FAULT = /^([A-Z][\w ]*) Error: (.*)$/s;

/** Whether DuckDB has no table of a name in the query. */
const isUnknownTable = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('Catalog Error: Table with name ');

/** Errors of lines of a CSV file name it below their text, which contains the line. */
const CSV_FILE = /^ {2}file = (.+)$/gm;

/** The error for the user; `error` itself if it does not come from DuckDB. `root`: the lake. */
function queryError(error: unknown, root: string): unknown {
  if (!(error instanceof Error) || error instanceof CryptodlError) return error;
  const [, type = '', message] = FAULT.exec(error.message) ?? [];
  if (message === undefined) return error;
  const [text = '', ...rest] = message.split('\n').filter((line) => /[^\s^]/.test(line));
  if (type === 'IO') return new CryptodlError('disk', text, { hint: 'check the disk and the permissions' });
  if (type === 'Out of Memory')
    return new CryptodlError('out-of-memory', `DuckDB ran out of memory: ${text}`, {
      hint: 'query less: one symbol, fewer days, no ORDER BY over all rows',
    });
  if (type === 'INTERRUPT') return new CryptodlError('interrupted', 'the query was interrupted');
  if (type === 'Permission') return usage(text, 'sql reads only files of the lake');
  // The query is right, but a file of the lake that it reads is not. Of a Parquet file, the text does not have the name.
  const isCsv = message.includes('CSV Error on Line: ');
  if (type !== 'Invalid' && !isCsv && !text.includes(`${root}/`))
    return usage(text.replace(/!$/, ''), rest.join('\n') || 'DESCRIBE TABLE shows columns and their types');
  const csv = isCsv ? [...message.matchAll(CSV_FILE)].at(-1)?.[1] : undefined;
  const file = csv === undefined ? `a file of the lake ${shownPath(root)}` : shownPath(csv);
  const out = shellWord(shownPath(root));
  return new CryptodlError('disk', `${file} cannot be read: ${text}`, {
    hint: `to name damaged files, and to fetch them again:\ncryptodl verify --out ${out}\ncryptodl repair --out ${out}`,
  });
}

/** The error for a lake without views. `names`: its tables, none of which has a readable file. */
function noViews(root: string, names: readonly string[]): Error {
  const lake = shownPath(root);
  if (names.length > 0)
    return usage(
      `the lake ${lake} has no readable Parquet or CSV file`,
      `cryptodl verify${lakeFlag(root)} names damaged files`,
    );
  return usage(
    existsSync(root) ? `the lake ${lake} is empty` : `${lake} does not exist, so there is no lake`,
    'download data first, or name another lake with --out',
  );
}

// Reads a statement of `sql`: the tables that it names. Refuses statements that are not read-only.

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
async function tablesInStatement(duckdb: DuckDb, text: string): Promise<ReadonlySet<string>> {
  if (text.includes('\0')) throw usage('the query holds a NUL character', 'write it without this character');
  const [row] = await duckdb.rows(`SELECT json_serialize_sql(CAST(${quoteText(text)} AS VARCHAR)) AS tree`);
  const tree = JSON.parse(String(row?.['tree'])) as Tree;
  const { error_type: type, error_message: message = '', position } = tree;
  if (type === 'parser') throw usage(message, restFrom(text, Number(position)));
  if (tree.statements === undefined) throw notOneSelect();
  if (tree.statements.length === 0) throw usage('the query is empty', 'for example: SHOW TABLES');
  if (tree.statements.length > 1)
    throw usage(`${READS}; the query has ${tree.statements.length} statements`, 'run them one by one');
  const names = new Set<string>();
  visit(tree, (node) => {
    if (typeof node['table_name'] === 'string') names.add(node['table_name'].toLowerCase());
    const called = node['function_name'];
    if (typeof called === 'string' && REFUSED_FUNCTIONS.has(called.toLowerCase()))
      throw usage(`${READS}; ${called}() is not allowed`, `write the query without ${called}()`);
  });
  return names;
}

const notOneSelect = (): Error =>
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

/** The beginning of the text from a character on, as a hint; another hint if there is none. */
function restFrom(text: string, position: number): string {
  const rest = Array.from(text).slice(position, position + 60);
  return Number.isNaN(position) || rest.length === 0 ? 'check the end of the query' : `at: ${rest.join('')}`;
}
