/** Sums of klines of each symbol and day, in DuckDB. */
import type { Catalogue, SeriesFilesPart } from '../../lake/catalogue/catalogue.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { hasTextNumbers } from '../../lake/catalogue/views.js';
import { instantExpression } from '../../convert/columns.js';
import type { DuckDb } from '../../convert/duckdb.js';
import { quoteName, quoteText } from '../../convert/sql.js';
import { grouped } from '../../model/by-name.js';
import { eachDay } from '../../model/calendar.js';
import { DAY_MS } from '../../model/units.js';
import type { Measure } from '../../plan/options/periods.js';
import { intervalMs } from '../../exchange/exchange-spec.js';
import type { Ranking } from './ranking-terms.js';

/** Volumes of the archive have at most 8 decimals. */
const SUM = 'DECIMAL(38, 8)';

/**
 * Creates the table `daily` (symbol, day, value) of all days with rows in the windows of the periods. Days are numbers. Each day of a symbol
 * comes from the longest interval that has rows of it. Sums of decimals are exact, and do not depend on the order of rows.
 */
export async function loadDailySums(
  duckdb: DuckDb,
  catalogue: Catalogue,
  { by, spec, starts, window, symbols }: Ranking,
): Promise<void> {
  const days = { from: (starts[0] ?? 0) - window, to: starts.at(-1) ?? 0 };
  const day = `CAST((epoch_ms(${instantExpression(spec)}) - ${spec.dayStartMs}) // ${DAY_MS} AS INTEGER)`;
  await duckdb.run(`CREATE TEMP TABLE daily (symbol VARCHAR, day INTEGER, value ${SUM})`);
  const byLength = grouped(
    symbols.flatMap(({ parts }) => parts),
    ({ series: { interval = '' } }) => intervalMs(interval),
  );
  for (const [, parts] of [...byLength].sort(([a], [b]) => b - a))
    for (const batch of batchesOf(await withoutKnownDays(duckdb, parts, days))) {
      const relation = await catalogue.relation(batch, days);
      if (relation === undefined) continue;
      const value = sumOf(by, hasTextNumbers(relation.files));
      await duckdb.run(`INSERT INTO daily SELECT * FROM (
  SELECT symbol, ${day} AS day, ${value} AS value FROM (${relation.sql}) GROUP BY ALL)
ANTI JOIN daily USING (symbol, day)`);
    }
}

/**
 * The sum of a column. A double below the bound, times 10^8 and rounded, is its published digits, and integers are added much faster. The
 * shortest text of a larger one has its digits.
 */
function sumOf(by: Measure, isText: boolean): string {
  const column = quoteName(by);
  if (by === 'count') return `CAST(coalesce(sum(${column}), 0) AS ${SUM})`;
  if (isText) return `coalesce(sum(CAST(${column} AS ${SUM})), 0)`;
  const small = `sum(CASE WHEN abs(${column}) < 2e7 THEN CAST(round(${column} * 1e8) AS BIGINT) END)`;
  const large = `sum(CASE WHEN abs(${column}) >= 2e7 THEN CAST(CAST(${column} AS VARCHAR) AS ${SUM}) END)`;
  return `CAST(coalesce(${small}, 0) AS DECIMAL(38, 0)) * CAST(0.00000001 AS DECIMAL(8, 8)) + coalesce(${large}, 0)`;
}

/** The files with days of the range that `daily` does not have. Later files are never read, so they change nothing. */
async function withoutKnownDays(
  duckdb: DuckDb,
  parts: readonly SeriesFilesPart[],
  { from, to }: DayRange,
): Promise<SeriesFilesPart[]> {
  const names = parts.map(({ series }) => quoteText(series.symbol));
  const rows = await duckdb.rows(`SELECT symbol, day FROM daily WHERE symbol IN (${names.join(', ')})`);
  const known = new Set(rows.map(({ symbol, day }) => `${String(symbol)} ${String(day)}`));
  return parts.map(({ series, files }) => {
    const isNeeded = (day: number): boolean => !known.has(`${series.symbol} ${day}`);
    const needed = files.filter(({ days }) =>
      eachDay({ from: Math.max(days.from, from), to: Math.min(days.to, to) }).some(isNeeded),
    );
    return { series, files: needed };
  });
}

/** DuckDB keeps a reader for each file of a statement. */
const MOST_FILES = 1000;

function batchesOf(parts: readonly SeriesFilesPart[]): Iterable<SeriesFilesPart[]> {
  let count = 0;
  return grouped(parts, ({ files }) => {
    count += files.length;
    return Math.ceil(count / MOST_FILES);
  }).values();
}
