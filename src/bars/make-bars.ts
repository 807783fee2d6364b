/** Makes the bars of a month in a table of DuckDB: `made`, with the columns of the dataset, `day`, `seq` and `is_short`. */
import type { Catalogue } from '../catalogue/catalogue.js';
import { isFileError } from '../convert/duckdb-errors.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { DAY_MS, parseDay, startOfDay } from '../model/calendar.js';
import { findDataset } from '../source/venue.js';
import type { Venue } from '../source/venue.js';
import { aggregates, barColumns, bucketOf, rowsOfBar, sourceRows } from './bar-columns.js';
import { nextStart } from './bar-rule.js';
import type { TimeRule, TradeRule } from './bar-rule.js';
import type { BarMonth, Recipe, Span } from './plan-months.js';
import { missingDays, sourceName } from './source.js';
import type { BarSource } from './source.js';

export interface BarTools {
  readonly engine: DuckDbSession;
  readonly catalogue: Catalogue;
  readonly venue: Venue;
}

/**
 * Creates the table `made`. Resolves with the number of bars that are absent because the source lacks all of their rows. Rejects with
 * `UnreadableSource` if the rows cannot be read, or have numbers out of range.
 */
export async function makeBars(tools: BarTools, recipe: Recipe, month: BarMonth): Promise<number> {
  const { rule, source } = recipe;
  try {
    if (rule.kind === 'time') return await makeTimeBars(tools, { ...recipe, rule }, month);
    for (const [at, day] of month.days.entries()) {
      const bars = await tradeBars(tools, { ...recipe, rule }, month, day);
      await tools.engine.run(
        at === 0 ? `CREATE OR REPLACE TEMP TABLE made AS ${bars}` : `INSERT INTO made ${bars}`,
      );
    }
    return 0;
  } catch (error) {
    if (!isFileError(error)) throw error;
    throw new UnreadableSource(source, error);
  }
}

/** The rows of a source cannot be read, or no bars can be made from them. */
export class UnreadableSource extends Error {
  constructor({ series }: BarSource, cause: unknown) {
    const [why = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n');
    super(`the rows of ${sourceName(series)}: ${why}`, { cause });
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

type TimeRecipe = Recipe & { readonly rule: TimeRule };

async function makeTimeBars(tools: BarTools, recipe: TimeRecipe, month: BarMonth): Promise<number> {
  const { rule, source, isFilled } = recipe;
  const { engine, venue } = tools;
  const { starts = { from: 0, to: 0 }, rows: days } = month;
  const lengthUs = rule.lengthMs * 1000;
  const all = `SELECT unnest(range(${starts.from * 1000}, ${starts.to * 1000}, ${lengthUs})) AS b`;
  const lacksDays = lackingDays(source, days, rule.lengthMs);
  // A day without source has no bars that begin on it, unless they are longer than a day.
  const wanted =
    rule.lengthMs > DAY_MS ? all : `SELECT b FROM (${all}) WHERE NOT ${lackingDays(source, days, 1)}`;
  const own = `SELECT ${bucketOf(rule)} AS b, ${aggregates(source.isText)} FROM (${await rowsOf(tools, source, month, days)}) GROUP BY b`;
  // Bars outside of these starts give only the close before an empty bar.
  const bars = isFilled ? filled(own, wanted, lacksDays) : own;
  const rowsOfWhole = rowsOfBar(rule, source);
  // Of klines, candles are counted; of trades, whole days.
  const isShort = rowsOfWhole === undefined ? lacksDays : `row_count < ${rowsOfWhole}`;
  const columns = barColumns(source.isText, {
    open: 'b',
    close: `b + ${lengthUs} - ${inclusiveEnd(venue, source)}`,
  });
  await engine.run(
    `CREATE OR REPLACE TEMP TABLE made AS SELECT ${dayOfBar('b', source)} AS day, b AS seq, ${isShort} AS is_short, ${columns} FROM (${bars}) WHERE b IN (${wanted})`,
  );
  const isFirst = starts.from === nextStart(rule, startOfDay(source.from, source.spec));
  const [absent] =
    await engine.rows(`SELECT count(*) AS bars FROM (${wanted}) WHERE b NOT IN (SELECT seq FROM made)
    ${rowsOfWhole === undefined ? `AND ${lacksDays}` : ''} ${isFirst ? 'AND b > (SELECT min(seq) FROM made)' : ''}`);
  return Number(absent?.['bars']);
}

/** The microseconds from the last one of a bar to the next bar: from a day on, the times of a market are published in microseconds. */
function inclusiveEnd(venue: Venue, { series }: BarSource): string {
  const rest = findDataset(venue, series.market, 'klines')?.rest;
  const from =
    rest !== undefined && 'microsecondsFrom' in rest ? parseDay(rest.microsecondsFrom ?? '') : undefined;
  return from === undefined ? '1000' : `CASE WHEN b >= ${from * DAY_MS * 1000} THEN 1 ELSE 1000 END`;
}

function dayOfBar(us: string, { spec }: BarSource): string {
  return `CAST((${us} - ${spec.dayStartMs * 1000}) // ${DAY_MS * 1000} AS INTEGER)`;
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

/** The bars and a flat bar for each start without rows, except before the first row and in days that the source does not have. */
function filled(bars: string, starts: string, lacksDays: string): string {
  return `SELECT b, coalesce(o, before) AS o, coalesce(h, before) AS h, coalesce(l, before) AS l, coalesce(c, before) AS c,
      coalesce(v, 0) AS v, coalesce(q, 0) AS q, coalesce(n, 0) AS n, coalesce(tv, 0) AS tv, coalesce(tq, 0) AS tq,
      coalesce(dv, 0) AS dv, coalesce(dq, 0) AS dq, coalesce(dtv, 0) AS dtv, coalesce(dtq, 0) AS dtq, coalesce(row_count, 0) AS row_count
    FROM (SELECT *, last_value(c IGNORE NULLS) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING) AS before
      FROM (${bars}) FULL JOIN (${starts}) USING (b))
    WHERE before IS NOT NULL AND (row_count IS NOT NULL OR NOT ${lacksDays})`;
}

/** Full bars are inserted in parts of this number. */
const MOST_STARTS = 10_000;

/** The SELECT of the bars of a day. */
async function tradeBars(
  tools: BarTools,
  { rule, source }: Recipe & { readonly rule: TradeRule },
  month: BarMonth,
  day: number,
): Promise<string> {
  const { engine } = tools;
  const rows = await rowsOf(tools, source, month, { from: day, to: day + 1 });
  await engine.run(`CREATE OR REPLACE TEMP TABLE day_rows AS
    SELECT row_number() OVER () - 1 AS number, * FROM (SELECT * FROM (${rows}) ORDER BY seq, t)`);
  await engine.run('CREATE OR REPLACE TEMP TABLE starts (start BIGINT)');
  const starts = await startsOf(engine, rule);
  for (let at = 0; at < starts.length; at += MOST_STARTS) {
    const some = starts.slice(at, at + MOST_STARTS).map((start) => `(${start})`);
    await engine.run(`INSERT INTO starts VALUES ${some.join(', ')}`);
  }
  return `SELECT ${day} AS day, seq, false AS is_short, ${barColumns(source.isText, { open: 'first_t', close: 'last_t' })}
    FROM (SELECT start AS seq, ${aggregates(source.isText).replaceAll('seq', 'number')}
      FROM day_rows ASOF JOIN starts ON number >= start GROUP BY start)`;
}

const MEASURES = { tick: 'n', volume: 'v', dollar: 'q' } as const;
const SCALES = { tick: 0, volume: 8, dollar: 16 } as const;

/** The numbers of the rows with which bars begin. A bar ends with the row that makes it full. */
async function startsOf(session: DuckDbSession, rule: TradeRule): Promise<number[]> {
  const full = scaled(rule.size, SCALES[rule.kind]);
  const text = `replace(CAST(${MEASURES[rule.kind]} AS VARCHAR), '.', '')`;
  const result = await session.select(`SELECT ${text} FROM day_rows ORDER BY number`);
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

/** A decimal number as an integer with this number of digits after the point. */
function scaled(text: string, scale: number): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(scale, '0').slice(0, scale));
}
