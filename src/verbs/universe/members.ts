/** The members of all periods in DuckDB: the symbols of each period by the sums of the days before it. */
import type { DuckDb } from '../../convert/duckdb.js';
import { quoteName, quoteText } from '../../convert/sql.js';
import { pairOf } from '../../exchange/pairs.js';
import { dayText } from '../../model/calendar.js';
import { countText, listText } from '../../model/units.js';
import type { Ranking } from './ranking-terms.js';
import { DATASET } from './held-klines.js';

/**
 * Creates the table `member` with the columns of the result from `daily`, and the table `used` (period, day) of the days of all
 * windows. A period takes rows of its window only, which ends on the day before the period. Its members have rows on the last day of
 * the window that any symbol of the market has.
 */
export async function rankSymbols(duckdb: DuckDb, ranking: Ranking): Promise<void> {
  const { by, starts, window, minAge, top, symbols, marketDays } = ranking;
  // A listing holds until the first day of the next one.
  const listings = symbols.flatMap(({ symbol, listings: own }) =>
    own.map(
      ({ firstDay, lastDay }, at) =>
        `(${quoteText(symbol)}, ${firstDay}, ${lastDay}, ${own[at + 1]?.firstDay ?? 2 ** 31 - 1})`,
    ),
  );
  await duckdb.run(`CREATE TEMP TABLE listing AS
FROM (VALUES ${listings.join(', ')}) AS given(symbol, first_day, last_day, until);
CREATE TEMP TABLE market AS SELECT CAST(unnest([${marketDays.join(', ')}]) AS INTEGER) AS day;
CREATE TEMP TABLE used AS
SELECT period, CAST(unnest(range(period - ${window}, period)) AS INTEGER) AS day
FROM (VALUES ${starts.map((start) => `(${start})`).join(', ')}) AS given(period);
CREATE TEMP TABLE member AS
WITH open AS (
  SELECT period, day, max(day) OVER (PARTITION BY period) AS last FROM used SEMI JOIN market USING (day)
), traded AS (
  SELECT period, symbol, first_day, sum(value) AS value, count(*) AS days
  FROM open JOIN daily USING (day) JOIN listing USING (symbol)
  WHERE day >= first_day AND until >= period
  GROUP BY ALL HAVING max(day) = any_value(last)
)
SELECT DATE '1970-01-01' + period AS period, symbol,
  CAST(row_number() OVER (PARTITION BY period ORDER BY value DESC, symbol) AS INTEGER) AS rank,
  value AS ${quoteName(by)}, CAST(days AS INTEGER) AS days, DATE '1970-01-01' + first_day AS first_day
FROM traded WHERE first_day <= traded.period - ${minAge}
${top === undefined ? '' : `QUALIFY rank <= ${top}`}`);
}

/** Texts about sums that are in different units, and about each kind of missing data, from the tables of `rankSymbols`. */
export async function warningTexts(duckdb: DuckDb, ranking: Ranking): Promise<string[]> {
  const { by, market, symbols: ranked, exchange } = ranking;
  const quotes = new Set(ranked.flatMap(({ symbol }) => pairOf(exchange, market, symbol)?.quote ?? []));
  const symbols = await duckdb.rows(`SELECT DISTINCT symbol
FROM listing JOIN market ON day BETWEEN first_day AND last_day
SEMI JOIN used USING (day) ANTI JOIN daily USING (symbol, day) ORDER BY symbol`);
  const days = await duckdb.rows('SELECT DISTINCT day FROM used ANTI JOIN market USING (day) ORDER BY day');
  const texts = [];
  if (by === 'quote_volume' && quotes.size > 1)
    texts.push(
      `quote_volume is in the quote asset of each symbol, and the symbols have ${listText([...quotes].sort())}; --quote USDT selects symbols with one unit`,
    );
  if (symbols.length > 0)
    texts.push(
      `${countText(symbols.length, 'symbol')} ${symbols.length === 1 ? 'lacks' : 'lack'} days of the windows, so the sums are too small, and a symbol without the last day is not a member: ${listText(symbols.map(({ symbol }) => String(symbol)))}; cryptodl coverage shows the days`,
    );
  if (days.length > 0)
    texts.push(
      `the lake has no ${market} ${DATASET} of any symbol on ${countText(days.length, 'day')} of the windows: ${listText(days.map(({ day }) => dayText(Number(day))))}; a period after such days takes the last day before them`,
    );
  return texts;
}

/** `1 period, 2024-02-01 … 2024-02-01: 3 members of 3 symbols` */
export async function countsText(duckdb: DuckDb, starts: readonly number[]): Promise<string> {
  const [row] = await duckdb.rows(
    'SELECT count(*) AS members, count(DISTINCT symbol) AS symbols FROM member',
  );
  const [first = 0] = starts;
  const counts = `${countText(Number(row?.['members']), 'member')} of ${countText(Number(row?.['symbols']), 'symbol')}`;
  return `${countText(starts.length, 'period')}, ${dayText(first)} … ${dayText(starts.at(-1) ?? first)}: ${counts}`;
}
