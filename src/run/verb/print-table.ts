/** Prints a query result: as a table that fits the terminal, or as lines of CSV or NDJSON. */
import { writeData, writeExact } from '../../terminal/write-data.js';
import type { Cell, QueryResult } from '../../convert/stream-rows.js';
import type { Io } from '../../model/io.js';
import { countText } from '../../model/units.js';
import { csvLine } from '../../text/csv.js';
import { tabbed } from '../../text/printable.js';
import { table } from '../../text/table.js';
import { displayWidth, widthOf } from '../../text/wrap.js';

const MOST_ROWS = 40;
/** In columns of the terminal. */
const MOST_CELL_WIDTH = 60;

/** Resolves with the number of rows, shown or not; undefined when the reader of stdout has closed it. */
export async function printTable(io: Io, { columns, batches }: QueryResult): Promise<number | undefined> {
  const shown: string[][] = [];
  let rows = 0;
  for await (const batch of batches) {
    for (const row of batch.slice(0, MOST_ROWS - shown.length)) shown.push(row.map(cellText));
    rows += batch.length;
    if (!io.isRead()) return undefined;
  }
  const { lines, hidden } = table(
    columns.map(({ name, isNumber }, index) => ({
      title: shortened(name),
      isNumber,
      ...(index === 0 ? {} : { rank: index }),
    })),
    shown,
    { width: widthOf(io.stdout), hasRule: true },
  );
  const left = { 'more row': rows - shown.length, 'more column': hidden };
  const more = Object.entries(left).flatMap(([what, count]) => (count === 0 ? [] : [countText(count, what)]));
  await writeData(io, [...lines, ...(more.length === 0 ? [] : [`… ${more.join(', ')}: --csv for all`])]);
  return rows;
}

/** A table shows instants as `2024-01-15 08:00:00`, with microseconds only if they are not zero. */
const INSTANT = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.000000|(\.\d{6}))Z$/;

function cellText(cell: Cell): string {
  return cell === null ? 'NULL' : shortened(plainText(cell).replace(INSTANT, '$1 $2$3'));
}

function shortened(text: string): string {
  const plain = tabbed([text]);
  if (displayWidth(plain) <= MOST_CELL_WIDTH) return plain;
  let cut = '';
  for (const character of plain) {
    if (displayWidth(cut + character) >= MOST_CELL_WIDTH) break;
    cut += character;
  }
  return `${cut}…`;
}

/** Prints CSV with a header, or NDJSON. Resolves with the number of rows; undefined when the reader of stdout has closed it. */
export async function printRows(
  io: Io,
  { columns, batches }: QueryResult,
  isJson: boolean,
): Promise<number | undefined> {
  const names = columns.map(({ name }) => name);
  const jsonRow = (row: readonly Cell[]): string =>
    `${JSON.stringify(Object.fromEntries(names.map((name, index) => [name, exact(row[index] ?? null)])))}\n`;
  if (!isJson && !(await writeExact(io, csvRow(names)))) return undefined;
  let number = 0;
  for await (const rows of batches) {
    number += rows.length;
    if (!(await writeExact(io, rows.map(isJson ? jsonRow : csvRow).join('')))) return undefined;
  }
  return number;
}

/** A row as a CSV line; lists and structs are JSON. */
const csvRow = (row: readonly Cell[]): string =>
  csvLine(row.map((cell) => (cell === null ? null : plainText(cell))));

function plainText(cell: Exclude<Cell, null>): string {
  if (typeof cell === 'string') return cell;
  return typeof cell === 'bigint' ? String(cell) : JSON.stringify(exact(cell));
}

/** A bigint becomes a number if JSON readers keep it exactly (at most 2^53 − 1 in size), else text. */
function exact(cell: Cell): Cell {
  if (typeof cell === 'bigint') {
    const number = Number(cell);
    return Number.isSafeInteger(number) ? number : String(cell);
  }
  if (typeof cell !== 'object' || cell === null) return cell;
  if (Array.isArray(cell)) return (cell as readonly Cell[]).map(exact);
  return Object.fromEntries(Object.entries(cell).map(([name, value]) => [name, exact(value)]));
}
