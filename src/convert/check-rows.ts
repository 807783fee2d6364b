/**
 * The slow, exact checker of lines. It searches a CSV for the first invalid line when the fast reader (DuckDB) rejects the
 * objects, or when the fast reader may accept invalid content of the CSV.
 */
import { parseDay } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { ColumnSpec } from '../exchange/facts.js';
import { MS_RANGE, US_RANGE } from './columns.js';

// DATETIME and DATE accept the same cells as the expressions of columns.ts. A date without a time is its midnight.

const NUMBER = /^ *[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)? *$/;
const DATETIME = /^ *(2\d{3}-\d{2}-\d{2})(?:[ T](\d{2}):(\d{2}):(\d{2}))? *$/;
const DATE = /^ *2\d{3}-\d{2}-\d{2} *$/;
const FLAG = /^ *(?:true|false) *$/i;
/** The longest line that DuckDB reads is this many bytes. */
export const LONGEST_LINE = 2 * 1024 * 1024;
/** U+FFFD replaces bytes that are not UTF-8. */
// eslint-disable-next-line no-control-regex -- the expression must match control characters
const NOT_IN_TEXT = /[\u0000-\u001f\u007f"\uFFFD]/;

export interface CheckedFile {
  /** Name of the CSV, for messages. */
  readonly name: string;
  readonly symbol: string;
  readonly headerLines: number;
}

/** The error of the first invalid line; undefined when all lines are valid. */
export async function findFirstError(
  columns: readonly ColumnSpec[],
  file: CheckedFile,
  lines: AsyncIterable<string>,
): Promise<CryptodlError | undefined> {
  let number = file.headerLines;
  for await (const line of lines) {
    number += 1;
    const wrong = findLineError(columns, file.symbol, line);
    if (wrong === undefined) continue;
    const code = wrong.isOfOtherSymbol === true ? 'symbol-mismatch' : 'row-malformed';
    return new CryptodlError(code, `${file.name} line ${number}: ${wrong.text}`);
  }
  return undefined;
}

function findLineError(
  columns: readonly ColumnSpec[],
  symbol: string,
  line: string,
): { text: string; isOfOtherSymbol?: true } | undefined {
  if (line === '') return { text: 'the line is blank' };
  if (line.length > LONGEST_LINE) return { text: `the line is longer than ${LONGEST_LINE} characters` };
  const cells = line.split(',').map(unquoted);
  if (cells.length !== columns.length) return { text: `${cells.length} columns, expected ${columns.length}` };
  for (const [index, column] of columns.entries()) {
    const cell = cells[index] ?? '';
    if (cell === '' && column.nullable) continue;
    const shown = `${column.name} is ${JSON.stringify(cell.slice(0, 40))}`;
    if (column.type === 'symbol') {
      if (cell !== symbol) return { text: `${shown}, expected ${symbol}`, isOfOtherSymbol: true };
      continue;
    }
    if (isUnderflow(column.type, cell)) return { text: `${shown}, which a double rounds to 0` };
    if (!isLegalCell(column.type, cell)) return { text: `${shown}, not ${EXPECTED[column.type]}` };
  }
  return undefined;
}

const unquoted = (cell: string): string => (/^".*"$/s.test(cell) ? cell.slice(1, -1) : cell);

const EXPECTED: Readonly<Record<ColumnSpec['type'], string>> = {
  time: 'an epoch time in ms or us',
  datetime: 'a UTC date and time',
  date: 'a date',
  hour: 'an hour from 0 to 23',
  flag: 'true or false',
  text: 'a text without quotes and control characters',
  integer: 'a whole number between -2^53 and 2^53',
  number: 'a finite number',
  symbol: 'the symbol',
};

function isLegalCell(type: Exclude<ColumnSpec['type'], 'symbol'>, cell: string): boolean {
  if (type === 'text') return cell !== '' && !NOT_IN_TEXT.test(cell);
  if (type === 'flag') return FLAG.test(cell);
  if (type === 'date') return DATE.test(cell) && isDatetime(cell);
  if (type === 'datetime') return isDatetime(cell);
  const value = Number(cell);
  if (!NUMBER.test(cell) || !Number.isFinite(value)) return false;
  if (type === 'number') return true;
  if (!Number.isInteger(value)) return false;
  if (type === 'integer') return Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  if (type === 'hour') return value >= 0 && value <= 23;
  // 1.7e12 is a whole number, but no clock writes times in this form.
  if (/e/i.test(cell)) return false;
  return (value >= MS_RANGE[0] && value < MS_RANGE[1]) || (value >= US_RANGE[0] && value < US_RANGE[1]);
}

/** Whether a cell is not 0, but becomes 0 as a double: it has a digit other than 0 before its exponent. */
function isUnderflow(type: ColumnSpec['type'], cell: string): boolean {
  const isNumeric = type === 'number' || type === 'integer';
  return isNumeric && NUMBER.test(cell) && Number(cell) === 0 && /^[^eE]*[1-9]/.test(cell);
}

function isDatetime(cell: string): boolean {
  const match = DATETIME.exec(cell);
  if (match === null) return false;
  const [, date = '', hour = '00', minute = '00', second = '00'] = match;
  return parseDay(date) !== undefined && Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
}
