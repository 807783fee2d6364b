/**
 * Makes the bars of a month in a table of DuckDB: `made`, with the columns of the dataset and `day`. Bars that are absent because the
 * source lacks all of their rows have `is_made` false. `is_short`: the source lacks rows of the bar.
 */
import type { Catalogue } from '../../lake/catalogue/catalogue.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import type { DuckDb } from '../../convert/duckdb.js';
import { DAY_MS, parseDay, startOfDay } from '../../model/calendar.js';
import { findDataset, intervalMs, type ExchangeSpec } from '../../exchange/exchange-spec.js';
import { missingDays, type BarSource } from './source.js';
import { nextStart, type BarRule } from './bar-rule.js';
import type { BarMonth, Recipe } from './bar-months.js';
import { barColumns, barsOf, sourceRows, withEmptyBars } from './bar-sql.js';

export interface BarTools {
  readonly duckdb: DuckDb;
  readonly catalogue: Catalogue;
  readonly exchange: ExchangeSpec;
}

/** Creates the table `made`. Rejects if the rows cannot be read, or have numbers out of range. */
export async function makeBars(
  { duckdb, catalogue, exchange }: BarTools,
  { rule, source, isFilled }: Recipe,
  month: BarMonth,
): Promise<void> {
  const relation = await catalogue.relation([{ series: source.series, files: month.from }], month.rows);
  if (relation === undefined) throw new RangeError('no file has rows of these days');
  const { lengthMs } = rule;
  const {
    rows: days,
    starts: { from, to },
  } = month;
  const lengthUs = lengthMs * 1000;
  const all = `SELECT unnest(range(${from * 1000}, ${to * 1000}, ${lengthUs})) AS b`;
  const lacksDays = lackingDays(source, days, lengthMs);
  // A day without source has no bars that begin on it, unless they are longer than a day.
  const starts = lengthMs > DAY_MS ? all : `SELECT b FROM (${all}) WHERE NOT ${lackingDays(source, days, 1)}`;
  // Bars outside of the starts of the month give only the close before an empty bar.
  const own = barsOf(sourceRows(source, relation.sql), bucketOf(rule), source.isText);
  // Of klines, candles are counted; of trades, whole days.
  const isShort =
    source.series.dataset === 'klines'
      ? `coalesce(row_count, 0) < ${lengthMs / intervalMs(source.series.interval ?? '')}`
      : lacksDays;
  const isFirst = from === nextStart(rule, startOfDay(source.from, source.spec));
  const columns = barColumns(source.isText, `b + ${lengthUs} - ${inclusiveEnd(exchange, source)}`);
  await duckdb.run(`CREATE OR REPLACE TEMP TABLE made AS
    SELECT CAST((b - ${source.spec.dayStartMs * 1000}) // ${DAY_MS * 1000} AS INTEGER) AS day,
      row_count IS NOT NULL${isFilled ? ` OR (before IS NOT NULL AND NOT ${lacksDays})` : ''} AS is_made,
      ${isShort}${isFirst ? ' AND before IS NOT NULL' : ''} AS is_short, ${columns}
    FROM (${withEmptyBars(own, starts)}) WHERE b IN (${starts})`);
}

/** The microseconds from the last one of a bar to the next bar: from a day on, the times of a market are published in microseconds. */
function inclusiveEnd(exchange: ExchangeSpec, { series }: BarSource): string {
  const rest = findDataset(exchange, series.market, 'klines')?.rest;
  const from =
    rest !== undefined && 'microsecondsFrom' in rest ? parseDay(rest.microsecondsFrom ?? '') : undefined;
  return from === undefined ? '1000' : `CASE WHEN b >= ${from * DAY_MS * 1000} THEN 1 ELSE 1000 END`;
}

/** True for a bar of this length with time in one of these days that the source does not have. */
function lackingDays(source: BarSource, { from, to }: DayRange, lengthMs: number): string {
  const missing = missingDays(source)
    .filter((day) => day >= from && day < to)
    .map((day) => {
      const [begin, end] = [startOfDay(day, source.spec), startOfDay(day + 1, source.spec)];
      return `(b < ${end * 1000} AND b + ${lengthMs * 1000} > ${begin * 1000})`;
    });
  return missing.length === 0 ? 'false' : `(${missing.join(' OR ')})`;
}

/** The start of the bar of a row, in microseconds. */
function bucketOf({ lengthMs, originMs }: BarRule): string {
  const [length, origin] = [lengthMs * 1000, originMs * 1000];
  return `(t - ${origin}) // ${length} * ${length} + ${origin}`;
}
