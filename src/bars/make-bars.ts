/** Makes bars in a table of DuckDB: `made`, with the columns of the dataset, `day`, `seq` and `is_short`. */
import { bringIn } from '../lake/backing.js';
import { DAY_MS, dayOf, parseDay, startOfDay } from '../model/calendar.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { isFileError } from '../convert/duckdb-errors.js';
import { timestampLiteral } from '../convert/sql.js';
import { UnreadableFile } from '../catalogue/file-digests.js';
import type { FileDigests } from '../catalogue/file-digests.js';
import { uniqueRowsQuery } from '../catalogue/views.js';
import { findDataset } from '../source/venue.js';
import type { Venue } from '../source/venue.js';
import { lakeFlag } from '../text/printable.js';
import { aggregates, barColumns, bucketOf, rowsOfBar, sourceRows } from './bar-columns.js';
import { nextStart } from './bar-rule.js';
import type { TimeRule, TradeRule } from './bar-rule.js';
import { objectBefore } from './day-rules.js';
import type { BarDay, Recipe } from './day-rules.js';
import { sourceName } from './source-days.js';
import type { SourceDays } from './source-days.js';

export interface BarTools {
  readonly session: DuckDbSession;
  readonly digests: FileDigests;
}

/**
 * Creates the table `made` with the bars of these days, which are ascending. Resolves with the number of bars that are absent because the
 * source lacks all of their rows. Rejects with `UnreadableSource` if the rows cannot be read, or have numbers out of range.
 */
export async function makeBars(
  tools: BarTools,
  venue: Venue,
  recipe: Recipe,
  days: readonly BarDay[],
): Promise<number> {
  try {
    return await makeAll(tools, venue, recipe, days);
  } catch (error) {
    if (!isFileError(error)) throw error;
    throw new UnreadableSource(recipe.source, error);
  }
}

/** The rows of a source cannot be read, or no bars can be made from them. */
export class UnreadableSource extends Error {
  constructor({ root, series }: SourceDays, cause: unknown) {
    const [why = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n');
    const advice =
      cause instanceof UnreadableFile ? '' : `; cryptodl verify --deep${lakeFlag(root)} finds damaged files`;
    super(`the rows of ${sourceName(series)}: ${why}${advice}`, { cause });
  }
}

async function makeAll(
  tools: BarTools,
  venue: Venue,
  recipe: Recipe,
  days: readonly BarDay[],
): Promise<number> {
  const { rule } = recipe;
  const { isText } = recipe.source;
  const { session } = tools;
  const none = `SELECT 0 AS day, 0::BIGINT AS seq, false AS is_short, ${barColumns(isText, { open: '0', close: '0' })} FROM (${emptyBar(isText)}) LIMIT 0`;
  await session.run(`CREATE OR REPLACE TEMP TABLE made AS ${none}`);
  if (rule.kind === 'time') return addTimeBars(tools, venue, { ...recipe, rule }, days);
  for (const { day } of days) await addTradeBars(tools, { ...recipe, rule }, day);
  return 0;
}

function emptyBar(isText: boolean): string {
  const price = isText ? "'0'" : '0.0::DOUBLE';
  const zero = 'CAST(0 AS DECIMAL(38, 8))';
  return `SELECT ${price} AS o, ${price} AS h, ${price} AS l, ${price} AS c, ${zero} AS v, CAST(0 AS DECIMAL(38, 16)) AS q,
    0::BIGINT AS n, ${zero} AS tv, CAST(0 AS DECIMAL(38, 16)) AS tq, 0 AS dv, 0 AS dq, 0 AS dtv, 0 AS dtq`;
}

/** The rows of the source within days `[from, to)`, as a subquery. */
async function rowsOf(
  { digests }: BarTools,
  source: SourceDays,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<string> {
  const { series, spec, files } = source;
  const some = files.filter(({ days }) => days.from < to && days.to > from);
  if (some.length === 0) throw new RangeError('no file has rows of these days');
  await bringIn(some.map(({ path }) => path));
  await digests.refuseDamaged(some);
  const table = { ...series, hasInterval: series.interval !== undefined, files: some };
  const time =
    series.dataset === 'klines' ? 'open_time' : series.dataset === 'trades' ? '"time"' : 'transact_time';
  const literal = (day: number): string => timestampLiteral(startOfDay(day, spec), source.isZoned);
  const rows = await uniqueRowsQuery(table, spec);
  return sourceRows(
    source,
    `SELECT * FROM (${rows}) WHERE ${time} >= ${literal(from)} AND ${time} < ${literal(to)}`,
  );
}

type TimeRecipe = Recipe & { readonly rule: TimeRule };

async function addTimeBars(
  tools: BarTools,
  venue: Venue,
  recipe: TimeRecipe,
  days: readonly BarDay[],
): Promise<number> {
  const { rule, source, isFilled } = recipe;
  const { session } = tools;
  const starts = joined(
    days.flatMap(({ starts: own }) => (own !== undefined && own.from < own.to ? own : [])),
  );
  const [first, last] = [starts[0], starts.at(-1)];
  if (first === undefined || last === undefined) return 0;
  const { spec } = source;
  const lengthUs = rule.lengthMs * 1000;
  const from = dayOf(first.from, spec);
  const before = isFilled ? objectBefore(source, from) : undefined;
  const to = dayOf(last.to - 1, spec) + 1;
  const rows = await rowsOf(tools, source, { from: Math.min(from, before?.from ?? from), to });
  const own = `SELECT ${bucketOf(rule)} AS b, ${aggregates(source.isText)} FROM (${rows}) GROUP BY b`;
  const spans = starts.map((span) => `(${span.from * 1000}, ${span.to * 1000})`).join(', ');
  // Bars outside of these days give only the close before an empty bar.
  const wanted = `EXISTS (FROM (VALUES ${spans}) AS spans(a, z) WHERE b >= a AND b < z)`;
  const all = isFilled ? filled(own, spans, recipe, { from, to }) : own;
  const micros = (parseDay(microsecondsFrom(venue, source) ?? '') ?? Infinity) * DAY_MS * 1000;
  const inclusive = Number.isFinite(micros) ? `CASE WHEN b >= ${micros} THEN 1 ELSE 1000 END` : '1000';
  const columns = barColumns(source.isText, { open: 'b', close: `b + ${lengthUs} - ${inclusive}` });
  await session.run(`INSERT INTO made
    SELECT ${dayExpression('b', source)}, b, ${shortExpression(recipe, { from, to })}, ${columns} FROM (${all}) WHERE ${wanted}`);
  const [absent] = await session.rows(`SELECT count(*) AS bars FROM (${startsIn(spans, rule)})
    WHERE b NOT IN (SELECT seq FROM made) AND ${source.series.dataset === 'klines' ? 'true' : missingDays(recipe, { from, to })}
      ${first.from <= nextStart(rule, startOfDay(source.from, spec)) ? 'AND b > (SELECT min(seq) FROM made)' : ''}`);
  return Number(absent?.['bars']);
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** Joins adjacent spans. */
function joined(spans: readonly Span[]): Span[] {
  const all: Span[] = [];
  for (const span of spans) {
    const last = all.at(-1);
    if (last?.to === span.from) all[all.length - 1] = { from: last.from, to: span.to };
    else all.push(span);
  }
  return all;
}

/** From this day on, the times of the market are published in microseconds, so a bar ends a microsecond before the next one. */
function microsecondsFrom(venue: Venue, { series }: SourceDays): string | undefined {
  const rest = findDataset(venue, series.market, 'klines')?.rest;
  return rest !== undefined && 'microsecondsFrom' in rest ? rest.microsecondsFrom : undefined;
}

function dayExpression(us: string, { spec }: SourceDays): string {
  return `CAST((${us} - ${spec.dayStartMs * 1000}) // ${DAY_MS * 1000} AS INTEGER)`;
}

/** True for a bar that lacks rows of the source: candles of klines, or whole days of trades. */
function shortExpression(recipe: TimeRecipe, days: Span): string {
  const rows = rowsOfBar(recipe.rule, recipe.source);
  return rows === undefined ? missingDays(recipe, days) : `row_count < ${rows}`;
}

/** True for a bar with one of these days that the source does not have. */
function missingDays({ rule, source }: TimeRecipe, { from, to }: Span): string {
  const missing: string[] = [];
  for (let day = from; day < to; day += 1)
    if (!source.byDay.has(day)) {
      const at = (one: number): number => startOfDay(one, source.spec) * 1000;
      missing.push(`(b < ${at(day + 1)} AND b + ${rule.lengthMs * 1000} > ${at(day)})`);
    }
  return missing.length === 0 ? 'false' : `(${missing.join(' OR ')})`;
}

/** The starts of bars in spans of microseconds, as rows with `b`. */
function startsIn(spans: string, { lengthMs }: TimeRule): string {
  return `SELECT unnest(range(a, z, ${lengthMs * 1000})) AS b FROM (VALUES ${spans}) AS spans(a, z)`;
}

/** The bars and a flat bar for each start without rows, except before the first row and in days that the source does not have. */
function filled(bars: string, spans: string, recipe: TimeRecipe, days: Span): string {
  return `SELECT b, coalesce(o, before) AS o, coalesce(h, before) AS h, coalesce(l, before) AS l, coalesce(c, before) AS c,
      coalesce(v, 0) AS v, coalesce(q, 0) AS q, coalesce(n, 0) AS n, coalesce(tv, 0) AS tv, coalesce(tq, 0) AS tq,
      coalesce(dv, 0) AS dv, coalesce(dq, 0) AS dq, coalesce(dtv, 0) AS dtv, coalesce(dtq, 0) AS dtq, coalesce(row_count, 0) AS row_count
    FROM (SELECT *, last_value(c IGNORE NULLS) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING) AS before
      FROM (${bars}) FULL JOIN (${startsIn(spans, recipe.rule)}) USING (b))
    WHERE before IS NOT NULL AND (row_count IS NOT NULL OR NOT ${missingDays(recipe, days)})`;
}

/** Full bars are inserted in parts of this number. */
const MOST_STARTS = 10_000;

async function addTradeBars(
  tools: BarTools,
  { rule, source }: Recipe & { readonly rule: TradeRule },
  day: number,
): Promise<void> {
  const { session } = tools;
  const rows = await rowsOf(tools, source, { from: day, to: day + 1 });
  await session.run(`CREATE OR REPLACE TEMP TABLE day_rows AS
    SELECT row_number() OVER () - 1 AS number, * FROM (SELECT * FROM (${rows}) ORDER BY seq, t)`);
  await session.run('CREATE OR REPLACE TEMP TABLE starts (start BIGINT)');
  const starts = await startsOf(session, rule);
  for (let at = 0; at < starts.length; at += MOST_STARTS) {
    const some = starts.slice(at, at + MOST_STARTS).map((start) => `(${start})`);
    await session.run(`INSERT INTO starts VALUES ${some.join(', ')}`);
  }
  await session.run(`INSERT INTO made
    SELECT ${day}, seq, false, ${barColumns(source.isText, { open: 'first_t', close: 'last_t' })}
    FROM (SELECT start AS seq, ${aggregates(source.isText).replaceAll('seq', 'number')}
      FROM day_rows ASOF JOIN starts ON number >= start GROUP BY start)`);
  await session.run('DROP TABLE day_rows');
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
