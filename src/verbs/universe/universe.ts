/** `cryptodl universe`: the most traded symbols at the beginning of each period, from klines of days before the period only; printed, or as pairlists of freqtrade. */
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { withSignals } from '../../run/verb/start-verb.js';
import { printRows } from '../../run/verb/print-table.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { unreadableFile } from '../../lake/catalogue/file-digests.js';
import { verbEngine, type DuckDb } from '../../convert/duckdb.js';
import { quoteName, quoteText } from '../../convert/sql.js';
import { calendarStart, dayText, nextCalendarStart } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import { countText, listText } from '../../model/units.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { readVerbLake } from '../../plan/select/held-series.js';
import { printLines, shownPath } from '../../text/printable.js';
import { rankingTerms, type RankingTerms, type Ranking, type UniverseFlag } from './ranking-terms.js';
import { DATASET, isUsable, noKlines, readHeldSymbols, selectedSymbols } from './held-klines.js';
import { loadDailySums } from './daily-sums.js';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pairName, pairOf } from '../../exchange/pairs.js';
import { refuseForeignFile, writeOwnFile } from '../../files/own-file.js';
import { fieldsOf, parseJson } from '../../text/json.js';

export const universe = async (command: VerbCall<UniverseFlag>): Promise<ExitCode> =>
  withSignals(command, async (request) => rankAndPrint(command.io, request, await rankingTerms(request)));

/** Sums that exceed the memory limit go to the temporary folder. */
const MOST_MEMORY = 2e9;

async function rankAndPrint(
  io: Io,
  request: VerbRequest<UniverseFlag>,
  terms: RankingTerms,
): Promise<ExitCode> {
  const { exchange, market, options, spec } = terms;
  const { root, held } = await readVerbLake(request);
  const usable = held.filter((series) => isUsable(series, terms));
  if (usable.length === 0) throw noKlines(market, root, options.out);
  const selected = await selectedSymbols(usable, request);
  const catalogue = openCatalogue(root, exchange, request.signal);
  const { symbols: all, marketDays } = await readHeldSymbols(catalogue, usable, spec);
  const symbols = all.filter(({ symbol }) => selected.has(symbol));
  if (symbols.length === 0) throw noKlines(market, root, options.out);
  const starts = periodStarts(terms, marketDays);
  const ranking = { ...terms, symbols, marketDays, starts };
  const engine = verbEngine('universe', request, MOST_MEMORY);
  try {
    const duckdb = await engine.connect();
    await duckdb.run("SET TimeZone = 'UTC'; SET enable_external_file_cache = false");
    await loadDailySums(duckdb, catalogue, ranking);
    await rankSymbols(duckdb, ranking);
    for (const text of await warningTexts(duckdb, ranking)) ranking.warn(text);
    const more = await printMembers(duckdb, io, ranking);
    const counts = await countsText(duckdb, starts);
    if (!options.quiet) printLines(io.stderr, [[counts, ...more].join('; ')]);
    return 0;
  } catch (error) {
    throw unreadableFile(error, root) ?? error;
  } finally {
    await engine.end();
  }
}

/**
 * The first days of all periods, in order. The last period is at most the one that begins on the day after the last held day. Throws a usage
 * error for a range without periods.
 */
function periodStarts(
  { every, window, minAge, from, to, market, options }: RankingTerms,
  marketDays: readonly number[],
): number[] {
  const heldDays = { first: marketDays[0] ?? Infinity, last: marketDays.at(-1) ?? -Infinity };
  const lookback = Math.max(window, minAge);
  const latest = calendarStart(heldDays.last + 1, every);
  // Without --from, the first period with a full window.
  const full = nextCalendarStart(calendarStart(heldDays.first + lookback - 1, every), every);
  const first = from === undefined ? full : calendarStart(from, every);
  const last = to === undefined ? latest : Math.min(calendarStart(to, every), latest);
  if (first > last || last <= heldDays.first)
    throw usage(
      `${options.out} ${market} ${DATASET} has the days ${dayText(heldDays.first)} … ${dayText(heldDays.last)}, and no ${every} of the range begins after ${countText(lookback, 'day')} of them`,
      'change --from or --to, give a shorter --window or --min-age, or download earlier days',
    );
  const starts: number[] = [];
  for (let start = first; start <= last; start = nextCalendarStart(start, every)) starts.push(start);
  return starts;
}

/** Resolves with further texts for the summary. */
async function printMembers(duckdb: DuckDb, io: Io, ranking: Ranking): Promise<string[]> {
  const { by, options } = ranking;
  if (options.as === 'freqtrade') return writePairlists(duckdb, io, ranking);
  if (options.as === 'list') {
    const rows = await duckdb.rows('SELECT DISTINCT symbol FROM member ORDER BY symbol');
    await writeData(io, options.json ? rows : rows.map(({ symbol }) => String(symbol)));
    return [];
  }
  // Sums of volumes are text with all digits, without zeros at the end.
  const value =
    by === 'count'
      ? 'CAST("count" AS DOUBLE)'
      : String.raw`regexp_replace(${quoteName(by)}::VARCHAR, '\.?0+$', '')`;
  const rows = await duckdb.select(
    `SELECT * REPLACE (${value} AS ${quoteName(by)}, period::VARCHAR AS period, first_day::VARCHAR AS first_day) FROM member ORDER BY member.period, rank`,
  );
  if (rows !== undefined) await printRows(io, rows, options.json);
  return [];
}

const MARK = 'cryptodl universe';

async function writePairlists(
  duckdb: DuckDb,
  io: Io,
  { market, starts, options, target, exchange, warn }: Ranking,
): Promise<string[]> {
  const lists = starts.map(dayText).map((period) => {
    const path = join(target, `pairlist-${period}.json`);
    const what = 'an unchanged list of cryptodl universe';
    return { period, own: { flag: 'target', path, what, isOwn: isOwnPairlist, force: options.force } };
  });
  for (const { own } of lists) await refuseForeignFile(own);
  const unnamed = new Set<string>();
  for (const { period, own } of lists) {
    const members = await duckdb.rows(
      `SELECT symbol FROM member WHERE period = DATE '${period}' ORDER BY rank`,
    );
    const pairs = members.flatMap(({ symbol }) => {
      const pair = pairOf(exchange, market, String(symbol));
      if (pair === undefined) unnamed.add(String(symbol));
      return pair === undefined ? [] : [pairName(pair)];
    });
    await writeOwnFile(own, (staged) => writeFile(staged, pairlistText(pairs)));
    if (options.json) await writeData(io, [{ period, file: shownPath(own.path), pairs: pairs.length }]);
  }
  if (unnamed.size > 0)
    warn(
      `${countText(unnamed.size, 'symbol')} left out of the pairs, because the quote asset is not known: ${listText([...unnamed].sort())}`,
    );
  return [`wrote ${countText(starts.length, 'file')} in ${shownPath(target)}`];
}

/**
 * A fragment of a configuration of freqtrade: its StaticPairList reads the pairs of `exchange.pair_whitelist`. The mark and the digest tell later runs that the file may be replaced. freqtrade
 * ignores both.
 */
function pairlistText(pairs: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(pairs)).digest('hex');
  const exchange = { pair_whitelist: pairs };
  const content = { made_by: MARK, digest, exchange, pairlists: [{ method: 'StaticPairList' }] };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

async function isOwnPairlist(path: string): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const { pair_whitelist: pairs } = fieldsOf(fieldsOf(parseJson(text))['exchange']);
  return Array.isArray(pairs) && text === pairlistText(pairs.map(String));
}

// The members of all periods in DuckDB: the symbols of each period by the sums of the days before it.

/**
 * Creates the table `member` with the columns of the result from `daily`, and the table `used` (period, day) of the days of all
 * windows. A period takes rows of its window only, which ends on the day before the period. Its members have rows on the last day of
 * the window that any symbol of the market has.
 */
async function rankSymbols(duckdb: DuckDb, ranking: Ranking): Promise<void> {
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
async function warningTexts(duckdb: DuckDb, ranking: Ranking): Promise<string[]> {
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
async function countsText(duckdb: DuckDb, starts: readonly number[]): Promise<string> {
  const [row] = await duckdb.rows(
    'SELECT count(*) AS members, count(DISTINCT symbol) AS symbols FROM member',
  );
  const [first = 0] = starts;
  const counts = `${countText(Number(row?.['members']), 'member')} of ${countText(Number(row?.['symbols']), 'symbol')}`;
  return `${countText(starts.length, 'period')}, ${dayText(first)} … ${dayText(starts.at(-1) ?? first)}: ${counts}`;
}
