/**
 * The SQL of bars. Sums are exact: numbers become decimals before they are added, and become a double or a text only after the last one.
 * Relations have `t` (microseconds), `seq` (the order of rows), open, high, low and close as `o`, `h`, `l`, `c`, volumes as decimals `v`,
 * `q`, `tv`, `tq`, trades as `n`, and the digits after the point of volumes that are text as `dv`, `dq`, `dtv` and `dtq`.
 */
import { quoteName } from '../convert/sql.js';
import type { TimeRule } from './bar-rule.js';
import { intervalMs } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import type { BarSource } from './source.js';

/** Digits after the point of volumes. The exchange publishes at most 8; a price times a quantity has 16. */
const VOLUME_SCALE = 8;
const QUOTE_SCALE = 16;
const VOLUME = `DECIMAL(38, ${VOLUME_SCALE})`;
const QUOTE = `DECIMAL(38, ${QUOTE_SCALE})`;
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

/** The digits after the point of a text, which may have an exponent: 1.5E-7 has 8. */
function digitsOf(expression: string, isText: boolean): string {
  if (!isText) return '0';
  const fraction = `length(split_part(split_part(lower(${expression}), 'e', 1), '.', 2))`;
  const exponent = `coalesce(TRY_CAST(nullif(split_part(lower(${expression}), 'e', 2), '') AS INTEGER), 0)`;
  return `greatest(${fraction} - ${exponent}, 0)`;
}

/** The rows of a source, from its SELECT. */
export function sourceRows({ series, spec, isText }: BarSource, rows: string): string {
  if (series.dataset === 'klines') return klineRows(rows, isText);
  const isAggregated = series.dataset === 'aggTrades';
  const counted = isAggregated ? withoutRepeated(rows) : rows;
  const [time, id, quantity] = isAggregated
    ? ['transact_time', 'agg_trade_id', 'quantity']
    : ['time', 'id', 'qty'];
  const trades = isAggregated ? 'last_trade_id - first_trade_id + 1' : '1';
  const base = has(spec, 'base_qty') ? 'base_qty' : undefined;
  const [price, amount] = [decimalOf('price', isText, FACTOR), decimalOf(quantity ?? '', isText, FACTOR)];
  const [q, dq] =
    base === undefined
      ? [`${price} * ${amount}`, `${digitsOf('price', isText)} + ${digitsOf(quantity ?? '', isText)}`]
      : [`CAST(${decimalOf(base, isText)} AS ${QUOTE})`, digitsOf(base, isText)];
  return `SELECT epoch_us(${time}) AS t, ${id} AS seq, price AS o, price AS h, price AS l, price AS c,
      CAST(${amount} AS ${VOLUME}) AS v, CAST(${q} AS ${QUOTE}) AS q, ${trades} AS n,
      CASE WHEN is_buyer_maker THEN 0 ELSE v END AS tv, CASE WHEN is_buyer_maker THEN 0 ELSE q END AS tq,
      true AS traded, ${digitsOf(quantity ?? '', isText)} AS dv, ${dq} AS dq, dv AS dtv, dq AS dtq
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
  const volume = (name: string): string => decimalOf(name, isText);
  return `SELECT epoch_us(open_time) AS t, t AS seq, "open" AS o, high AS h, low AS l, "close" AS c,
      ${volume('volume')} AS v, CAST(${volume('quote_volume')} AS ${QUOTE}) AS q, "count" AS n,
      ${volume('taker_buy_volume')} AS tv, CAST(${volume('taker_buy_quote_volume')} AS ${QUOTE}) AS tq,
      "count" > 0 OR v > 0 AS traded, ${digitsOf('volume', isText)} AS dv, ${digitsOf('quote_volume', isText)} AS dq,
      ${digitsOf('taker_buy_volume', isText)} AS dtv, ${digitsOf('taker_buy_quote_volume', isText)} AS dtq
    FROM (${rows})`;
}

function has({ columns }: DatasetSpec, name: string): boolean {
  return columns.some((column) => column.name === name);
}

/** The aggregates of a bar. A candle without trades repeats a price of before, so it counts only if the bar has no trades. */
export function aggregates(isText: boolean): string {
  const most = (name: string, which: 'max' | 'min'): string =>
    traded(isText ? `arg_${which}(${name}, CAST(${name} AS ${VOLUME}))` : `${which}(${name})`);
  return `${traded('arg_min(o, seq)')} AS o, ${most('h', 'max')} AS h, ${most('l', 'min')} AS l, ${traded('arg_max(c, seq)')} AS c,
    sum(v) AS v, sum(q) AS q, CAST(sum(n) AS BIGINT) AS n, sum(tv) AS tv, sum(tq) AS tq,
    max(dv) AS dv, max(dq) AS dq, max(dtv) AS dtv, max(dtq) AS dtq, min(t) AS first_t, max(t) AS last_t, count(*) AS row_count`;
}

function traded(aggregate: string): string {
  return `coalesce(${aggregate} FILTER (traded), ${aggregate})`;
}

/** The columns of the dataset from a bar with the aggregates. `open` and `close`: its times in microseconds. */
export function barColumns(
  isText: boolean,
  times: { readonly open: string; readonly close: string },
): string {
  const sums = [
    numberOf('v', 'dv', VOLUME_SCALE, isText, 'volume'),
    numberOf('q', 'dq', QUOTE_SCALE, isText, 'quote_volume'),
    numberOf('tv', 'dtv', VOLUME_SCALE, isText, 'taker_buy_volume'),
    numberOf('tq', 'dtq', QUOTE_SCALE, isText, 'taker_buy_quote_volume'),
  ];
  const [volume, quote, taker, takerQuote] = sums;
  return `make_timestamp(${times.open}) AS open_time, o AS "open", h AS high, l AS low, c AS "close", ${volume ?? ''},
    make_timestamp(${times.close}) AS close_time, ${quote ?? ''}, n AS "count", ${taker ?? ''}, ${takerQuote ?? ''}`;
}

/** A decimal as the nearest double, or as a text with the digits of the source. The cast from a decimal to a double rounds twice. */
function numberOf(name: string, digits: string, scale: number, isText: boolean, as: string): string {
  const text = `CAST(${name} AS VARCHAR)`;
  const value = isText
    ? `CASE WHEN ${digits} = 0 THEN split_part(${text}, '.', 1) ELSE left(${text}, length(${text}) - (${scale} - least(${digits}, ${scale}))) END`
    : `CAST(${text} AS DOUBLE)`;
  return `${value} AS ${quoteName(as)}`;
}

/** The start of the bar of a row, in microseconds. */
export function bucketOf({ lengthMs, originMs }: TimeRule): string {
  const [length, origin] = [lengthMs * 1000, originMs * 1000];
  return `(t - ${origin}) // ${length} * ${length} + ${origin}`;
}

/** The number of rows of a whole bar; undefined for trades. */
export function rowsOfBar({ lengthMs }: TimeRule, { series }: BarSource): number | undefined {
  return series.dataset === 'klines' ? lengthMs / intervalMs(series.interval ?? '') : undefined;
}
