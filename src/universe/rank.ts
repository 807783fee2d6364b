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

interface NotMember {
  readonly symbol: string;
  /** The period. */
  readonly start: number;
  /** The day without a row. */
  readonly day: number;
}

/** Days and symbols that are missing in the windows of the periods. */
export interface Incomplete {
  /** Members without a row on a day between other days of them, on which other symbols have rows. */
  readonly holes: readonly string[];
  /** Symbols without a row on the last day before a period that have rows on earlier and later days. */
  readonly notMembers: readonly NotMember[];
  /** Days without a row of any symbol. */
  readonly emptyDays: readonly number[];
  /** Periods whose window begins before the first day of the lake. */
  readonly shortWindows: readonly number[];
  /** Periods before which the last day has no row of any symbol, with the day that was used instead. */
  readonly earlierDays: readonly { readonly start: number; readonly day: number }[];
  /** Periods without a member. */
  readonly withoutMembers: readonly number[];
}

/**
 * Creates the table `member` (period, symbol, rank, value, days, first_day) from the tables of `loadDailySums`. A statement of a period reads
 * the rows of its window only, which ends on the day before the period.
 */
export async function rankPeriods(session: DuckDbSession, ranking: Ranking): Promise<Incomplete> {
  await session.run(`CREATE TEMP TABLE member AS
SELECT 0 AS period, symbol, 0 AS rank, sum(value) AS value, 0 AS days, 0 AS first_day FROM daily GROUP BY symbol LIMIT 0`);
  const holes = new Set<string>();
  const notMembers: NotMember[] = [];
  const emptyDays = new Set<number>();
  const shortWindows: number[] = [];
  const earlierDays: { start: number; day: number }[] = [];
  const withoutMembers: number[] = [];
  const held = new Set(ranking.marketDays);
  const [firstHeld = 0] = ranking.marketDays;
  for (const start of ranking.starts) {
    const from = start - ranking.window;
    if (from < firstHeld) shortWindows.push(start);
    for (let day = Math.max(from, firstHeld); day < start; day += 1) if (!held.has(day)) emptyDays.add(day);
    const last = ranking.marketDays.findLast((day) => day < start) ?? -1;
    if (last < from) {
      withoutMembers.push(start);
      continue;
    }
    if (last < start - 1) earlierDays.push({ start, day: last });
    if (!(await rankPeriod(session, { start, from, last }, ranking))) withoutMembers.push(start);
    for (const symbol of await symbolsWithHoles(session, { from, last })) holes.add(symbol);
    for (const symbol of await symbolsWithoutLast(session, { start, last }, ranking))
      notMembers.push({ symbol, start, day: last });
  }
  return {
    holes: [...holes].sort(),
    notMembers,
    emptyDays: [...emptyDays].sort((a, b) => a - b),
    shortWindows,
    earlierDays,
    withoutMembers,
  };
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
SELECT symbol, sum(value) AS value, count(*) AS days, max(day) AS last_day
FROM daily WHERE day >= ${from} AND day < ${start} GROUP BY symbol`);
  await session.run(`INSERT INTO member
SELECT ${start}, symbol, row_number() OVER (ORDER BY value DESC, symbol) AS rank, value, days, first_day
FROM traded JOIN span USING (symbol)
WHERE traded.last_day = ${last} AND first_day <= ${start - minAge}
${top === undefined ? '' : `QUALIFY rank <= ${top}`}`);
  const [row] = await session.rows(`SELECT count(*) AS members FROM member WHERE period = ${start}`);
  return Number(row?.['members']) > 0;
}

/** Symbols without a row on the last day before the period that have later rows, so they were not delisted. */
async function symbolsWithoutLast(
  session: DuckDbSession,
  { start, last }: Omit<Window, 'from'>,
  { minAge, goOn }: Pick<Ranking, 'minAge' | 'goOn'>,
): Promise<string[]> {
  const rows = await session.rows(`SELECT symbol, span.last_day >= ${start} AS goes_on
FROM span LEFT JOIN traded USING (symbol)
WHERE first_day <= ${start - Math.max(1, minAge)} AND (traded.last_day IS NULL OR traded.last_day < ${last})
ORDER BY symbol`);
  return rows
    .map((row) => ({ symbol: String(row['symbol']), goesOn: row['goes_on'] === true }))
    .filter(({ symbol, goesOn }) => goesOn || goOn.has(symbol))
    .map(({ symbol }) => symbol);
}

/** Eligible symbols of the window with fewer days than other symbols since their first day. */
async function symbolsWithHoles(
  session: DuckDbSession,
  { from, last }: Omit<Window, 'start'>,
): Promise<string[]> {
  const rows = await session.rows(`SELECT symbol
FROM traded JOIN span USING (symbol), (SELECT min(n) AS n FROM market_day WHERE day >= ${from}) AS f,
  (SELECT n FROM market_day WHERE day = ${last}) AS l
WHERE traded.last_day = ${last} AND days < l.n - greatest(first_n, f.n) + 1`);
  return rows.map((row) => String(row['symbol']));
}
