/** Formats coverage: a heat-map and a table with gaps for people, NDJSON or CSV for programs. */
import { DAY_SECONDS } from '../../lake/catalogue/gap.js';
import type { Gap } from '../../lake/catalogue/gap.js';
import type { Amounts, SeriesStates } from '../../lake/catalogue/day-states.js';
import { dayText, monthOf, monthText } from '../../model/calendar.js';
import { hasColour } from '../../terminal/write-data.js';
import type { Io } from '../../model/io.js';
import { layerName } from '../../model/task.js';
import type { Format, Series } from '../../model/task.js';
import { csvLine } from '../../text/csv.js';
import { printable } from '../../text/printable.js';
import { fitted, widthOf } from '../../text/wrap.js';
import {
  percentOf,
  cellsOf,
  labelOf,
  percentText,
  seriesTable,
  unitOf,
} from '../../lake/catalogue/series-table.js';
import { MOST_DAYS, periodsOf } from '../../lake/catalogue/period-amounts.js';
import type { CoveragePeriod } from '../../lake/catalogue/period-amounts.js';
import { DoubtSums } from '../../lake/catalogue/doubts.js';
import type { Doubts } from '../../lake/catalogue/doubts.js';
import { GapGroups } from '../../lake/catalogue/gap-groups.js';
import { grouped } from '../../model/by-name.js';

/** Of a heat-map in a pipe. */
const USUAL_WIDTH = 100;

/** The width is Infinity for a pipe. */
type Style = Omit<HeatStyle, 'by'> & { readonly by: CoveragePeriod | undefined };

/** The series of one dataset and interval. */
interface Group {
  readonly name: string;
  readonly rows: ReturnType<typeof rowOf>[];
  readonly gaps: GapGroups;
  readonly doubts: DoubtSums;
}

/**
 * Formats coverage for people: a text for each dataset and interval, then a legend. Also yields an empty text after each series, so that
 * the caller may stop. `isAll`: whether all gaps are shown.
 */
export async function* coverageTexts(
  covered: AsyncIterable<SeriesStates>,
  io: Io,
  { by, isAll }: Pick<Style, 'by'> & { readonly isAll: boolean },
): AsyncGenerator<string> {
  const style: Style = { by, width: widthOf(io.stdout), hasColour: hasColour(io) };
  let group: Group | undefined;
  for await (const states of covered) {
    const name = printable(layerName(states.series));
    if (group?.name !== name) {
      if (group !== undefined) yield `${section(group, style)}\n`;
      group = { name, rows: [], gaps: new GapGroups(isAll), doubts: new DoubtSums() };
    } else yield '';
    const row = rowOf(states, by);
    group.rows.push(row);
    group.gaps.add(row.label, states, states.gaps);
    group.doubts.add(row.label, states.doubts);
  }
  if (group === undefined) return;
  yield `${section(group, style)}\n`;
  yield `${fitted(legend(style.hasColour), style.width).join('\n')}\n`;
}

/** A series without its gaps, to save memory in large lakes. `days` or `months` are undefined if the heat-map cannot be by them. */
function rowOf(states: SeriesStates, by: CoveragePeriod | undefined) {
  const { from, to } = states;
  const label = labelOf(states);
  const isShort = to - from <= MOST_DAYS;
  return {
    label,
    from,
    to,
    percent: percentText(states),
    cells: cellsOf(label, states),
    days: by === 'day' || (by === undefined && isShort) ? amountsBy(states, 'day') : undefined,
    months: by === 'day' ? undefined : amountsBy(states, 'month'),
  };
}

function amountsBy(states: SeriesStates, by: CoveragePeriod): Amounts[] {
  return periodsOf(states, by).map(({ expected, missing }) => ({ expected, missing }));
}

function section({ name, rows, gaps, doubts }: Group, { by, width, hasColour: isColoured }: Style): string {
  const from = Math.min(...rows.map((row) => row.from));
  const to = Math.max(...rows.map((row) => row.to));
  const period = by ?? (to - from <= MOST_DAYS ? 'day' : 'month');
  const map = heatMap(
    rows.map((row) => ({ ...row, periods: (period === 'day' ? row.days : row.months) ?? [] })),
    { by: period, width: Number.isFinite(width) ? width : USUAL_WIDTH, hasColour: isColoured },
  );
  const range = to > from ? `  ${dayText(from)} … ${dayText(to - 1)}` : '';
  return [
    `${name}${range}`,
    ...map,
    '',
    ...seriesTable(
      rows.map(({ cells }) => cells),
      width,
    ),
    ...[...gaps.lines(), ...doubts.lines()].flatMap((line) => fitted(line, width)),
    '',
  ].join('\n');
}

// NDJSON and CSV. Times are ISO 8601, spans are half-open.

/** Amounts in rows or days. */
interface AmountsRecord {
  /** Without the excused ones. */
  readonly expected: number;
  readonly held: number;
  readonly missing: number;
  /** Rounded down, so that only a complete series has 100; null if nothing is expected. */
  readonly percent: number | null;
}

/** The coverage of a series in one format. `excused` is the amount of the gaps in which no data is expected. */
export interface SeriesRecord
  extends
    Series,
    AmountsRecord,
    Doubts,
    Pick<SeriesStates, 'excused' | 'objects' | 'restObjects' | 'duplicates' | 'revisions'> {
  /** Null if the lake holds no file of the series. */
  readonly format: Format | null;
  /** ISO instants `[from, to)`. */
  readonly from: string;
  readonly to: string;
  readonly unit: 'rows' | 'days';
  readonly rows: number | null;
  /** ISO instants of the first and the last row. */
  readonly first: string | null;
  readonly last: string | null;
  readonly gaps: readonly GapRecord[];
  readonly by: CoveragePeriod;
  /** `2024-01-15` or `2024-01`. */
  readonly periods: readonly (AmountsRecord & { readonly period: string })[];
}

/** ISO instants `[from, to)`, the amount in the unit of the series, the reason and its evidence. */
interface GapRecord extends Pick<Gap, 'reason' | 'evidence'> {
  readonly from: string;
  readonly to: string;
  readonly rows?: number;
  readonly days?: number;
  /** False if no data is expected. */
  readonly missing: boolean;
  /** Present if the exact place of the missing rows is not known. */
  readonly located?: false;
}

/** One object per series and format. */
export function seriesRecord(states: SeriesStates, by: CoveragePeriod): SeriesRecord {
  const { series, format, from, to, objects, restObjects, rows, duplicates, revisions } = states;
  const unit = unitOf(states);
  const instantOf = (seconds: number): string =>
    new Date((seconds + states.dayStartSeconds) * 1000).toISOString();
  return {
    ...series,
    format: format ?? null,
    from: instantOf(from * DAY_SECONDS),
    to: instantOf(to * DAY_SECONDS),
    unit,
    ...amountsRecord(states),
    excused: states.excused,
    objects,
    restObjects,
    rows: rows ?? null,
    duplicates,
    ...states.doubts,
    revisions,
    first: states.first ?? null,
    last: states.last ?? null,
    gaps: states.gaps.map((gap) => ({
      from: instantOf(gap.from),
      to: instantOf(gap.to),
      reason: gap.reason,
      [unit]: gap.amount,
      missing: gap.isMissing,
      ...(gap.evidence === undefined ? {} : { evidence: gap.evidence }),
      ...(gap.isLoose === true ? { located: false } : {}),
    })),
    by,
    periods: periodsOf(states, by).map(({ period, ...amounts }) => ({ period, ...amountsRecord(amounts) })),
  };
}

function amountsRecord(amounts: Amounts): AmountsRecord {
  const { expected, missing } = amounts;
  const percent = percentOf(amounts);
  const rounded = percent === undefined ? null : Math.floor(percent * 10_000) / 10_000;
  return { expected, held: expected - missing, missing, percent: rounded };
}

export const CSV_HEAD =
  'market,dataset,interval,symbol,format,period,unit,expected,held,missing,percent,reasons\n';

/** A line of CSV per series and period. `reasons` includes those of gaps in which no data is expected. */
export function csvLines(states: SeriesStates, by: CoveragePeriod): string[] {
  const { market, dataset, interval, symbol } = states.series;
  const about = [market, dataset, interval ?? null, symbol, states.format ?? null];
  return periodsOf(states, by).map(({ period, gaps, ...amounts }) => {
    const { expected, held, missing, percent } = amountsRecord(amounts);
    const reasons = [...new Set(gaps.map(({ reason }) => reason))].join(' ');
    const counted = [unitOf(states), expected, held, missing, percent];
    return csvLine([...about, period, ...counted, reasons === '' ? null : reasons]);
  });
}

export interface HeatRow {
  readonly label: string;
  /** Day of the first period. */
  readonly from: number;
  readonly periods: readonly Amounts[];
  readonly percent: string;
}

export interface HeatStyle {
  readonly by: CoveragePeriod;
  /** Columns of the terminal. */
  readonly width: number;
  readonly hasColour: boolean;
}

/**
 * The first level whose least percentage a cell has is drawn; it has Infinity if no data is expected. Each level has its own character, for
 * terminals without colour. `colour`: the ANSI code.
 */
const LEVELS = [
  { character: '·', colour: 90, meaning: 'no data expected', least: Infinity },
  { character: '█', colour: 32, meaning: 'complete', least: 100 },
  { character: '▓', colour: 33, meaning: '95 % or more', least: 95 },
  { character: '▒', colour: 33, meaning: '50 % or more', least: 50 },
  { character: '░', colour: 31, meaning: 'less', least: Number.MIN_VALUE },
  { character: 'x', colour: 31, meaning: 'nothing', least: 0 },
];

const LONGEST_LABEL = 24;
const FEWEST_CELLS = 10;

/** Lines without line feeds: an axis, one line for each series, and the scale if a cell has several periods. */
export function heatMap(rows: readonly HeatRow[], style: HeatStyle): string[] {
  const { by, width } = style;
  const first = Math.min(...rows.map(({ from }) => indexOf(from, by)));
  const end = Math.max(...rows.map(({ from, periods }) => indexOf(from, by) + periods.length));
  if (!(end > first)) return [];
  const labelWidth = Math.min(LONGEST_LABEL, Math.max(...rows.map(({ label }) => label.length)));
  const percentWidth = Math.max(...rows.map(({ percent }) => percent.length));
  const room = Math.max(FEWEST_CELLS, width - labelWidth - percentWidth - 4);
  const perCell = Math.ceil((end - first) / room);
  const cells = Math.ceil((end - first) / perCell);
  return [
    `${' '.repeat(labelWidth + 2)}${axis(first, end, by, cells)}`,
    ...rows.map(({ label, from, periods, percent }) => {
      const places = { offset: indexOf(from, by) - first, perCell, cells };
      const line = painted(periods, places, style.hasColour);
      const name = label.length > labelWidth ? `${label.slice(0, labelWidth - 1)}…` : label;
      return `${name.padEnd(labelWidth)}  ${line}  ${percent.padStart(percentWidth)}`;
    }),
    ...(perCell === 1 ? [] : [`${' '.repeat(labelWidth + 2)}a cell is ${perCell} ${by}s`]),
  ];
}

function legend(isColoured: boolean): string {
  return LEVELS.map(
    ({ character, colour, meaning }) => `${inColour(character, colour, isColoured)} ${meaning}`,
  ).join('   ');
}

function indexOf(day: number, by: CoveragePeriod): number {
  return by === 'day' ? day : monthOf(day);
}

/** First and last period: at both ends of the cells, or `2024-01 … 2024-12` if they do not fit. */
function axis(first: number, end: number, by: CoveragePeriod, cells: number): string {
  const name = by === 'day' ? dayText : monthText;
  const [left, right] = [name(first), name(end - 1)];
  if (end - first === 1) return left;
  return left.length + right.length + 3 > cells
    ? `${left} … ${right}`
    : left + ' '.repeat(cells - left.length - right.length) + right;
}

/** A cell without a period of the series is a space. `offset`: the periods before the first one. */
function painted(
  periods: readonly Amounts[],
  { offset, perCell, cells }: { readonly offset: number; readonly perCell: number; readonly cells: number },
  isColoured: boolean,
): string {
  const ofCell = grouped(periods.entries(), ([index]) => Math.floor((offset + index) / perCell));
  return Array.from({ length: cells }, (_, cell) => {
    const own = ofCell.get(cell)?.map(([, amounts]) => amounts);
    if (own === undefined) return ' ';
    const sumOf = (name: keyof Amounts): number => own.reduce((sum, amounts) => sum + amounts[name], 0);
    const percent = percentOf({ expected: sumOf('expected'), missing: sumOf('missing') }) ?? Infinity;
    const level = LEVELS.find(({ least }) => percent >= least);
    return level === undefined ? ' ' : inColour(level.character, level.colour, isColoured);
  }).join('');
}

function inColour(text: string, colour: number, isColoured: boolean): string {
  return isColoured ? `\u001b[${colour}m${text}\u001b[0m` : text;
}
