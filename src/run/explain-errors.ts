/** Turns errors of DuckDB into typed errors, with line and column of the query. */
import { existsSync } from 'node:fs';
import { CryptodlError, usage } from '../model/errors.js';
import { shellWord, shownPath } from '../text/printable.js';
import { fieldsOf, parseJson } from '../text/json.js';

/** The fields of an error of DuckDB with `errors_as_json`. A few errors are text. */
interface Fault {
  readonly exception_type?: string;
  readonly exception_message?: string;
  /** Offset of the fault in the query: in characters for faults of the parser, in bytes for all others. */
  readonly position?: string;
}

/** Errors of lines of a CSV file name it below their text, which contains the line. */
const CSV_FILE = /^ {2}file = (.+)$/gm;

/** DuckDB's type for an error in the structure of a Parquet file. Its text does not name the file. */
const BROKEN = 'Invalid';

/** The error for the user; `error` itself if it does not come from DuckDB. `root`: the lake. */
export function queryError(error: unknown, query: string, root: string): unknown {
  if (!(error instanceof Error) || error instanceof CryptodlError) return error;
  const { exception_type: type = 'Parser', exception_message: message, position } = faultOf(error.message);
  if (message === undefined) return error;
  const [text = '', hint] = message.split('\n').map((line) => line.replace(/!$/, ''));
  if (type === 'IO') return new CryptodlError('disk', text);
  if (type === 'Out of Memory')
    return new CryptodlError('out-of-memory', `DuckDB ran out of memory: ${text}`, {
      hint: 'query less: one symbol, fewer days, no ORDER BY over all rows',
    });
  if (type.toLowerCase() === 'interrupt')
    return new CryptodlError('interrupted', 'the query was interrupted');
  const place = placeOf(query, type, Number(position));
  if (type === 'Permission') return usage(`${text}${place}`, 'sql reads only files of the lake');
  // The query is right, but a file of the lake that it reads is not.
  const csv = message.includes('CSV Error on Line: ')
    ? [...message.matchAll(CSV_FILE)].at(-1)?.[1]
    : undefined;
  if (type === BROKEN || csv !== undefined || text.includes(`${root}/`)) {
    const out = shellWord(shownPath(root));
    const file = csv === undefined ? `a file of the lake ${shownPath(root)}` : shownPath(csv);
    return new CryptodlError('disk', `${file} cannot be read: ${text}`, {
      hint: `to name damaged files, and to fetch them again:\ncryptodl verify --out ${out}\ncryptodl repair --out ${out}`,
    });
  }
  const [, name] = /^Referenced column "(.+)" not found/.exec(text) ?? [];
  const isQuoted = name !== undefined && query.includes(`"${name}"`);
  const quotes = isQuoted ? `a text stands in single quotes: '${name}'` : undefined;
  const hints = [hint, quotes].filter((each) => each !== undefined);
  return usage(`${text}${place}`, hints.length === 0 ? undefined : hints.join('; '));
}

function faultOf(message: string): Fault {
  const [, type, text] = /^([A-Z][\w ]*) Error: ([^{].*)/.exec(message) ?? [];
  if (type !== undefined && text !== undefined) return { exception_type: type, exception_message: text };
  return fieldsOf(parseJson(message.slice(Math.max(0, message.indexOf('{')))));
}

/** ` (line 1, column 15)`. DuckDB's parser counts characters, its later stages count bytes. */
export function placeOf(query: string, type: string, position: number): string {
  if (Number.isNaN(position)) return '';
  const before =
    type.toLowerCase() === 'parser'
      ? Array.from(query).slice(0, position).join('')
      : Buffer.from(query).subarray(0, position).toString('utf8');
  const lines = before.split('\n');
  return ` (line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1})`;
}

/** The error for a lake without views. `names`: its tables, none of which has a readable file. */
export function noViews(root: string, names: readonly string[]): Error {
  const lake = shownPath(root);
  if (names.length > 0) return usage(`the lake ${lake} has no readable Parquet or CSV file`);
  return usage(
    existsSync(root) ? `the lake ${lake} is empty` : `${lake} does not exist, so there is no lake`,
    'download data first, or name another lake with --out',
  );
}
