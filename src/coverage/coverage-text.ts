/** Prints coverage as text: for each dataset a heat-map, and a table with gaps. */
import { dayText } from '../model/calendar.js';
import { periodsOf } from './gaps.js';
import type { Amounts, Grain } from './gaps.js';
import { heatMap, legend } from './heat-map.js';
import { percentText, seriesTable, spanText, tableRow } from './series-table.js';
import type { TableRow } from './series-table.js';
import type { Io } from '../model/io.js';
import { printable } from '../text/printable.js';
import type { CoveredSeries, FoundHalt } from './cover-lake.js';
import type { Series } from '../model/task.js';

interface Row {
  readonly table: TableRow;
  /** Undefined when the heat-map is by month; `months` likewise. */
  readonly days: readonly Amounts[] | undefined;
  readonly months: readonly Amounts[] | undefined;
}

export interface CoverageText {
  /** Adds the next series. Returns the text of the finished datasets before it. */
  readonly add: (covered: CoveredSeries) => string;
  readonly end: (halts: readonly FoundHalt[]) => string;
}

const DEFAULT_WIDTH = 100;

/** Ranges longer than `mostDays` are shown by month, unless `by` is given. */
export function createCoverageText(io: Io, by: Grain | undefined, mostDays: number): CoverageText {
  const { stdout, environment } = io;
  const hasColour = stdout.isTTY === true && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb';
  const width = stdout.columns ?? DEFAULT_WIDTH;
  let group: CoveredSeries['coverage']['series'] | undefined;
  let rows: Row[] = [];
  let wasWritten = false;
  const flush = (): string => {
    if (group === undefined || rows.length === 0) return '';
    const text = `${wasWritten ? '\n' : ''}${section(group, rows, { by, mostDays, width, hasColour })}`;
    rows = [];
    wasWritten = true;
    return text;
  };
  return {
    add: (covered) => {
      const { series } = covered.coverage;
      const text = group !== undefined && groupName(group) !== groupName(series) ? flush() : '';
      group = series;
      rows.push(rowOf(covered, by, mostDays));
      return text;
    },
    end: (halts) => {
      const last = flush();
      if (!wasWritten) return '';
      const stood = halts.map(
        ({ from, to, ...of }) => `halt  ${groupName({ ...of, symbol: '' })}  ${spanText(from, to, 60)}\n`,
      );
      return `${last}\n${stood.join('')}${legend(hasColour)}\n`;
    },
  };
}

function rowOf({ coverage, gaps, ...amounts }: CoveredSeries, by: Grain | undefined, mostDays: number): Row {
  const { series, format, from, to } = coverage;
  const label = `${printable(series.symbol)}${format === undefined || format === 'parquet' ? '' : ` (${format})`}`;
  const isShort = to - from <= mostDays;
  return {
    table: tableRow(label, coverage, gaps, amounts),
    days: by === 'day' || (by === undefined && isShort) ? periodsOf(coverage, gaps, 'day') : undefined,
    months: by === 'day' ? undefined : periodsOf(coverage, gaps, 'month'),
  };
}

/** `um klines 1m` */
function groupName({ market, dataset, interval }: Series): string {
  return printable([market, dataset, interval].filter((part) => part !== undefined).join(' '));
}

interface Style {
  readonly by: Grain | undefined;
  readonly mostDays: number;
  readonly width: number;
  readonly hasColour: boolean;
}

function section(group: Series, rows: readonly Row[], { by, mostDays, ...style }: Style): string {
  const tables = rows.map(({ table }) => table);
  const from = Math.min(...tables.map(({ coverage }) => coverage.from));
  const to = Math.max(...tables.map(({ coverage }) => coverage.to));
  const grain = by ?? (to - from <= mostDays ? 'day' : 'month');
  const map = heatMap(
    rows.map(({ table, days, months }) => ({
      label: table.label,
      from: table.coverage.from,
      periods: (grain === 'day' ? days : months) ?? [],
      percent: percentText(table),
    })),
    { by: grain, ...style },
  );
  const range = to > from ? `  ${dayText(from)} … ${dayText(to - 1)}` : '';
  return [`${groupName(group)}${range}`, ...map, '', ...seriesTable(tables), ''].join('\n');
}
