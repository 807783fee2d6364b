/** Ranks the symbols of each period by their sums over the days before it. */
import type { DuckDbSession } from '../convert/duckdb.js';

export interface Ranking {
  /** First days of the periods. */
  readonly starts: readonly number[];
  /** Days before a period whose sums are ranked. */
  readonly window: number;
  readonly top: number | undefined;
  /** Days between the first day of a symbol and the period. */
  readonly minAge: number;
  /** All days with rows of any symbol of the market, in order. */
  readonly marketDays: readonly number[];
  /** Symbols with files of days that were not read, because they are after the last period began. */
  readonly goOn: ReadonlySet<string>;
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
  /** Members that were listed again: their days before count for no rank and no age. */
  readonly relisted: readonly string[];
}

/**
 * Creates the table `member` (period, symbol, rank, value, days, first_day) from the tables of `loadDailySums`. A statement of a period reads
 * the rows of its window only, which ends on the day before the period.
 */
export async function rankPeriods(session: DuckDbSession, ranking: Ranking): Promise<Incomplete> {
  await session.run(`CREATE TEMP TABLE member AS
SELECT 0 AS period, symbol, 0 AS rank, sum(value) AS value, 0 AS days, 0 AS first_day FROM daily GROUP BY symbol LIMIT 0`);
  const lacking = new Set<string>();
  const emptyDays = new Set<number>();
  const early: number[] = [];
  const withoutMembers: number[] = [];
  const held = new Set(ranking.marketDays);
  const [firstHeld = 0] = ranking.marketDays;
  for (const start of ranking.starts) {
    const from = start - ranking.window;
    if (start - Math.max(ranking.window, ranking.minAge) < firstHeld) early.push(start);
    for (let day = Math.max(from, firstHeld); day < start; day += 1) if (!held.has(day)) emptyDays.add(day);
    const last = ranking.marketDays.findLast((day) => day < start) ?? -1;
    if (last < from || !(await rankPeriod(session, { start, from, last }, ranking)))
      withoutMembers.push(start);
    if (last < from) continue;
    for (const symbol of await lackingSymbols(session, { start, from, last }, ranking)) lacking.add(symbol);
  }
  return {
    lacking: [...lacking].sort(),
    emptyDays: [...emptyDays].sort((a, b) => a - b),
    early,
    withoutMembers,
    relisted: await relistedMembers(session),
  };
}

async function relistedMembers(session: DuckDbSession): Promise<string[]> {
  const rows = await session.rows(`SELECT DISTINCT symbol FROM member JOIN span USING (symbol)
WHERE span.first_day < member.first_day ORDER BY symbol`);
  return rows.map((row) => String(row['symbol']));
}

interface Window {
  readonly start: number;
  readonly from: number;
  /** The last day before the period with rows of any symbol. */
  readonly last: number;
}

/** A row of `traded` is a listing. A symbol has the last day in one listing only. Resolves with whether the period has members. */
async function rankPeriod(
  session: DuckDbSession,
  { start, from, last }: Window,
  { top, minAge }: Pick<Ranking, 'top' | 'minAge'>,
): Promise<boolean> {
  await session.run(`CREATE OR REPLACE TEMP TABLE traded AS
SELECT symbol, first_day, sum(value) AS value, count(*) AS days, max(day) AS last_day
FROM daily WHERE day >= ${from} AND day < ${start} GROUP BY symbol, first_day`);
  await session.run(`INSERT INTO member
SELECT ${start}, symbol, row_number() OVER (ORDER BY value DESC, symbol) AS rank, value, days, first_day
FROM traded WHERE traded.last_day = ${last} AND first_day <= ${start - minAge}
${top === undefined ? '' : `QUALIFY rank <= ${top}`}`);
  const [row] = await session.rows(`SELECT count(*) AS members FROM member WHERE period = ${start}`);
  return Number(row?.['members']) > 0;
}

/**
 * Symbols with fewer days in the window than other symbols since the first day of their latest listing. Those that have ended before the period
 * are left out.
 */
async function lackingSymbols(
  session: DuckDbSession,
  { start, from, last }: Window,
  { goOn }: Pick<Ranking, 'goOn'>,
): Promise<string[]> {
  const rows =
    await session.rows(`SELECT symbol, traded.last_day = ${last} OR span.last_day >= ${start} AS goes_on
FROM (SELECT * FROM span WHERE first_day < ${start} QUALIFY row_number() OVER (PARTITION BY symbol ORDER BY first_day DESC) = 1) AS span
    LEFT JOIN traded USING (symbol, first_day), (SELECT min(n) AS n FROM market_day WHERE day >= ${from}) AS f,
  (SELECT n FROM market_day WHERE day = ${last}) AS l
WHERE coalesce(days, 0) < l.n - greatest(first_n, f.n) + 1`);
  return rows
    .filter((row) => row['goes_on'] === true || goOn.has(String(row['symbol'])))
    .map((row) => String(row['symbol']));
}
