/** Formats coverage for people: a heat-map and a table with gaps for each dataset and interval. */
import type { Amounts, SeriesStates } from '../../lake/catalogue/day-states.js';
import { dayText, monthOf, monthText } from '../../model/calendar.js';
import { hasColour } from '../../terminal/write-data.js';
import type { Io } from '../../model/io.js';
import { layerName } from '../../model/task.js';
import { printable } from '../../text/printable.js';
import { fitted, widthOf } from '../../text/wrap.js';
import { cellsOf, seriesLabel, heldPercentText, seriesTable } from '../../lake/catalogue/series-table.js';
import { percentOf } from '../../lake/catalogue/series-table.js';
import { MOST_DAYS, periodsOf, type CoveragePeriod } from '../../lake/catalogue/period-amounts.js';
import { DoubtSums } from '../../lake/catalogue/doubts.js';
import { GapGroups } from '../../lake/catalogue/gap-texts.js';
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
  const label = seriesLabel(states);
  const isShort = to - from <= MOST_DAYS;
  return {
    label,
    from,
    to,
    percent: heldPercentText(states),
    cells: cellsOf(label, states),
    days: by === 'day' || (by === undefined && isShort) ? amountsBy(states, 'day') : undefined,
    months: by === 'day' ? undefined : amountsBy(states, 'month'),
  };
}

const amountsBy = (states: SeriesStates, by: CoveragePeriod): Amounts[] =>
  periodsOf(states, by).map(({ expected, missing }) => ({ expected, missing }));

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

// Draws a heat-map: a line for each series, a cell for each day or month, or for several.

interface HeatRow {
  readonly label: string;
  /** Day of the first period. */
  readonly from: number;
  readonly periods: readonly Amounts[];
  readonly percent: string;
}

interface HeatStyle {
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

const indexOf = (day: number, by: CoveragePeriod): number => (by === 'day' ? day : monthOf(day));

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

const inColour = (text: string, colour: number, isColoured: boolean): string =>
  isColoured ? `\u001b[${colour}m${text}\u001b[0m` : text;
