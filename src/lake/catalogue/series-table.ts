/** Formats the table of series. */
import type { Amounts, SeriesStates } from './day-states.js';
import { countText, numberText } from '../../model/units.js';
import { printable } from '../../text/printable.js';
import { table, type TableColumn } from '../../text/table.js';

/** Rounds down, so that 99.999 % is not printed as 100 %. */
export function heldPercentText(amounts: Amounts): string {
  const percent = percentOf(amounts);
  if (percent === undefined) return '-';
  return percent === 100 ? '100 %' : `${(Math.floor(percent * 100) / 100).toFixed(2)} %`;
}

/** The share of rows that are not expected. Rounded up, so that one row is not printed as 0 %. */
export function excusedText({ expected, excused }: Pick<SeriesStates, 'expected' | 'excused'>): string {
  if (excused === 0) return '-';
  return `${(Math.ceil((10_000 * excused) / (expected + excused)) / 100).toFixed(2)} %`;
}

const COLUMNS: readonly TableColumn[] = [
  { title: 'series' },
  { title: 'percent', isNumber: true },
  { title: 'excused', isNumber: true, rank: 0 },
  { title: 'held', isNumber: true },
  { title: 'expected', isNumber: true, rank: 1 },
  { title: '' },
  { title: 'first', rank: 2 },
  { title: 'last' },
  { title: 'objects', isNumber: true, rank: 3 },
  { title: 'rest', isNumber: true, rank: 4 },
  { title: 'dropped', isNumber: true, rank: 5 },
  { title: 'revised', isNumber: true, rank: 6 },
];

/** `rows`: the cells of each series. `width`: columns of the terminal; Infinity for a pipe, which gets all columns. */
export function seriesTable(rows: readonly (readonly string[])[], width = Infinity): string[] {
  return table(COLUMNS, rows, { width }).lines;
}

/** The cells of a row of `seriesTable`. */
export function cellsOf(label: string, states: SeriesStates): string[] {
  const { expected, missing, objects, restObjects, duplicates, revisions } = states;
  return [
    label,
    heldPercentText(states),
    excusedText(states),
    numberText(expected - missing),
    numberText(expected),
    unitOf(states),
    instantText(states.firstInstant),
    instantText(states.lastInstant),
    numberText(objects),
    numberText(restObjects),
    numberText(duplicates),
    numberText(revisions),
  ];
}

/** Coverage counts rows where the number of rows of a day is known, else days. */
export function unitOf({ rowSeconds }: Pick<SeriesStates, 'rowSeconds'>): 'rows' | 'days' {
  return rowSeconds === undefined ? 'days' : 'rows';
}

function instantText(iso: string | undefined): string {
  return iso === undefined ? '-' : iso.slice(0, 16).replace('T', ' ');
}

/** `1,440 rows` */
export const amountInUnit = (amount: number, unit: 'rows' | 'days'): string =>
  countText(amount, unit.slice(0, -1));

/** `1,440 rows and 2 days`, without zeros. */
export function amountsText({ rows, days }: Readonly<Record<'rows' | 'days', number>>): string {
  const texts = [rows > 0 ? amountInUnit(rows, 'rows') : '', days > 0 ? amountInUnit(days, 'days') : ''];
  return texts.filter(Boolean).join(' and ');
}

/** `BTCUSDT`, with the format if it is not Parquet. */
export const seriesLabel = ({ series, format }: Pick<SeriesStates, 'series' | 'format'>): string =>
  `${printable(series.symbol)}${format === undefined || format === 'parquet' ? '' : ` (${format})`}`;

/** Held share in percent; undefined when nothing is expected. */
export function percentOf({ expected, missing }: Amounts): number | undefined {
  return expected === 0 ? undefined : (100 * (expected - missing)) / expected;
}
