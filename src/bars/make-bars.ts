/**
 * Makes the bars of a month in a table of DuckDB: `made`, with the columns of the dataset, `day` and `seq`. Bars that are absent because the
 * source lacks all of their rows have `is_made` false. `is_short`: the source lacks rows of the bar.
 */
import type { Catalogue } from '../catalogue/catalogue.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteText } from '../convert/sql.js';
import { DAY_MS, parseDay, startOfDay } from '../model/calendar.js';
import { findDataset, intervalMs } from '../source/venue.js';
import type { Venue } from '../source/venue.js';
import { barColumns, barsOf, bucketOf, sourceRows, withEmptyBars } from './bar-sql.js';
import { nextStart } from './bar-rule.js';
import type { TimeRule, TradeRule } from './bar-rule.js';
import type { BarMonth, Recipe } from './plan-months.js';
import { missingDays } from './source.js';
import type { BarSource, Span } from './source.js';

export interface BarTools {
  readonly engine: DuckDbSession;
  readonly catalogue: Catalogue;
  readonly venue: Venue;
}

/** Creates the table `made`. Rejects if the rows cannot be read, or have numbers out of range. */
export async function makeBars(tools: BarTools, recipe: Recipe, month: BarMonth): Promise<void> {
  const { rule } = recipe;
  const spans = rule.kind === 'time' ? [month.rows] : month.days.map((day) => ({ from: day, to: day + 1 }));
  for (const [at, span] of spans.entries()) {
    const bars =
      rule.kind === 'time'
        ? await timeBars(tools, { ...recipe, rule }, month)
        : await tradeBars(tools, { ...recipe, rule }, month, span);
    await tools.engine.run(
      at === 0 ? `CREATE OR REPLACE TEMP TABLE made AS ${bars}` : `INSERT INTO made ${bars}`,
    );
  }
}

/** The rows of the source within these days, as a subquery. */
async function rowsOf(
  { catalogue }: BarTools,
  source: BarSource,
  { from: files }: BarMonth,
  days: Span,
): Promise<string> {
  const rows = await catalogue.relation([{ series: source.series, files }], days);
  if (rows === undefined) throw new RangeError('no file has rows of these days');
  return sourceRows(source, rows.sql);
}

/** The SELECT of the bars of a length. Bars outside of the starts of the month give only the close before an empty bar. */
async function timeBars(
  tools: BarTools,
  { rule, source, isFilled }: Recipe & { readonly rule: TimeRule },
  month: BarMonth,
): Promise<string> {
  const { lengthMs } = rule;
  const { rows: days, starts: { from, to } = { from: 0, to: 0 } } = month;
  const lengthUs = lengthMs * 1000;
  const all = `SELECT unnest(range(${from * 1000}, ${to * 1000}, ${lengthUs})) AS b`;
  const lacksDays = lackingDays(source, days, lengthMs);
  // A day without source has no bars that begin on it, unless they are longer than a day.
  const starts = lengthMs > DAY_MS ? all : `SELECT b FROM (${all}) WHERE NOT ${lackingDays(source, days, 1)}`;
  const own = barsOf(await rowsOf(tools, source, month, days), bucketOf(rule), source.isText);
  // Of klines, candles are counted; of trades, whole days.
  const isShort =
    source.series.dataset === 'klines'
      ? `coalesce(row_count, 0) < ${lengthMs / intervalMs(source.series.interval ?? '')}`
      : lacksDays;
  const isFirst = from === nextStart(rule, startOfDay(source.from, source.spec));
  const columns = barColumns(source.isText, {
    open: 'b',
    close: `b + ${lengthUs} - ${inclusiveEnd(tools.venue, source)}`,
  });
  return `SELECT CAST((b - ${source.spec.dayStartMs * 1000}) // ${DAY_MS * 1000} AS INTEGER) AS day, b AS seq,
      row_count IS NOT NULL${isFilled ? ` OR (before IS NOT NULL AND NOT ${lacksDays})` : ''} AS is_made,
      ${isShort}${isFirst ? ' AND before IS NOT NULL' : ''} AS is_short, ${columns}
    FROM (${withEmptyBars(own, starts)}) WHERE b IN (${starts})`;
}

/** The microseconds from the last one of a bar to the next bar: from a day on, the times of a market are published in microseconds. */
function inclusiveEnd(venue: Venue, { series }: BarSource): string {
  const rest = findDataset(venue, series.market, 'klines')?.rest;
  const from =
    rest !== undefined && 'microsecondsFrom' in rest ? parseDay(rest.microsecondsFrom ?? '') : undefined;
  return from === undefined ? '1000' : `CASE WHEN b >= ${from * DAY_MS * 1000} THEN 1 ELSE 1000 END`;
}

/** True for a bar of this length with time in one of these days that the source does not have. */
function lackingDays(source: BarSource, { from, to }: Span, lengthMs: number): string {
  const missing = missingDays(source)
    .filter((day) => day >= from && day < to)
    .map((day) => {
      const [begin, end] = [startOfDay(day, source.spec), startOfDay(day + 1, source.spec)];
      return `(b < ${end * 1000} AND b + ${lengthMs * 1000} > ${begin * 1000})`;
    });
  return missing.length === 0 ? 'false' : `(${missing.join(' OR ')})`;
}

/** The SELECT of the bars of a day that close with the trade that makes them full. */
async function tradeBars(
  tools: BarTools,
  { rule, source }: Recipe & { readonly rule: TradeRule },
  month: BarMonth,
  day: Span,
): Promise<string> {
  const rows = await rowsOf(tools, source, month, day);
  await tools.engine.run(`CREATE OR REPLACE TEMP TABLE day_rows AS
    SELECT row_number() OVER () - 1 AS number, * FROM (SELECT * FROM (${rows}) ORDER BY seq, t)`);
  const list = (await startsOf(tools.engine, rule)).join(',');
  const starts = `SELECT CAST(unnest(string_split(${quoteText(list)}, ',')) AS BIGINT) AS start`;
  const own = `SELECT * FROM day_rows ASOF JOIN (${starts}) ON number >= start`;
  return `SELECT ${day.from} AS day, b AS seq, true AS is_made, false AS is_short,
      ${barColumns(source.isText, { open: 'first_t', close: 'last_t' })}
    FROM (${barsOf(own, 'start', source.isText, 'number')})`;
}

const MEASURES = {
  tick: { name: 'n', scale: 0 },
  volume: { name: 'v', scale: 8 },
  dollar: { name: 'q', scale: 16 },
} as const;

/** The numbers of the rows with which bars begin. A bar ends with the row that makes it full. */
async function startsOf(session: DuckDbSession, { kind, size }: TradeRule): Promise<number[]> {
  const { name, scale } = MEASURES[kind];
  const [whole = '', fraction = ''] = size.split('.');
  const full = BigInt(whole + fraction.padEnd(scale, '0'));
  const result = await session.select(
    `SELECT replace(CAST(${name} AS VARCHAR), '.', '') FROM day_rows ORDER BY number`,
  );
  const starts: number[] = [];
  let sum = full;
  let number = 0;
  for await (const rows of result?.batches ?? []) {
    for (const [measure] of rows) {
      if (sum >= full) {
        starts.push(number);
        sum = 0n;
      }
      sum += BigInt(measure as string);
      number += 1;
    }
  }
  return starts;
}
