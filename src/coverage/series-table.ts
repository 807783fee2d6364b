/** Formats the table of series and their gaps. */
import { dayText } from '../model/calendar.js';
import { numberText } from '../model/units.js';
import type { GapReason } from './absent-days.js';
import type { Amounts, Gap } from './gaps.js';
import { percentOf } from './gaps.js';
import { DAY_SECONDS } from './series-coverage.js';
import type { SeriesCoverage } from './series-coverage.js';

/** The printed fields of a series, without its days and gaps. */
type Shown = Pick<
  SeriesCoverage,
  | 'dayStartSeconds'
  | 'from'
  | 'to'
  | 'rowSeconds'
  | 'objects'
  | 'restObjects'
  | 'duplicates'
  | 'revisions'
  | 'first'
  | 'last'
>;

/** One row of the table. Keeps only a few gaps, to save memory in large lakes. */
export interface TableRow extends Amounts {
  readonly label: string;
  readonly coverage: Shown;
  /** The first gaps in which data is expected; `missingGaps`: the number of all such gaps. */
  readonly shown: readonly Gap[];
  readonly missingGaps: number;
  readonly notExpected: ReadonlyMap<GapReason, number>;
}

/** `--json` prints all gaps of a series. */
const MOST_SHOWN = 5;

export function tableRow(
  label: string,
  coverage: SeriesCoverage,
  gaps: readonly Gap[],
  amounts: Amounts,
): TableRow {
  const missing = gaps.filter((gap) => gap.isMissing);
  const notExpected = new Map<GapReason, number>();
  for (const gap of gaps)
    if (!gap.isMissing) notExpected.set(gap.reason, (notExpected.get(gap.reason) ?? 0) + gap.amount);
  const { dayStartSeconds, from, to, rowSeconds, objects, restObjects, duplicates, revisions, first, last } =
    coverage;
  return {
    label,
    coverage: {
      dayStartSeconds,
      from,
      to,
      rowSeconds,
      objects,
      restObjects,
      duplicates,
      revisions,
      first,
      last,
    },
    ...amounts,
    shown: missing.slice(0, MOST_SHOWN),
    missingGaps: missing.length,
    notExpected,
  };
}

/** Rounds down, so that 99.999 % is not printed as 100 %. */
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
/** Columns with text, aligned to the left. */
const LEFT = new Set([0, 4, 5, 6]);

/** One line per series, with its gaps below. */
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

function gapLines({ coverage, shown, missingGaps, notExpected }: TableRow): string[] {
  const unit = unitOf(coverage);
  const more = missingGaps - shown.length;
  const apart = [...notExpected].map(([reason, amount]) => `${amountText(amount, unit)} ${reason}`);
  return [
    ...shown.map((gap) => `  ${gapText(gap, coverage)}`),
    ...(more > 0 ? [`  and ${numberText(more)} more gaps: --json prints all`] : []),
    ...(apart.length > 0 ? [`  not counted: ${apart.join(', ')}`] : []),
  ];
}

/** Coverage counts rows where the number of rows of a day is known, else days. */
export function unitOf({ rowSeconds }: Pick<SeriesCoverage, 'rowSeconds'>): 'rows' | 'days' {
  return rowSeconds === undefined ? 'days' : 'rows';
}

/** `2024-01-12 … 2024-01-14  4,320 rows  unexplained`; the end is the last missing row or day. */
function gapText(gap: Gap, { rowSeconds, dayStartSeconds }: Shown): string {
  const amount = amountText(gap.amount, unitOf({ rowSeconds }));
  const stepSeconds = gap.reason === 'cut' ? 60 : rowSeconds;
  return `${spanText(gap.from, gap.to, stepSeconds, dayStartSeconds)}  ${amount}${gap.isLoose === true ? ' somewhere' : ''}  ${gap.reason}`;
}

/** The first and the last missing row or day, for example `2024-01-12 … 2024-01-14`. Times of rows are in UTC. */
export function spanText(from: number, to: number, rowSeconds = DAY_SECONDS, dayStartSeconds = 0): string {
  const isDays = from % DAY_SECONDS === 0 && to % DAY_SECONDS === 0;
  const last = isDays ? to - DAY_SECONDS : Math.max(from, to - rowSeconds);
  const text = (seconds: number): string =>
    isDays ? dayText(seconds / DAY_SECONDS) : timeText(seconds + dayStartSeconds);
  if (last <= from) return text(from);
  const isOneDay = text(from).slice(0, 10) === text(last).slice(0, 10);
  return `${text(from)} … ${isOneDay ? text(last).slice('2024-01-15 '.length) : text(last)}`;
}

/** `2024-01-15 03:00`; with seconds unless they are zero. */
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
