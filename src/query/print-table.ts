/** An answer as a table on a terminal: as wide as the terminal, as long as people read. */
import { writeData } from '../cli/write-data.js';
import type { Answer, Cell, Column } from '../convert/duckdb.js';
import type { Io } from '../model/io.js';
import { numberText } from '../model/units.js';
import { tabbed } from '../text/printable.js';

const MOST_ROWS = 40;
const MOST_CELL_COLUMNS = 60;
const GAP = '  ';

/** How many rows there are, shown or not; undefined when the reader has gone. */
export async function printTable(io: Io, { columns, batches }: Answer): Promise<number | undefined> {
  const shown: string[][] = [];
  let rows = 0;
  for await (const batch of batches) {
    for (const row of batch.slice(0, MOST_ROWS - shown.length)) shown.push(row.map(cellText));
    rows += batch.length;
    if (!io.isRead()) return undefined;
  }
  const table = layOut(columns, shown, io.stdout.columns ?? 80);
  const hidden = [
    ...moreText(rows - shown.length, 'row'),
    ...moreText(columns.length - table.columns, 'column'),
  ];
  const last = hidden.length === 0 ? [] : [`… ${hidden.join(', ')}: --csv for all`];
  await writeData(io, [...table.lines, ...last]);
  return rows;
}

function moreText(number: number, what: string): string[] {
  return number === 0 ? [] : [`${numberText(number)} more ${what}${number === 1 ? '' : 's'}`];
}

/** As many columns as fit, the first one always. */
function layOut(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  room: number,
): { lines: string[]; columns: number } {
  const widths = columns.map(({ name }, at) =>
    Math.max(...[shortened(name), ...rows.map((row) => row[at] ?? '')].map(displayWidth)),
  );
  let width = 0;
  const fitting = widths.findIndex((own, at) => {
    width += own + (at === 0 ? 0 : GAP.length);
    return at > 0 && width > room;
  });
  const number = fitting < 0 ? columns.length : fitting;
  const line = (cells: readonly string[]): string =>
    cells
      .slice(0, number)
      .map((cell, at) => {
        const space = ' '.repeat(Math.max(0, (widths[at] ?? 0) - displayWidth(cell)));
        return columns[at]?.isNumber === true ? space + cell : cell + space;
      })
      .join(GAP)
      .trimEnd();
  return {
    lines: [
      line(columns.map(({ name }) => shortened(name))),
      line(widths.map((own) => '─'.repeat(own))),
      ...rows.map(line),
    ],
    columns: number,
  };
}

function cellText(cell: Cell): string {
  return cell === null ? 'NULL' : shortened(plainText(cell).replace(INSTANT, '$1 $2'));
}

/** Whole seconds need no digits behind them. */
const INSTANT = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.000000Z$/;

/** No wider than a cell may be. */
function shortened(text: string): string {
  const plain = tabbed([text]);
  if (displayWidth(plain) <= MOST_CELL_COLUMNS) return plain;
  let cut = '';
  for (const character of plain) {
    if (displayWidth(cut + character) >= MOST_CELL_COLUMNS) break;
    cut += character;
  }
  return `${cut}…`;
}

/** Terminals give East Asian characters two columns, and marks none. */
function displayWidth(text: string): number {
  const bare = text.replaceAll(/\p{M}/gu, '');
  return Array.from(bare).length + Array.from(bare.matchAll(WIDE)).length;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/gu;

// Values of an answer as text that loses nothing.

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
function plainText(cell: Exclude<Cell, null>): string {
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
