/** What a damaged CSV says, by a small reader that shares nothing with the product but the names and types of columns. */
import { isUtf8 } from 'node:buffer';
import type { ColumnSpec } from '../../src/exchange/facts.js';

export type Cell = string | number | boolean | null;

export interface ReadCsv {
  /** Values of the file's columns up to the first wrong line. */
  readonly rows: readonly Cell[][];
  /** Counted from 1, header included. */
  readonly wrongLine?: number;
}

/** What a published CSV says, as the design wants it read: nothing is guessed at. */
export function readCsv(
  columns: readonly ColumnSpec[],
  symbol: string,
  bytes: Buffer,
  keepsText: boolean,
): ReadCsv {
  const text = bytes.toString('latin1').replace(/^\u00ef\u00bb\u00bf/, '');
  const all = text.split('\n');
  const unended = all.pop() ?? '';
  const lines = all.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  if (unended !== '') lines.push(unended);
  const hasHeader = /^"?[a-z]/i.test(lines[0] ?? '');
  const header = (lines[0] ?? '')
    .replaceAll('"', '')
    .split(',')
    .map((name) => name.trim());
  const expected = columns.map((column) => column.published ?? column.name);
  const isKnown = expected.every((name, at) => header[at] === name);
  const newNames = hasHeader ? header.slice(expected.length) : [];
  const areNames = newNames.every((name) => /^[a-z_][\w .%-]{0,63}$/i.test(name) && !expected.includes(name));
  if (hasHeader && !(isKnown && areNames)) return { rows: [], wrongLine: 1 };
  const rows: Cell[][] = [];
  for (const [index, line] of lines.entries()) {
    if (index === 0 && hasHeader) continue;
    const row = readRow(columns, newNames.length, symbol, line, keepsText);
    if (row === undefined) return { rows, wrongLine: index + 1 };
    rows.push(row);
  }
  return { rows };
}

function readRow(
  columns: readonly ColumnSpec[],
  newColumns: number,
  symbol: string,
  line: string,
  keepsText: boolean,
): Cell[] | undefined {
  const cells = line.split(',').map((cell) => /^"([^"]*)"$/.exec(cell)?.[1] ?? cell);
  if (cells.length !== columns.length + newColumns) return undefined;
  const row: Cell[] = [];
  for (const [at, column] of columns.entries()) {
    const value = valueOf(column, symbol, cells[at] ?? '', keepsText);
    if (value === undefined) return undefined;
    if (column.type !== 'symbol') row.push(value);
  }
  return row;
}

/** Undefined for a cell that is not what its column declares; instants are epoch microseconds. */
function valueOf(
  { type, nullable }: ColumnSpec,
  symbol: string,
  cell: string,
  keepsText: boolean,
): Cell | undefined {
  if (cell === '') return nullable && type !== 'symbol' ? null : undefined;
  const trimmed = cell.replace(/^ +| +$/g, '');
  switch (type) {
    case 'symbol':
      return cell === symbol ? cell : undefined;
    case 'text':
      return textOf(cell);
    case 'flag':
      return { true: true, false: false }[trimmed.toLowerCase()];
    case 'date':
      return trimmed.length === 10 ? instantOf(trimmed) : undefined;
    case 'datetime':
      return instantOf(trimmed);
    case 'time':
    case 'integer':
    case 'number':
    case 'hour':
      return numberOf(type, trimmed, keepsText);
  }
}

/** No published text holds a quote or a control character; bytes that are no UTF-8 are no text. */
function textOf(cell: string): string | undefined {
  const bytes = Buffer.from(cell, 'latin1');
  const isText = bytes.every((byte) => byte >= 0x20 && byte !== 0x7f && byte !== 0x22) && isUtf8(bytes);
  return isText ? bytes.toString('utf8') : undefined;
}

function instantOf(text: string): number | undefined {
  const match = /^(2\d{3})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d):(\d\d))?$/.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  const epochMs = Date.UTC(year, month - 1, day, hour, minute, second);
  const date = new Date(epochMs);
  const parts = [
    date.getUTCMonth() + 1,
    date.getUTCDate(),
    date.getUTCHours(),
    date.getUTCMinutes(),
    date.getUTCSeconds(),
  ];
  return parts.join() === [month, day, hour, minute, second].join() ? epochMs * 1000 : undefined;
}

function numberOf(
  type: 'time' | 'integer' | 'number' | 'hour',
  text: string,
  keepsText: boolean,
): Cell | undefined {
  const value = Number(text);
  if (!/^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(text) || !Number.isFinite(value)) return undefined;
  // A number that a double rounds to 0, and a time that no clock writes.
  const isTooSmall = value === 0 && /[1-9]/.test(text.replace(/e.*/i, ''));
  if ((isTooSmall && type !== 'hour') || (type === 'time' && /e/i.test(text))) return undefined;
  if (type === 'number') return keepsText ? text : value;
  if (!Number.isInteger(value)) return undefined;
  if (type === 'hour') return value >= 0 && value < 24 ? value : undefined;
  if (type === 'integer') return Number.isSafeInteger(value) ? value : undefined;
  if (value >= 1e12 && value < 1e13) return value * 1000;
  return value >= 1e15 && value < 1e16 ? value : undefined;
}
