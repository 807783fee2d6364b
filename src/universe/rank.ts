/** Ranks the symbols of each period by their sums over the days before it. */
import type { DuckDbSession } from '../convert/duckdb.js';
import { quoteText } from '../convert/sql.js';
import { marketDays } from './daily-sums.js';
import type { HeldSymbol } from './held-symbols.js';

export interface Ranking {
  /** First days of the periods. */
  readonly starts: readonly number[];
  /** Days before a period whose sums are ranked. */
  readonly window: number;
  readonly top: number | undefined;
  /** Days between the first day of a symbol and the period. */
  readonly minAge: number;
  /** The first day with rows of any symbol in the lake. */
  readonly firstHeld: number;
  /** The selected symbols. */
  readonly symbols: readonly HeldSymbol[];
}

/** Days and symbols that are missing in the windows of the periods. */
export interface Incomplete {
  /** Symbols without a row on a day of a window on which other symbols have rows, unless they were delisted before the period. */
  readonly lacking: readonly string[];
  /** Days without a row of any symbol. */
  readonly emptyDays: readonly number[];
  /** Periods whose window or minimal age begins before the first day of the lake. */
  readonly early: readonly number[];
  /** Periods without a member. */
  readonly withoutMembers: readonly number[];
  /** Symbols with several listings, of which one ended before the last period. */
  readonly relisted: readonly string[];
}

/**
 * Creates the table `member` (period, symbol, rank, value, days, first_day) from the tables of `loadDailySums`. A statement of a period reads
 * the rows of its window only, which ends on the day before the period.
 */
export async function rankPeriods(session: DuckDbSession, ranking: Ranking): Promise<Incomplete> {
  await session.run(`CREATE TEMP TABLE member AS
SELECT 0 AS period, symbol, 0 AS rank, sum(value) AS value, 0 AS days, 0 AS first_day FROM daily GROUP BY symbol LIMIT 0`);
  await createListings(session, ranking.symbols);
  const lacking = new Set<string>();
  const emptyDays = new Set<number>();
  const early: number[] = [];
  const withoutMembers: number[] = [];
  const days = await marketDays(session);
  const held = new Set(days);
  for (const start of ranking.starts) {
    const from = start - ranking.window;
    if (start - Math.max(ranking.window, ranking.minAge) < ranking.firstHeld) early.push(start);
    for (let day = Math.max(from, ranking.firstHeld); day < start; day += 1)
      if (!held.has(day)) emptyDays.add(day);
    const last = days.findLast((day) => day < start) ?? -1;
    if (last < from || !(await rankPeriod(session, { start, from, last }, ranking)))
      withoutMembers.push(start);
    if (last < from) continue;
    for (const symbol of await lackingSymbols(session, { start, from, last })) lacking.add(symbol);
  }
  return {
    lacking: [...lacking].sort(),
    emptyDays: [...emptyDays].sort((a, b) => a - b),
    early,
    withoutMembers,
    relisted: relistedSymbols(ranking),
  };
}

/** Creates the table `listing` (symbol, first_day, last_day, until). A listing holds until the first day of the next one. */
async function createListings(session: DuckDbSession, symbols: readonly HeldSymbol[]): Promise<void> {
  await session.run(
    'CREATE TEMP TABLE listing (symbol VARCHAR, first_day INTEGER, last_day INTEGER, until INTEGER)',
  );
  const rows = symbols.flatMap(({ symbol, listings }) =>
    listings.map(
      ({ first, last }, at) =>
        `(${quoteText(symbol)}, ${first}, ${last}, ${listings[at + 1]?.first ?? 2 ** 31 - 1})`,
    ),
  );
  if (rows.length > 0) await session.run(`INSERT INTO listing VALUES ${rows.join(', ')}`);
}

function relistedSymbols({ symbols, starts }: Ranking): string[] {
  const end = starts.at(-1) ?? 0;
  return symbols
    .filter(({ listings: [first, second] }) => second !== undefined && (first?.last ?? end) < end)
    .map(({ symbol }) => symbol)
    .sort();
}

interface Window {
  readonly start: number;
  readonly from: number;
  /** The last day before the period with rows of any symbol. */
  readonly last: number;
}

/** Resolves with whether the period has members. */
async function rankPeriod(
  session: DuckDbSession,
  { start, from, last }: Window,
  { top, minAge }: Pick<Ranking, 'top' | 'minAge'>,
): Promise<boolean> {
  await session.run(`CREATE OR REPLACE TEMP TABLE traded AS
SELECT l.symbol, l.first_day, l.last_day AS end_day, sum(value) AS value, count(day) AS days, max(day) AS last_day
FROM listing l LEFT JOIN daily d ON d.symbol = l.symbol AND day >= l.first_day AND day >= ${from} AND day < ${start}
WHERE l.first_day < ${start} AND until >= ${start} GROUP BY ALL`);
  await session.run(`INSERT INTO member
SELECT ${start}, symbol, row_number() OVER (ORDER BY value DESC, symbol) AS rank, value, days, first_day
FROM traded WHERE last_day = ${last} AND first_day <= ${start - minAge}
${top === undefined ? '' : `QUALIFY rank <= ${top}`}`);
  const [row] = await session.rows(`SELECT count(*) AS members FROM member WHERE period = ${start}`);
  return Number(row?.['members']) > 0;
}

/** Symbols with fewer days in the window than other symbols since their first day. Those that have ended before the period are left out. */
async function lackingSymbols(session: DuckDbSession, { start, from, last }: Window): Promise<string[]> {
  const rows = await session.rows(`SELECT symbol FROM traded
WHERE (last_day = ${last} OR end_day >= ${start})
  AND days < (SELECT count(*) FROM market_day WHERE day >= greatest(first_day, ${from}) AND day <= ${last})`);
  return rows.map((row) => String(row['symbol']));
}
