/** Turns errors of DuckDB into typed errors, with line, column and the names that DuckDB suggests. */
import { existsSync } from 'node:fs';
import { CryptodlError, usage } from '../model/errors.js';
import { shellWord, shownPath } from '../text/printable.js';

/** An error of DuckDB, as it reports it with `errors_as_json`. */
export interface QueryFault {
  /** `Binder`, `Catalog`, `Conversion`, … */
  readonly type: string;
  readonly text: string;
  /** Offset of the fault in the query: in characters for faults of the parser, in bytes for all others. */
  readonly position: number | undefined;
  /** The table or column that does not exist, and the similar names of the database. */
  readonly missing?:
    { readonly isTable: boolean; readonly name: string; readonly similar: string } | undefined;
  /** The CSV file with a line that cannot be read. */
  readonly file?: string | undefined;
}

/** Undefined for errors that do not come from DuckDB. */
export function queryFault(error: unknown): QueryFault | undefined {
  if (!(error instanceof Error)) return undefined;
  const fields = fieldsOf(error.message);
  const { exception_type: type = 'Parser', exception_message: message, position } = fields;
  if (typeof message !== 'string' || typeof type !== 'string') return undefined;
  const [text = ''] = message.split('\n');
  return {
    type,
    text: text.replace(/!$/, ''),
    position: typeof position === 'string' ? Number(position) : undefined,
    missing: missingOf(fields),
    file: CSV_FILE.exec(message)?.[1],
  };
}

/** Errors of lines of a CSV file name it below their text. */
const CSV_FILE = /^CSV Error on Line: [^]*^ {2}file = (.+)$/m;

/** Most errors are JSON, a few are text. */
function fieldsOf(message: string): Readonly<Record<string, unknown>> {
  const [, type, text] = /^([A-Z][\w ]*) Error: ([^{].*)/.exec(message) ?? [];
  if (text !== undefined) return { exception_type: type, exception_message: text };
  try {
    return JSON.parse(message.slice(Math.max(0, message.indexOf('{')))) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function missingOf(fields: Readonly<Record<string, unknown>>): QueryFault['missing'] {
  const { error_subtype: subtype, type, name, candidates } = fields;
  const isTable = subtype === 'MISSING_ENTRY' && type === 'Table';
  if (typeof name !== 'string' || !(isTable || subtype === 'COLUMN_NOT_FOUND')) return undefined;
  return { isTable, name, similar: typeof candidates === 'string' ? candidates : '' };
}

/** DuckDB's type for an error in the structure of a Parquet file. Its text does not name the file. */
const BROKEN = 'Invalid';

/** The lake of a query. */
interface Known {
  readonly root: string;
  /** The names of all tables, also of those without a readable file. */
  readonly tables: readonly string[];
}

/** Throws the error of a fault for the user: mostly a usage error with line, column and a suggestion. */
export function throwFault(fault: QueryFault, query: string, known?: Known): never {
  const { type, text, missing } = fault;
  if (type === 'IO') throw new CryptodlError('disk', text);
  if (type === 'Out of Memory')
    throw new CryptodlError('out-of-memory', `DuckDB ran out of memory: ${text}`, {
      hint: 'query less: one symbol, fewer days, no ORDER BY over all rows',
    });
  if (type === 'Interrupt' || type === 'INTERRUPT')
    throw new CryptodlError('interrupted', 'the query was interrupted');
  // The query is right, but a file of the lake that it reads is not.
  const isOfFile = type === BROKEN || fault.file !== undefined || text.includes(`${known?.root ?? ''}/`);
  if (known !== undefined && type !== 'Permission' && isOfFile) {
    const file =
      fault.file === undefined ? `a file of the lake ${shownPath(known.root)}` : shownPath(fault.file);
    const hint = `to name damaged files, and to fetch them again:\n${checkLines(known.root)}`;
    throw new CryptodlError('disk', `${file} cannot be read: ${text}`, { hint });
  }
  const place = placeOf(query, fault);
  if (type === 'Permission') throw usage(`${text}${place}`, 'sql reads only files of the lake');
  if (missing?.isTable === true && known !== undefined) refuseTableWithoutFiles(missing.name, known);
  throw usage(`${text}${place}`, hintOf(missing));
}

function hintOf(missing: QueryFault['missing']): string | undefined {
  if (missing === undefined) return undefined;
  const { isTable, name, similar } = missing;
  // Without quotes, SQL reads a symbol as a name.
  if (/^[A-Z0-9_]{5,}$/.test(name)) return `a symbol is a value: WHERE symbol = '${name}'`;
  if (similar !== '') return `did you mean ${similar.split(',').join(', ')}?`;
  return isTable ? 'SHOW TABLES lists the tables' : undefined;
}

function checkLines(root: string): string {
  const out = shellWord(shownPath(root));
  return `cryptodl verify --out ${out}\ncryptodl repair --out ${out}`;
}

function refuseTableWithoutFiles(name: string, { root, tables }: Known): void {
  if (tables.length === 0) throw emptyLake(root);
  if (tables.some((table) => table.toLowerCase() === name.toLowerCase()))
    throw usage(`${name}: the lake ${shownPath(root)} has no readable Parquet or CSV file of this table`);
}

/** The error for a lake without views. `names`: its tables, none of which has a readable file. */
export function noViews(root: string, names: readonly string[]): Error {
  return names.length === 0
    ? emptyLake(root)
    : usage(`the lake ${shownPath(root)} has no readable Parquet or CSV file`);
}

function emptyLake(root: string): Error {
  return usage(
    existsSync(root)
      ? `the lake ${shownPath(root)} is empty`
      : `${shownPath(root)} does not exist, so there is no lake`,
    'download data first, or name another lake with --out',
  );
}

/** ` (line 1, column 15)` */
function placeOf(query: string, fault: QueryFault): string {
  const before = textBefore(query, fault)?.split('\n');
  return before === undefined ? '' : ` (line ${before.length}, column ${(before.at(-1) ?? '').length + 1})`;
}

/** DuckDB's parser counts characters, its later stages count bytes. */
function textBefore(query: string, { type, position }: QueryFault): string | undefined {
  if (position === undefined || Number.isNaN(position)) return undefined;
  return type.toLowerCase() === 'parser'
    ? Array.from(query).slice(0, position).join('')
    : Buffer.from(query).subarray(0, position).toString('utf8');
}
