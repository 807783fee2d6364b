/** Sums the rows of klines by symbol and day in DuckDB. All sums are decimals, so they are exact and do not depend on the order of rows. */
import { instantExpression } from '../convert/columns.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteName, quoteText } from '../convert/sql.js';
import { DAY_MS } from '../model/calendar.js';
import type { Measure } from '../options/periods.js';
import type { Catalogue, DayRange, SeriesFilesPart } from '../catalogue/catalogue.js';
import { hasTextNumbers } from '../catalogue/views.js';
import type { UniverseMarket } from './choose-symbols.js';
import type { HeldSymbol } from './held-symbols.js';

/** Volumes of the archive have at most 8 decimals. */
const DECIMAL = 'DECIMAL(35, 8)';
/**
 * The value of a column in units of 10^-8, as a whole number; an error for a number of 10^27 and more. A text has all digits, and that of a
 * DOUBLE is the shortest one, so it has the published digits. Most volumes are below 2^51 units: there, the rounded product is the same
 * number, and is found much faster.
 */
function unitsSql(by: Measure, isAllText: boolean): string {
  const column = quoteName(by);
  if (by === 'count') return `CAST(${column} AS HUGEINT) * 100000000`;
  // The text of a decimal has 8 digits after the point. A product would be too large for its type.
  const ofText = `CAST(replace(CAST(CAST(CAST(${column} AS VARCHAR) AS ${DECIMAL}) AS VARCHAR), '.', '') AS HUGEINT)`;
  if (isAllText) return ofText;
  return `CASE WHEN abs(${column}) < 2e7 THEN CAST(CAST(round(${column} * 1e8) AS BIGINT) AS HUGEINT) ELSE ${ofText} END`;
}

export interface DailyRequest extends UniverseMarket {
  readonly by: Measure;
  readonly catalogue: Catalogue;
  readonly symbols: readonly HeldSymbol[];
  /** Other symbols tell only the days of the market. */
  readonly selected: ReadonlySet<string>;
  /** The days whose rows are read. */
  readonly days: DayRange;
}

/**
 * Creates the table `daily` (symbol, day, value), and the table `market_day` (day) of all days with rows of any symbol. Days are numbers. Of
 * several rows of one candle, the first one counts; of several intervals of a day, the longest one.
 */
export async function loadDailySums(session: DuckDbSession, request: DailyRequest): Promise<void> {
  const { by, spec, intervals, catalogue, symbols, selected, days } = request;
  const day = `CAST((epoch_ms(${instantExpression(spec)}) - ${spec.dayStartMs}) // ${DAY_MS} AS INTEGER)`;
  const grain = `list_position([${intervals.map(quoteText).join(', ')}], "interval")`;
  await session.run('CREATE TEMP TABLE summed (symbol VARCHAR, day INTEGER, units HUGEINT)');
  for (const isOwn of [true, false])
    for (const parts of batches(
      symbols.filter(({ symbol }) => selected.has(symbol) === isOwn),
      days,
    )) {
      const relation = await catalogue.relation(parts, days);
      if (relation === undefined) continue;
      const units = isOwn ? `coalesce(sum(${unitsSql(by, hasTextNumbers(relation.files))}), 0)` : 'NULL';
      await session.run(`INSERT INTO summed
SELECT symbol, day, arg_min(units, grain) FROM (
  SELECT symbol, ${day} AS day, ${grain} AS grain, ${units} AS units FROM (${relation.sql}) GROUP BY ALL)
GROUP BY symbol, day`);
    }
  // Periods read ranges of days, and DuckDB skips blocks of ordered rows.
  await session.run(`CREATE TEMP TABLE daily AS
SELECT symbol, day, CAST(units AS DECIMAL(38, 0)) * CAST(0.00000001 AS DECIMAL(8, 8)) AS value
FROM summed WHERE units IS NOT NULL ORDER BY day, symbol`);
  await session.run('CREATE TEMP TABLE market_day AS SELECT DISTINCT day FROM summed ORDER BY day');
  await session.run('DROP TABLE summed');
}

/** DuckDB keeps a reader for each file of a statement. */
const MOST_FILES = 1000;

/** The files with these days, in batches that have each symbol as a whole. Later files are never read, so they change nothing. */
function batches(symbols: readonly HeldSymbol[], { from, to }: DayRange): SeriesFilesPart[][] {
  const all: SeriesFilesPart[][] = [];
  let count = Infinity;
  for (const { files: parts } of symbols) {
    const own = parts.flatMap(({ series, files }) => {
      const some = files.filter(({ days }) => days.from < to && days.to > from);
      return some.length === 0 ? [] : [{ series, files: some }];
    });
    const files = own.reduce((sum, part) => sum + part.files.length, 0);
    if (files === 0) continue;
    count += files;
    if (count <= MOST_FILES) all.at(-1)?.push(...own);
    else {
      all.push(own);
      count = files;
    }
  }
  return all;
}

/** Whether the numbers of the lake, and not its files, are the reason of an error. */
export function isTooLarge(error: unknown): boolean {
  return /overflow|out of range|to decimal|failed to cast decimal/i.test(firstLine(error));
}

/** The first line of the message of an error of DuckDB. */
export function firstLine(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
}

/** The read days with rows of any symbol of the market, in order. */
export async function marketDays(session: DuckDbSession): Promise<number[]> {
  const rows = await session.rows('SELECT day FROM market_day ORDER BY day');
  return rows.map((row) => Number(row['day']));
}
