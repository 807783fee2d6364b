/** Prints a query result: as a table that fits the terminal, or as lines of CSV or NDJSON. */
import { writeData } from '../cli/write-data.js';
import type { Cell, Column, QueryResult } from '../convert/query-stream.js';
import type { Io } from '../model/io.js';
import { numberText } from '../model/units.js';
import { tabbed } from '../text/printable.js';

const MOST_ROWS = 40;
const MOST_CELL_COLUMNS = 60;
const GAP = '  ';

/** Resolves with the number of rows, shown or not; undefined when the reader of stdout has closed it. */
export async function printTable(io: Io, { columns, batches }: QueryResult): Promise<number | undefined> {
  const shown: string[][] = [];
  let rows = 0;
  for await (const batch of batches) {
    for (const row of batch.slice(0, MOST_ROWS - shown.length)) shown.push(row.map(cellText));
    rows += batch.length;
    if (!io.isRead()) return undefined;
  }
  for (const at of columns.keys()) alignTimes(shown, at);
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

/** Shows as many columns as fit, at least the first. */
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
  return cell === null ? 'NULL' : shortened(plainText(cell));
}

const INSTANT = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d{6})Z$/;

/** Writes the times of a column in one form: all without a fraction if they are whole seconds, else all with microseconds. */
function alignTimes(rows: readonly string[][], at: number): void {
  const times = rows.map((row) => INSTANT.exec(row[at] ?? ''));
  const isWhole = times.every((time) => time === null || time[3] === '.000000');
  for (const [index, time] of times.entries()) {
    const row = rows[index];
    if (time === null || row === undefined) continue;
    const [, day = '', seconds = '', fraction = ''] = time;
    row[at] = `${day} ${seconds}${isWhole ? '' : fraction}`;
  }
}

/** Cuts the text at the width of a cell. */
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

/** Terminals show East Asian characters in two columns, and combining marks in none. */
function displayWidth(text: string): number {
  const bare = text.replaceAll(/\p{M}/gu, '');
  return Array.from(bare).length + Array.from(bare.matchAll(WIDE)).length;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/gu;

/** A row as a CSV line: an empty cell is NULL, `""` is the empty text; lists and structs are JSON. */
export function csvLine(row: readonly Cell[]): string {
  return `${row.map(csvCell).join(',')}\n`;
}

function csvCell(cell: Cell): string {
  if (cell === null) return '';
  const text = plainText(cell);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Text without quotes; other values as JSON. */
function plainText(cell: Exclude<Cell, null>): string {
  if (typeof cell === 'string') return cell;
  return typeof cell === 'bigint' ? String(cell) : JSON.stringify(exact(cell));
}

/** A row as an NDJSON line. */
export function jsonLine(names: readonly string[]): (row: readonly Cell[]) => string {
  return (row) =>
    `${JSON.stringify(Object.fromEntries(names.map((name, at) => [name, exact(row[at] ?? null)])))}\n`;
}

/** Integers above 2^53, which JSON readers round, become text. */
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
