/** Values of an answer as text that loses nothing. */
import type { Cell } from '../duckdb.js';

/** Rows as CSV lines: blank is NULL, `""` the empty text; lists and structs as JSON. */
export function csvLine(row: readonly Cell[]): string {
  return `${row.map(csvCell).join(',')}\n`;
}

function csvCell(cell: Cell): string {
  if (cell === null) return '';
  const text = plainText(cell);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A text as it is, everything else as JSON has it, but for quotes. */
export function plainText(cell: Exclude<Cell, null>): string {
  if (typeof cell === 'string') return cell;
  return typeof cell === 'bigint' ? String(cell) : JSON.stringify(exact(cell));
}

/** Rows as NDJSON lines. */
export function jsonLine(names: readonly string[]): (row: readonly Cell[]) => string {
  return (row) =>
    `${JSON.stringify(Object.fromEntries(names.map((name, at) => [name, exact(row[at] ?? null)])))}\n`;
}

/** Whole numbers that a reader of JSON would round are text. */
function exact(cell: Cell): Cell {
  if (typeof cell === 'bigint') {
    const number = Number(cell);
    return Number.isSafeInteger(number) ? number : String(cell);
  }
  if (typeof cell !== 'object' || cell === null) return cell;
  if (isList(cell)) return cell.map(exact);
  return Object.fromEntries(Object.entries(cell).map(([name, value]) => [name, exact(value)]));
}

function isList(cell: object): cell is readonly Cell[] {
  return Array.isArray(cell);
}
