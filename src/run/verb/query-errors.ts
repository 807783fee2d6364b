/** The errors of a query on the lake, in words for the user. */
import { existsSync } from 'node:fs';
import { CryptodlError, usage } from '../../model/errors.js';
import { shellWord, shownPath } from '../../text/printable.js';

/** `Catalog Error: Table with name um_kline does not exist!`, followed by a suggestion and the line of the query. */
const FAULT = /^([A-Z][\w ]*) Error: (.*)$/s;

/** Whether DuckDB has no table of a name in the query. */
export const isUnknownTable = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('Catalog Error: Table with name ');

/** Errors of lines of a CSV file name it below their text, which contains the line. */
const CSV_FILE = /^ {2}file = (.+)$/gm;

/** The error for the user; `error` itself if it does not come from DuckDB. `root`: the lake. */
export function queryError(error: unknown, root: string): unknown {
  if (!(error instanceof Error) || error instanceof CryptodlError) return error;
  const [, type = '', message] = FAULT.exec(error.message) ?? [];
  if (message === undefined) return error;
  const [text = '', ...rest] = message.split('\n').filter((line) => /[^\s^]/.test(line));
  if (type === 'IO') return new CryptodlError('disk', text);
  if (type === 'Out of Memory')
    return new CryptodlError('out-of-memory', `DuckDB ran out of memory: ${text}`, {
      hint: 'query less: one symbol, fewer days, no ORDER BY over all rows',
    });
  if (type === 'INTERRUPT') return new CryptodlError('interrupted', 'the query was interrupted');
  if (type === 'Permission') return usage(text, 'sql reads only files of the lake');
  // The query is right, but a file of the lake that it reads is not. Of a Parquet file, the text does not have the name.
  const isCsv = message.includes('CSV Error on Line: ');
  if (type !== 'Invalid' && !isCsv && !text.includes(`${root}/`))
    return usage(text.replace(/!$/, ''), rest.length === 0 ? undefined : rest.join('\n'));
  const csv = isCsv ? [...message.matchAll(CSV_FILE)].at(-1)?.[1] : undefined;
  const file = csv === undefined ? `a file of the lake ${shownPath(root)}` : shownPath(csv);
  const out = shellWord(shownPath(root));
  return new CryptodlError('disk', `${file} cannot be read: ${text}`, {
    hint: `to name damaged files, and to fetch them again:\ncryptodl verify --out ${out}\ncryptodl repair --out ${out}`,
  });
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
