/** The members of all periods in DuckDB: daily sums of klines, and the symbols of each period by the sums of the days before it. */
import type { Catalogue, SeriesFilesPart } from '../../lake/catalogue/catalogue.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { hasTextNumbers } from '../../lake/catalogue/views.js';
import { instantExpression } from '../../convert/columns.js';
import type { DuckDb } from '../../convert/duckdb.js';
import { quoteName, quoteText } from '../../convert/sql.js';
import { grouped } from '../../model/by-name.js';
import { DAY_MS, dayOf, dayText, eachDay } from '../../model/calendar.js';
import type { DayStart } from '../../model/calendar.js';
import { countText, listText } from '../../model/units.js';
import { MEASURES } from '../../plan/options/periods.js';
import type { Measure } from '../../plan/options/periods.js';
import { findDataset, intervalMs } from '../../exchange/exchange-spec.js';
import { CryptodlError, usage } from '../../model/errors.js';
import { seriesName } from '../../model/task.js';
import type { Market, Series } from '../../model/task.js';
import type { RANKING_FLAGS } from '../../plan/options/flag-sets.js';
import type { HeldFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { refuseInLake, selectGiven } from '../../plan/select/held-series.js';
import { oneMarket } from '../../plan/select/select-datasets.js';
import { pairOf } from '../../exchange/pairs.js';
import { absolutePath, lakeFlag } from '../../text/printable.js';
import type { LakeFile } from '../../lake/catalogue/lake-file.js';

export type Checked = Awaited<ReturnType<typeof check>>;

export interface Ranking extends Checked {
  /** First days of the periods, in order. */
  readonly starts: readonly number[];
  /** The symbols that can be members. */
  readonly symbols: readonly HeldSymbol[];
  /** The days on which any symbol of the market has rows, ascending. */
  readonly marketDays: readonly number[];
}

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
      ({ first, last }, at) =>
        `(${quoteText(symbol)}, ${first}, ${last}, ${own[at + 1]?.first ?? 2 ** 31 - 1})`,
    ),
  );
  await duckdb.run(`CREATE TEMP TABLE listing AS
FROM (VALUES ${listings.join(', ')}) AS given(symbol, first_day, last_day, until)`);
  await duckdb.run(
    `CREATE TEMP TABLE market AS SELECT CAST(unnest([${marketDays.join(', ')}]) AS INTEGER) AS day`,
  );
  await duckdb.run(`CREATE TEMP TABLE used AS
SELECT period, CAST(unnest(range(period - ${window}, period)) AS INTEGER) AS day
FROM (VALUES ${starts.map((start) => `(${start})`).join(', ')}) AS given(period)`);
  await duckdb.run(`CREATE TEMP TABLE member AS
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

/** A text for each kind of missing data, from the tables of `rankSymbols`. */
export async function missingTexts(duckdb: DuckDb, { market }: Ranking): Promise<string[]> {
  const symbols = await duckdb.rows(`SELECT DISTINCT symbol
FROM listing JOIN market ON day BETWEEN first_day AND last_day
SEMI JOIN used USING (day) ANTI JOIN daily USING (symbol, day) ORDER BY symbol`);
  const days = await duckdb.rows('SELECT DISTINCT day FROM used ANTI JOIN market USING (day) ORDER BY day');
  const texts = [];
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

export type UniverseFlag = HeldFlag | (typeof RANKING_FLAGS)[number] | 'now' | 'quiet' | 'temp-dir';

export const DATASET = 'klines';

/** Everything that is known before the lake is read. Throws usage errors, also for a market without klines or a column that is not comparable. */
export async function check({
  resolved: { options },
  exchange,
  clock,
  surroundings: { home },
}: VerbRequest<UniverseFlag>) {
  const { as, by, every, from, minAgeMs = 0, nowMs, to, top, windowMs } = options;
  const market = oneMarket(exchange, options, 'universe');
  const spec = findDataset(exchange, market, DATASET);
  if (spec === undefined) throw usage(`--market ${market} has no ${DATASET}`, 'choose another market');
  const unitOf = (name: string): string | undefined =>
    spec.columns.find((column) => column.name === name)?.unit;
  // The archive's quote_volume of coin-margined futures is in the base coin, and the size of a contract differs by symbol.
  if (unitOf('quote_volume') !== 'quote asset' && by !== 'count')
    throw usage(
      `--by ${by} is in ${unitOf(by) ?? 'another unit'} for ${market}, so it does not compare symbols`,
      '--by count ranks by the number of trades',
    );
  if (options.target === undefined && as === 'freqtrade')
    throw usage('--as freqtrade needs --target', 'for example --as freqtrade --target universe');
  const target = options.target === undefined ? '' : absolutePath(options.target, home);
  if (target !== '') await refuseInLake(target, exchange.name);
  const today = dayOf(nowMs ?? clock.now(), spec);
  return {
    market,
    // Of its klines.
    spec,
    options,
    exchange,
    by: MEASURES.find((measure) => measure === by) ?? MEASURES[0],
    top,
    every: every?.kind === 'calendar' ? every.period : ('month' as const),
    // Days before a period whose sums are ranked.
    window: windowMs / DAY_MS,
    // Days between the first day of a symbol and the period.
    minAge: minAgeMs / DAY_MS,
    // Days of the first and the last period.
    from: from?.kind === 'word' ? today - from.daysAgo : from?.first,
    to: to?.kind === 'word' ? today - Math.max(1, to.daysAgo) : to?.last,
    // Absolute; empty for the forms that are printed.
    target,
  };
}

/** The error for a lake without files that universe reads. `root`: the lake; `out`: as the user named it. */
export function noKlines(market: Market, root: string, out: string): Error {
  return usage(
    `${out} has no ${market} ${DATASET} with an interval of at most 1d as Parquet or CSV`,
    `download them: cryptodl vision --market ${market} --dataset ${DATASET} --interval 1d --symbols all --from 2023-01 --format parquet${lakeFlag(root)}`,
  );
}

/** Whether a universe of the market reads this series. Bars above a day begin before a period and end after its start. */
export function isUsable({ market, dataset, interval = '' }: Series, of: Pick<Ranking, 'market'>): boolean {
  return market === of.market && dataset === DATASET && DAY_MS % intervalMs(interval) === 0;
}

/** The symbols that --symbols, --quote and --contract select. Throws usage errors for names that the lake does not have, and if none is left. */
export async function selectedSymbols(
  usable: readonly Series[],
  request: VerbRequest<HeldFlag | 'contract'>,
): Promise<ReadonlySet<string>> {
  const { resolved, exchange } = request;
  const { contract } = resolved.options;
  const chosen = (await selectGiven(usable, request)).filter(
    ({ market, symbol }) =>
      contract === 'all' ||
      (pairOf(exchange, market, symbol)?.expiry !== undefined) === (contract === 'dated'),
  );
  if (chosen.length === 0)
    throw usage(`--contract ${contract} leaves none of the selected symbols`, '--contract all');
  return new Set(chosen.map(({ symbol }) => symbol));
}

// The klines of a lake by symbol: their files, and the days on which the symbol was listed. Only manifests are read.

/** The days of the first and the last row of a listing. */
interface Listing {
  readonly first: number;
  last: number;
}

/** Its `listings` are in order, at least one. */
type HeldSymbol = Awaited<ReturnType<typeof readHeldSymbols>>['symbols'][number];

/** A symbol without rows on so many days on which others have rows was listed again: its name may stand for another asset. */
const RELISTED_DAYS = 30;

/**
 * The symbols with rows, and the days of any of them. Rejects with `disk` if a file is missing, because a rank without its rows would be wrong, and for a damaged
 * manifest.
 */
export async function readHeldSymbols(catalogue: Catalogue, selected: readonly Series[], dayStart: DayStart) {
  const bySymbol = new Map<string, SeriesFilesPart[]>();
  for await (const { series, files, fault, damage } of catalogue.series(selected)) {
    if (damage !== undefined) throw damage;
    if (fault !== undefined) throw new CryptodlError('disk', `${seriesName(series)}: ${fault}`);
    bySymbol.set(series.symbol, [...(bySymbol.get(series.symbol) ?? []), { series, files }]);
  }
  const held = [...bySymbol].map(([symbol, parts]) => {
    const files = parts.flatMap((part) => part.files);
    return { symbol, parts, days: inOrder(files.flatMap((file) => daysOf(file, dayStart))) };
  });
  const marketDays = inOrder(held.flatMap(({ days }) => days));
  const placeOf = new Map(marketDays.map((day, at) => [day, at]));
  const symbols = held.flatMap(({ symbol, parts, days }) =>
    days.length === 0 ? [] : [{ symbol, parts, listings: listingsOf(days, placeOf) }],
  );
  return { symbols, marketDays };
}

/** The days from the first to the last row of a file, without those that it lacks. */
function daysOf({ first, last, missing }: LakeFile, dayStart: DayStart): number[] {
  if (first === undefined || last === undefined) return [];
  const [from, to] = [dayOf(Date.parse(first), dayStart), dayOf(Date.parse(last), dayStart) + 1];
  return eachDay({ from, to }).filter((day) => !missing.includes(day));
}

function inOrder(days: readonly number[]): number[] {
  return [...new Set(days)].sort((a, b) => a - b);
}

/** `placeOf`: the place of each day among the days of the market. */
function listingsOf(days: readonly number[], placeOf: ReadonlyMap<number, number>): Listing[] {
  const listings: Listing[] = [];
  const place = (day: number): number => placeOf.get(day) ?? 0;
  for (const day of days) {
    const now = listings.at(-1);
    if (now !== undefined && place(day) - place(now.last) <= RELISTED_DAYS) now.last = day;
    else listings.push({ first: day, last: day });
  }
  return listings;
}
