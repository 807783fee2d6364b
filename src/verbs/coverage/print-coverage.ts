/** Formats coverage for people: a heat-map and a table with gaps for each dataset and interval. */
import type { Amounts, SeriesStates } from '../../lake/catalogue/day-states.js';
import { dayText } from '../../model/calendar.js';
import { hasColour } from '../../terminal/write-data.js';
import type { Io } from '../../model/io.js';
import { layerName } from '../../model/task.js';
import { printable } from '../../text/printable.js';
import { fitted, widthOf } from '../../text/wrap.js';
import { cellsOf, seriesLabel, heldPercentText, seriesTable } from '../../lake/catalogue/series-table.js';
import { MOST_DAYS, periodsOf, type CoveragePeriod } from '../../lake/catalogue/period-amounts.js';
import { DoubtSums } from '../../lake/catalogue/doubts.js';
import { GapGroups } from '../../lake/catalogue/gap-texts.js';
import { heatMap, legend, type HeatStyle } from './heat-map.js';

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
