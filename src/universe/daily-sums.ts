/** Sums the rows of klines by symbol and day in DuckDB. All sums are decimals, so they are exact and do not depend on the order of rows. */
import { instantExpression } from '../convert/columns.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteName, quoteText } from '../convert/sql.js';
import { DAY_MS } from '../model/calendar.js';
import type { Measure } from '../options/periods.js';
import type { Catalogue } from '../catalogue/catalogue.js';
import { hasTextNumbers } from '../catalogue/views.js';
import type { UniverseFile } from './choose-files.js';
import type { UniverseMarket } from './choose-symbols.js';

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
  readonly selected: ReadonlySet<string>;
  /** At least one of a selected symbol. */
  readonly files: readonly UniverseFile[];
  /** Rows of this day and later ones are not read. */
  readonly before: number;
  readonly catalogue: Catalogue;
}

/** A symbol without rows on so many days on which others have rows was listed again: its name may stand for another asset. */
export const RELISTED_DAYS = 30;

/**
 * Creates the table `daily` (symbol, first_day, day, value) of the selected symbols, the table `span` of their listings (symbol, first_day,
 * last_day, first_n), and the table `market_day` (day, n) of all days with rows of any symbol, numbered in order. Days are numbers;
 * `first_day` is that of the listing. Of several rows of one candle, the first one counts.
 */
export async function loadDailySums(session: DuckDbSession, request: DailyRequest): Promise<void> {
  const { selected, files } = request;
  const { sums, days } = statementsOf(request);
  const own = files.filter(({ symbol }) => selected.has(symbol));
  const others = files.filter(({ symbol }) => !selected.has(symbol));
  const repeating = new Set(own.filter(({ mayRepeat }) => mayRepeat).map(({ symbol }) => symbol));
  await session.run('CREATE TEMP TABLE summed (symbol VARCHAR, day INTEGER, units HUGEINT)');
  await session.run('CREATE TEMP TABLE open_day (day INTEGER)');
  for (const some of [
    ...batches(
      own.filter(({ symbol }) => !repeating.has(symbol)),
      MOST_FILES,
    ),
    ...batches(
      own.filter(({ symbol }) => repeating.has(symbol)),
      FEW_FILES,
    ),
  ])
    await session.run(await sums(some));
  for (const some of batches(others, MOST_FILES)) await session.run(await days(some));
  await createTables(session);
}

type StatementOf = (files: readonly UniverseFile[]) => Promise<string>;

interface Statements {
  /** Needs all files of a symbol at once. */
  readonly sums: StatementOf;
  /** The days of other symbols. */
  readonly days: StatementOf;
}

function statementsOf({ by, spec, intervals, before, catalogue }: DailyRequest): Statements {
  const day = `CAST((epoch_ms(${instantExpression(spec)}) - ${spec.dayStartMs}) // ${DAY_MS} AS INTEGER)`;
  const grain = `list_position([${intervals.map(quoteText).join(', ')}], "interval")`;
  const rowsOf = async (files: readonly UniverseFile[]): Promise<string> => {
    const parts = files.map((file) => ({ series: file.series, files: [file] }));
    const relation = await catalogue.relation(parts, { to: before });
    if (relation === undefined) throw new RangeError('no file has rows of these days');
    return relation.sql;
  };
  return {
    sums: async (files) => `INSERT INTO summed
SELECT symbol, day, arg_min(units, grain) FROM (
  SELECT symbol, day, grain, coalesce(sum(units), 0) AS units FROM (
    SELECT symbol, ${day} AS day, ${grain} AS grain, ${unitsSql(by, hasTextNumbers(files))} AS units
    FROM (${await rowsOf(files)}))
  GROUP BY ALL)
GROUP BY symbol, day`,
    days: async (files) => `INSERT INTO open_day SELECT DISTINCT ${day} FROM (${await rowsOf(files)})`,
  };
}

/** Creates the tables of `loadDailySums`. */
async function createTables(session: DuckDbSession): Promise<void> {
  await session.run(`CREATE TEMP TABLE market_day AS
SELECT day, CAST(row_number() OVER (ORDER BY day) AS INTEGER) AS n
FROM (SELECT day FROM summed UNION SELECT day FROM open_day) ORDER BY day`);
  // Periods read ranges of days, and DuckDB skips blocks of ordered rows.
  await session.run(`CREATE TEMP TABLE daily AS
SELECT symbol, max(CASE WHEN is_first THEN day END) OVER (PARTITION BY symbol ORDER BY day) AS first_day, day, n,
  CAST(units AS DECIMAL(38, 0)) * CAST(0.00000001 AS DECIMAL(8, 8)) AS value
FROM (SELECT *, coalesce(n - lag(n) OVER (PARTITION BY symbol ORDER BY day) > ${RELISTED_DAYS}, true) AS is_first
  FROM summed JOIN market_day USING (day))
ORDER BY day, symbol`);
  await session.run('DROP TABLE summed');
  await session.run(`CREATE TEMP TABLE span AS
SELECT symbol, first_day, max(day) AS last_day, min(n) AS first_n FROM daily GROUP BY symbol, first_day`);
}

/** Whether the numbers of the lake, and not its files, are the reason of an error. */
export function isTooLarge(error: unknown): boolean {
  return /overflow|out of range|to decimal|failed to cast decimal/i.test(firstLine(error));
}

/** The first line of the message of an error of DuckDB. */
export function firstLine(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : '';
}

/** DuckDB keeps a reader for each file of a statement. */
const MOST_FILES = 2000;
/** The rows of these files are sorted. */
const FEW_FILES = 100;

/** The files in batches that have each symbol as a whole. */
function batches(files: readonly UniverseFile[], most: number): UniverseFile[][] {
  const bySymbol = new Map<string, UniverseFile[]>();
  for (const file of files) {
    const of = bySymbol.get(file.symbol);
    if (of === undefined) bySymbol.set(file.symbol, [file]);
    else of.push(file);
  }
  const all: UniverseFile[][] = [];
  for (const own of bySymbol.values()) {
    const last = all.at(-1);
    if (last !== undefined && last.length + own.length <= most) last.push(...own);
    else all.push([...own]);
  }
  return all;
}

/** All days with rows of any symbol of the market, in order. */
export async function marketDays(session: DuckDbSession): Promise<number[]> {
  const rows = await session.rows('SELECT day FROM market_day ORDER BY day');
  return rows.map((row) => Number(row['day']));
}
