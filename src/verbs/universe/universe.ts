/** `cryptodl universe`: the most traded symbols at the beginning of each period, from klines of days before the period only; printed, or as pairlists of freqtrade. */
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { withSignals } from '../../run/verb/start-verb.js';
import { printRows } from '../../run/verb/print-table.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { unreadableFile } from '../../lake/catalogue/file-digests.js';
import { verbEngine, type DuckDb } from '../../convert/duckdb.js';
import { quoteName } from '../../convert/sql.js';
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
import { countsText, rankSymbols, warningTexts } from './members.js';
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
