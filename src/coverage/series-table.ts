/** Series and their gaps as text for people. */
import { dayOf, dayText } from '../model/calendar.js';
import { numberText } from '../model/units.js';
import type { GapReason } from './absent-days.js';
import type { Amounts, Gap } from './gaps.js';
import { percentOf } from './gaps.js';
import { DAY_SECONDS } from './series-coverage.js';
import type { SeriesCoverage } from './series-coverage.js';

/** Of a series, what is shown: neither its days nor its gaps. */
type Shown = Pick<
  SeriesCoverage,
  'from' | 'to' | 'rowSeconds' | 'objects' | 'restObjects' | 'duplicates' | 'revisions' | 'first' | 'last'
>;

/** What a line of the table needs, without the gaps of a whole lake. */
export interface TableRow extends Amounts {
  readonly label: string;
  readonly coverage: Shown;
  /** The first of the missing, and how many there are. */
  readonly shown: readonly Gap[];
  readonly missingGaps: number;
  readonly cannotBe: ReadonlyMap<GapReason, number>;
}

/** More gaps of one series are told by --json and --csv. */
const MOST_SHOWN = 5;

export function tableRow(
  label: string,
  coverage: SeriesCoverage,
  gaps: readonly Gap[],
  amounts: Amounts,
): TableRow {
  const missing = gaps.filter((gap) => gap.isMissing);
  const cannotBe = new Map<GapReason, number>();
  for (const gap of gaps)
    if (!gap.isMissing) cannotBe.set(gap.reason, (cannotBe.get(gap.reason) ?? 0) + gap.amount);
  const { from, to, rowSeconds, objects, restObjects, duplicates, revisions, first, last } = coverage;
  return {
    label,
    coverage: { from, to, rowSeconds, objects, restObjects, duplicates, revisions, first, last },
    ...amounts,
    shown: missing.slice(0, MOST_SHOWN),
    missingGaps: missing.length,
    cannotBe,
  };
}

/** Never more than it is: 99.999 % is no 100 %. */
export function percentText(amounts: Amounts): string {
  const percent = percentOf(amounts);
  if (percent === undefined) return '-';
  return percent === 100 ? '100 %' : `${(Math.floor(percent * 100) / 100).toFixed(2)} %`;
}

const HEAD = [
  'series',
  'percent',
  'held',
  'expected',
  '',
  'first',
  'last',
  'objects',
  'rest',
  'dropped',
  'revised',
];
/** Columns that are no numbers. */
const LEFT = new Set([0, 4, 5, 6]);

/** A line per series, its gaps below it. */
export function seriesTable(rows: readonly TableRow[]): string[] {
  const cells = rows.map(cellsOf);
  const widths = HEAD.map((head, at) => Math.max(head.length, ...cells.map((line) => line[at]?.length ?? 0)));
  const lineOf = (line: readonly string[]): string =>
    line
      .map((cell, at) => (LEFT.has(at) ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join('  ')
      .trimEnd();
  return [lineOf(HEAD), ...rows.flatMap((row, at) => [lineOf(cells[at] ?? []), ...gapLines(row)])];
}

function cellsOf({ label, coverage, ...amounts }: TableRow): string[] {
  const { expected, missing } = amounts;
  const { objects, restObjects, duplicates, revisions, first, last } = coverage;
  return [
    label,
    percentText(amounts),
    numberText(expected - missing),
    numberText(expected),
    unitOf(coverage),
    instantText(first),
    instantText(last),
    numberText(objects),
    numberText(restObjects),
    numberText(duplicates),
    numberText(revisions),
  ];
}

function gapLines({ coverage, shown, missingGaps, cannotBe }: TableRow): string[] {
  const unit = unitOf(coverage);
  const more = missingGaps - shown.length;
  const apart = [...cannotBe].map(([reason, amount]) => `${amountText(amount, unit)} ${reason}`);
  return [
    ...shown.map((gap) => `  ${gapText(gap, coverage.rowSeconds)}`),
    ...(more > 0 ? [`  and ${numberText(more)} more gaps: --json tells all`] : []),
    ...(apart.length > 0 ? [`  not counted: ${apart.join(', ')}`] : []),
  ];
}

export function unitOf({ rowSeconds }: Pick<SeriesCoverage, 'rowSeconds'>): 'rows' | 'days' {
  return rowSeconds === undefined ? 'days' : 'rows';
}

/** `2024-01-12 … 2024-01-14  4,320 rows  unexplained`; ends are the last of what is missing. */
function gapText(gap: Gap, rowSeconds: number | undefined): string {
  const amount = amountText(gap.amount, unitOf({ rowSeconds }));
  const grain = gap.reason === 'cut' ? 60 : rowSeconds;
  return `${spanText(gap.from, gap.to, grain)}  ${amount}${gap.isLoose === true ? ' somewhere' : ''}  ${gap.reason}`;
}

export function spanText(from: number, to: number, rowSeconds = DAY_SECONDS): string {
  const isDays = from % DAY_SECONDS === 0 && to % DAY_SECONDS === 0;
  const last = isDays ? to - DAY_SECONDS : Math.max(from, to - rowSeconds);
  const text = (seconds: number): string => (isDays ? dayText(seconds / DAY_SECONDS) : timeText(seconds));
  if (last <= from) return text(from);
  const isOneDay = dayOf(from * 1000) === dayOf(last * 1000);
  return `${text(from)} … ${isOneDay ? text(last).slice('2024-01-15 '.length) : text(last)}`;
}

/** `2024-01-15 03:00`, with seconds where there are any. */
function timeText(seconds: number): string {
  const text = new Date(seconds * 1000).toISOString();
  return text.slice(0, text.endsWith(':00.000Z') ? 16 : 19).replace('T', ' ');
}

function instantText(iso: string | undefined): string {
  return iso === undefined ? '-' : iso.slice(0, 16).replace('T', ' ');
}

function amountText(amount: number, unit: 'rows' | 'days'): string {
  return `${numberText(amount)} ${amount === 1 ? unit.slice(0, -1) : unit}`;
}
