/**
 * Makes the bars of a month in a table of DuckDB: `made`, with the columns of the dataset and `day`. Bars that are absent because the
 * source lacks all of their rows have `is_made` false. `is_short`: the source lacks rows of the bar.
 */
import type { Catalogue } from '../../lake/catalogue/catalogue.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import type { DuckDb } from '../../convert/duckdb.js';
import { parseDay, startOfDay } from '../../model/calendar.js';
import { DAY_MS } from '../../model/units.js';
import { findDataset, intervalMs, type ExchangeSpec } from '../../exchange/exchange-spec.js';
import { missingDays, type BarSource } from './source.js';
import { nextStart, type BarRule } from './bar-rule.js';
import type { BarMonth, Recipe } from './bar-months.js';
import { quoteName } from '../../convert/sql.js';

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

// The SQL of bars. Sums are exact: numbers become decimals before they are added, and become a double or a text only after the last one. Relations have
// `t` (microseconds), `seq` (the order of rows), open, high, low and close as `o`, `h`, `l`, `c`, volumes as decimals `v`, `q`, `tv`, `tq`, and trades
// as `n`.

/** Digits after the point of sums. The exchange publishes at most 8; a price times a quantity has 16. */
const SUMS = [
  { name: 'v', column: 'volume', scale: 8 },
  { name: 'q', column: 'quote_volume', scale: 16 },
  { name: 'tv', column: 'taker_buy_volume', scale: 8 },
  { name: 'tq', column: 'taker_buy_quote_volume', scale: 16 },
] as const;
const VOLUME = 'DECIMAL(38, 8)';
const QUOTE = 'DECIMAL(38, 16)';
/** The exchange counts quantities in 64 bits with 8 digits after the point. */
const FACTOR = 'DECIMAL(19, 8)';

/**
 * A double as the published decimal number. Up to this bound, its product with 10^8 is off by less than a half, so the direct cast is
 * exact. Larger numbers take the way over their shortest text, which is slower.
 */
const DIRECT_BELOW = 10_000_000;

function decimalOf(expression: string, isText: boolean, type = VOLUME): string {
  if (isText) return `CAST(${expression} AS ${type})`;
  return `CASE WHEN abs(${expression}) < ${DIRECT_BELOW} THEN CAST(${expression} AS ${type}) ELSE CAST(CAST(${expression} AS VARCHAR) AS ${type}) END`;
}

export function sourceRows({ series, spec, isText }: BarSource, rows: string): string {
  if (series.dataset === 'klines') return klineRows(rows, isText);
  const isAggregated = series.dataset === 'aggTrades';
  const counted = isAggregated ? withoutRepeated(rows) : rows;
  const [time, id, quantity] = isAggregated
    ? ['transact_time', 'agg_trade_id', 'quantity']
    : ['time', 'id', 'qty'];
  const trades = isAggregated ? 'last_trade_id - first_trade_id + 1' : '1';
  const base = spec.columns.some(({ name }) => name === 'base_qty') ? 'base_qty' : undefined;
  const [price, amount] = [decimalOf('price', isText, FACTOR), decimalOf(quantity ?? '', isText, FACTOR)];
  const q = base === undefined ? `${price} * ${amount}` : decimalOf(base, isText);
  return `SELECT epoch_us(${time}) AS t, ${id} AS seq, price AS o, price AS h, price AS l, price AS c,
      CAST(${amount} AS ${VOLUME}) AS v, CAST(${q} AS ${QUOTE}) AS q, ${trades} AS n,
      CASE WHEN is_buyer_maker THEN 0 ELSE v END AS tv, CASE WHEN is_buyer_maker THEN 0 ELSE q END AS tq,
      true AS traded
    FROM (${counted})`;
}

/**
 * Aggregates without those that repeat trades: a new id, with ids of trades that earlier aggregates have. After a symbol was listed again, both
 * ids begin anew, so its aggregates repeat nothing. Aggregates without trades have the ids -1.
 */
function withoutRepeated(rows: string): string {
  return `SELECT * FROM (SELECT *, lag(last_id) OVER () AS last_before, lag(newest) OVER () AS newest_before
      FROM (SELECT *, max(last_trade_id) OVER so_far AS last_id, max(agg_trade_id) OVER so_far AS newest
        FROM (${rows}) WINDOW so_far AS (ROWS UNBOUNDED PRECEDING)))
    WHERE newest_before IS NULL OR first_trade_id < 0 OR last_trade_id > last_before OR agg_trade_id <= newest_before`;
}

function klineRows(rows: string, isText: boolean): string {
  const sums = SUMS.map(
    ({ name, column, scale }) => `CAST(${decimalOf(column, isText)} AS DECIMAL(38, ${scale})) AS ${name}`,
  );
  return `SELECT epoch_us(open_time) AS t, t AS seq, "open" AS o, high AS h, low AS l, "close" AS c,
      "count" AS n, ${sums.join(', ')}, "count" > 0 OR v > 0 AS traded
    FROM (${rows})`;
}

/** The bars of rows, one for each value of `key`. A candle without trades repeats an earlier price, and counts only if the bar has no trades. */
export function barsOf(rows: string, key: string, isText: boolean): string {
  const most = (name: string, which: 'max' | 'min'): string =>
    traded(isText ? `arg_${which}(${name}, CAST(${name} AS ${VOLUME}))` : `${which}(${name})`);
  const sums = SUMS.map(({ name }) => `sum(${name}) AS ${name}`);
  return `SELECT ${key} AS b, ${traded('arg_min(o, seq)')} AS o, ${most('h', 'max')} AS h, ${most('l', 'min')} AS l,
      ${traded('arg_max(c, seq)')} AS c, ${sums.join(', ')}, CAST(sum(n) AS BIGINT) AS n, count(*) AS row_count
    FROM (${rows}) GROUP BY b`;
}

const traded = (aggregate: string): string => `coalesce(${aggregate} FILTER (traded), ${aggregate})`;

/** The bars with those of `starts` that have no rows: flat, with the close `before`. Their `row_count` is NULL. */
function withEmptyBars(bars: string, starts: string): string {
  const prices = ['o', 'h', 'l', 'c'].map((name) => `coalesce(${name}, before) AS ${name}`);
  const sums = ['n', ...SUMS.map(({ name }) => name)];
  return `SELECT * REPLACE (${[...prices, ...sums.map((name) => `coalesce(${name}, 0) AS ${name}`)].join(', ')})
    FROM (SELECT *, last_value(c IGNORE NULLS) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING) AS before
      FROM (${bars}) FULL JOIN (${starts}) USING (b))`;
}

/**
 * The columns of the dataset from a bar that begins at `b`. `close`: its inclusive end in microseconds. Sums become the nearest double, or a text
 * without zeros at its end. The cast from a decimal to a double rounds twice, that from a text does not.
 */
export function barColumns(isText: boolean, close: string): string {
  const sums = SUMS.map(({ name, column }) => {
    const text = `CAST(${name} AS VARCHAR)`;
    const value = isText ? `rtrim(rtrim(${text}, '0'), '.')` : `CAST(${text} AS DOUBLE)`;
    return `${value} AS ${quoteName(column)}`;
  });
  return `make_timestamp(b) AS open_time, make_timestamp(${close}) AS close_time,
    o AS "open", h AS high, l AS low, c AS "close", n AS "count", ${sums.join(', ')}`;
}
