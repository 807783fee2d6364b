/** Sums the rows of klines by symbol and day in DuckDB. All sums are decimals, so they are exact and do not depend on the order of rows. */
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteName, quoteText, timestampLiteral } from '../convert/sql.js';
import { DAY_MS, startOfDay } from '../model/calendar.js';
import type { Measure } from '../options/words/periods.js';
import { rowsQuery } from '../query/views.js';
import type { DatasetSpec } from '../source/venue.js';
import type { UniverseFile } from './choose-files.js';
import { DATASET } from './choose-symbols.js';
import type { UniverseMarket } from './choose-symbols.js';

/** Quote volumes of the archive have at most 8 decimals; larger numbers than 10^28 do not occur. */
const DECIMAL = 'DECIMAL(38, 10)';

export interface DailyRequest extends UniverseMarket {
  readonly by: Measure;
  readonly selected: ReadonlySet<string>;
  /** At least one of a selected symbol. */
  readonly files: readonly UniverseFile[];
  /** Rows of this day and later ones are not read. */
  readonly before: number;
}

/**
 * Creates the table `daily` (symbol, day, value) of the selected symbols, and the table `market_day` (day, n) of all days with rows of any
 * symbol, numbered in order. Days are numbers.
 */
export async function loadDailySums(session: DuckDbSession, request: DailyRequest): Promise<void> {
  const { by, selected, files, spec, intervals, before } = request;
  const own = files.filter(({ symbol }) => selected.has(symbol));
  const others = files.filter(({ symbol }) => !selected.has(symbol));
  const time = quoteName(timeColumn(spec));
  const day = `CAST((epoch_ms(${time}) - ${spec.dayStartMs}) // ${DAY_MS} AS INTEGER)`;
  const isBefore = `${time} < ${timestampLiteral(startOfDay(before, spec))}`;
  const grain = `list_position([${intervals.map(quoteText).join(', ')}], "interval")`;
  // The text of a DOUBLE is the shortest one, so it has the published digits.
  const value = `TRY_CAST(CAST(${quoteName(by)} AS VARCHAR) AS ${by === 'count' ? 'DECIMAL(38, 0)' : DECIMAL})`;
  const rowsOf = (some: readonly UniverseFile[]): Promise<string> =>
    rowsQuery({ market: request.market, dataset: DATASET, hasInterval: true, files: some }, spec);
  await session.run(`CREATE TEMP TABLE daily AS
SELECT symbol, day, arg_min(value, grain) AS value FROM (
  SELECT symbol, ${day} AS day, ${grain} AS grain, coalesce(sum(${value}), 0) AS value
  FROM (${await rowsOf(own)}) WHERE ${isBefore} GROUP BY ALL)
GROUP BY ALL ORDER BY day, symbol`);
  const alien =
    others.length === 0
      ? ''
      : ` UNION SELECT DISTINCT ${day} FROM (${await rowsOf(others)}) WHERE ${isBefore}`;
  await session.run(`CREATE TEMP TABLE market_day AS
SELECT day, CAST(row_number() OVER (ORDER BY day) AS INTEGER) AS n FROM (SELECT DISTINCT day FROM daily${alien}) ORDER BY day`);
  await session.run(`CREATE TEMP TABLE span AS
SELECT symbol, min(day) AS first_day, max(day) AS last_day, min(n) AS first_n, max(n) AS last_n
FROM daily JOIN market_day USING (day) GROUP BY symbol`);
}

function timeColumn({ columns }: DatasetSpec): string {
  return columns.find(({ type }) => type === 'time' || type === 'datetime')?.name ?? '';
}

/** All days with rows of any symbol of the market, in order. */
export async function marketDays(session: DuckDbSession): Promise<number[]> {
  const rows = await session.rows('SELECT day FROM market_day ORDER BY day');
  return rows.map((row) => Number(row['day']));
}
