/** The rows of a written file, as plain values that can be compared with what a CSV says. */
import { readFileSync } from 'node:fs';
import type { ColumnSpec } from '../../src/exchange/facts.js';
import { readParquet } from '../helpers/lake.js';
import type { Cell } from './csv-reader.js';

/** Parquet gives instants to the millisecond: its reader makes dates of them. */
export async function heldRows(file: string, columns: readonly ColumnSpec[]): Promise<Cell[][]> {
  const written = columns.filter(({ type }) => type !== 'symbol');
  if (file.endsWith('.parquet')) {
    const rows = await readParquet(file);
    return rows.map((row) => written.map(({ name }) => plain(row[name])));
  }
  const [, ...records] = readRecords(readFileSync(file, 'utf8'));
  return records.map((cells) => written.map(({ type }, at) => cellOf(type, cells[at] ?? '')));
}

function plain(value: unknown): Cell {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'bigint') return Number(value);
  return value === undefined ? null : (value as Cell);
}

function cellOf(type: ColumnSpec['type'], text: string): Cell {
  if (text === '') return null;
  if (type === 'flag') return text === 'true';
  if (type === 'date') return Date.parse(`${text}T00:00:00Z`) * 1000;
  return type === 'number' || type === 'text' ? text : Number(text);
}

/** RFC 4180. */
function readRecords(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  for (const [, quoted, bare = '', end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\n]*))(,|\n|$)/g)) {
    if (end === '' && bare === '' && quoted === undefined && record.length === 0) break;
    record.push(quoted?.replaceAll('""', '"') ?? bare);
    if (end === ',') continue;
    records.push(record);
    record = [];
  }
  return records;
}
