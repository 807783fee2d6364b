/** Reads a series as bars: one for each step of a time grid, made from all rows of the step. Memory depends on the grid only. */
import { instantExpression } from '../../convert/columns.js';
import type { Cell } from '../../convert/stream-rows.js';
import { quoteName, quoteText } from '../../convert/sql.js';
import { dayOf } from '../../model/calendar.js';
import type { Series } from '../../model/task.js';
import type { QueryFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { tableName } from '../../lake/catalogue/views.js';
import { queryLake } from '../../run/verb/query-lake.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import type { ChartColumns } from './choose-series.js';
import type { TimeGrid, TimeRange } from './time-grid.js';

/** The rows of a step. For a line, the prices are the values of its column. */
export interface Bar {
  /** The index of the step. */
  readonly index: number;
  /** Times of the first and the last row, epoch milliseconds. */
  readonly firstMs: number;
  readonly lastMs: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  /** 0 for a line. */
  readonly volume: number;
}

export interface BarQuery {
  readonly series: Series;
  readonly spec: DatasetSpec;
  readonly columns: ChartColumns;
  readonly grid: TimeGrid;
  readonly range: TimeRange;
}

/** The bars of all steps with rows, in their order. Rows with a value that is not a finite number are left out. */
export async function readBars(query: BarQuery, verb: VerbRequest<QueryFlag>): Promise<Bar[]> {
  const { series, spec, range } = query;
  const days = { from: dayOf(range.fromMs, spec), to: dayOf(range.toMs - 1, spec) + 1 };
  const result = await queryLake(barQuery(query), verb, { series: [series], range: days });
  const bars: Bar[] = [];
  try {
    for await (const rows of result.batches) for (const row of rows) bars.push(barOf(row));
  } finally {
    await result.close();
  }
  return bars;
}

function barOf(row: readonly Cell[]): Bar {
  const [index = 0, firstMs = 0, lastMs = 0, open = 0, high = 0, low = 0, close = 0, volume = 0] =
    row.map(Number);
  return { index, firstMs, lastMs, open, high, low, close, volume };
}

/** The query: times are filtered on the column itself, so that DuckDB skips row groups. */
export function barQuery({ series, spec, columns, grid, range }: BarQuery): string {
  const [open, high, low, close] =
    columns.kind === 'candles'
      ? ['open', 'high', 'low', 'close'].map(numberSql)
      : Array.from({ length: 4 }, () => numberSql(columns.column.name));
  const volume = columns.kind === 'candles' && columns.hasVolume ? numberSql('volume') : '0';
  const time = instantExpression(spec);
  const conditions = [
    `symbol = ${quoteText(series.symbol)}`,
    ...(series.interval === undefined ? [] : [`"interval" = ${quoteText(series.interval)}`]),
    `${time} >= ${instant(range.fromMs)}`,
    `${time} < ${instant(range.toMs)}`,
  ];
  return `SELECT ${grid.indexSql('t')} AS step, min(t), max(t),
  arg_min(o, t), max(greatest(o, h, l, c)), min(least(o, h, l, c)), arg_max(c, t), sum(CASE WHEN ${isNumber('v')} THEN v ELSE 0 END)
FROM (
  SELECT CAST(epoch_ms(${time}) AS DOUBLE) AS t, ${open} AS o, ${high} AS h, ${low} AS l, ${close} AS c, CAST(${volume} AS DOUBLE) AS v
  FROM ${quoteName(tableName(series))} WHERE ${conditions.join(' AND ')})
WHERE ${['o', 'h', 'l', 'c'].map(isNumber).join(' AND ')}
GROUP BY step ORDER BY step`;
}

/** Lakes may hold numbers as text. */
const numberSql = (name: string): string => `TRY_CAST(${quoteName(name)} AS DOUBLE)`;

/** False for NULL, NaN and infinities, and for numbers whose differences and sums could be infinite. */
const isNumber = (name: string): string => `abs(${name}) < 1e200`;

/** Columns may have times with or without a time zone; DuckDB compares both with this literal. */
const instant = (ms: number): string =>
  `TIMESTAMP '${new Date(Math.floor(ms)).toISOString().slice(0, 23).replace('T', ' ')}'`;
