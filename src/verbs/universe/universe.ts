/** `cryptodl universe`: the most traded symbols at the beginning of each period, from klines of days before the period only. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { withSignals } from '../../run/verb/look-up.js';
import { printRows } from '../../run/verb/print-table.js';
import type { Command } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { unreadableFile } from '../../lake/catalogue/file-digests.js';
import { verbEngine } from '../../convert/duckdb.js';
import type { DuckDbSession } from '../../convert/duckdb.js';
import { quoteName } from '../../convert/sql.js';
import { pairOf } from '../../exchange/pairs.js';
import type { Pair } from '../../exchange/pairs.js';
import { refuseForeignFile, writeOwnFile } from '../../files/own-file.js';
import { DAY_MS, calendarStart, dayOf, dayText, nextCalendarStart } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import { countText, listText } from '../../model/units.js';
import { MEASURES } from '../../plan/options/periods.js';
import type { RANKING_FLAGS } from '../../plan/options/flag-sets.js';
import type { HeldFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { readVerbLake, refuseInLake } from '../../plan/select/held-series.js';
import { fieldsOf } from '../../text/json.js';
import { absolutePath, printLines, shownPath } from '../../text/printable.js';
import {
  DATASET,
  isUsable,
  loadDailySums,
  missingTexts,
  noKlines,
  rankSymbols,
  readHeldSymbols,
  selectedSymbols,
  unitWarning,
  universeMarket,
} from './members.js';
import type { Ranking } from './members.js';

type Flag = HeldFlag | (typeof RANKING_FLAGS)[number] | 'now' | 'quiet' | 'temp-dir';

type Checked = Awaited<ReturnType<typeof check>>;

/** Throws usage errors. */
export async function universe(command: Command<Flag>): Promise<ExitCode> {
  return withSignals(command, async (request) => rankAndPrint(command.io, request, await check(request)));
}

/** Everything that is known before the lake is read. */
async function check({ resolved: { options }, exchange, clock, surroundings: { home } }: VerbRequest<Flag>) {
  const { as, by, every, from, minAgeMs = 0, nowMs, to, windowMs } = options;
  const chosen = universeMarket(options, exchange);
  if (options.target === undefined && as === 'freqtrade')
    throw usage('--as freqtrade needs --target', 'for example --as freqtrade --target universe');
  const target = options.target === undefined ? '' : absolutePath(options.target, home);
  if (target !== '') await refuseInLake(target, exchange.name);
  const today = dayOf(nowMs ?? clock.now(), chosen.spec);
  return {
    ...chosen,
    options,
    exchange,
    by: MEASURES.find((measure) => measure === by) ?? MEASURES[0],
    top: options.top,
    every: every?.kind === 'calendar' ? every.period : ('month' as const),
    window: windowMs / DAY_MS,
    minAge: minAgeMs / DAY_MS,
    // Days of the first and the last period.
    from: from?.kind === 'word' ? today - from.daysAgo : from?.first,
    to: to?.kind === 'word' ? today - Math.max(1, to.daysAgo) : to?.last,
    // Absolute; empty for the forms that are printed.
    target,
  };
}

/** Sums that exceed the memory limit go to the temporary folder. */
const MOST_MEMORY = 2e9;

async function rankAndPrint(io: Io, request: VerbRequest<Flag>, checked: Checked): Promise<ExitCode> {
  const { exchange, observer } = request;
  const { market, options, spec } = checked;
  const { root, held } = await readVerbLake(request);
  const usable = held.filter((series) => isUsable(series, checked));
  if (usable.length === 0) throw noKlines(market, root, options.out);
  const selected = await selectedSymbols(usable, request);
  const catalogue = openCatalogue(root, exchange, request.signal);
  const { symbols: all, marketDays } = await readHeldSymbols(catalogue, usable, spec);
  const symbols = all.filter(({ symbol }) => selected.has(symbol));
  if (symbols.length === 0) throw noKlines(market, root, options.out);
  const starts = periodStarts(checked, marketDays);
  const ranking = { ...checked, symbols, marketDays, starts, warn: observer.warn.bind(observer) };
  const engine = verbEngine('universe', request, MOST_MEMORY);
  try {
    const session = await engine.session();
    await session.run("SET TimeZone = 'UTC'; SET enable_external_file_cache = false");
    await loadDailySums(session, catalogue, ranking);
    await rankSymbols(session, ranking);
    for (const text of unitWarning(ranking, exchange)) ranking.warn(text);
    for (const text of await missingTexts(session, ranking)) ranking.warn(text);
    const more = await printMembers(session, io, ranking);
    const counts = await countsOf(session, starts);
    if (!options.quiet) printLines(io.stderr, [[counts, ...more].join('; ')]);
    return 0;
  } catch (error) {
    throw unreadableFile(error, root) ?? error;
  } finally {
    await engine.end();
  }
}

async function countsOf(session: DuckDbSession, starts: readonly number[]): Promise<string> {
  const [row] = await session.rows(
    'SELECT count(*) AS members, count(DISTINCT symbol) AS symbols FROM member',
  );
  const [first = 0] = starts;
  const counts = `${countText(Number(row?.['members']), 'member')} of ${countText(Number(row?.['symbols']), 'symbol')}`;
  return `${countText(starts.length, 'period')}, ${dayText(first)} … ${dayText(starts.at(-1) ?? first)}: ${counts}`;
}

/**
 * The first days of all periods, in order. The last period is at most the one that begins on the day after the last held day. Throws a usage
 * error for a range without periods.
 */
function periodStarts(
  { every, window, minAge, from, to, market, options }: Checked,
  marketDays: readonly number[],
): number[] {
  const held = { first: marketDays[0] ?? Infinity, last: marketDays.at(-1) ?? -Infinity };
  const lookback = Math.max(window, minAge);
  const latest = calendarStart(held.last + 1, every);
  // Without --from, the first period with a full window.
  const full = nextCalendarStart(calendarStart(held.first + lookback - 1, every), every);
  const first = from === undefined ? full : calendarStart(from, every);
  const last = to === undefined ? latest : Math.min(calendarStart(to, every), latest);
  if (first > last || last <= held.first)
    throw usage(
      `${options.out} ${market} ${DATASET} has the days ${dayText(held.first)} … ${dayText(held.last)}, and no ${every} of the range begins after ${countText(lookback, 'day')} of them`,
      'change --from or --to, give a shorter --window or --min-age, or download earlier days',
    );
  const starts: number[] = [];
  for (let start = first; start <= last; start = nextCalendarStart(start, every)) starts.push(start);
  return starts;
}

// Prints or writes the members in the form of `--as`: CSV, NDJSON, a list, lists of pairs.

const MARK = 'cryptodl universe';

type Printed = Checked & Ranking & { readonly warn: (text: string) => void };

/** Resolves with further texts for the summary. */
async function printMembers(session: DuckDbSession, io: Io, ranking: Printed): Promise<string[]> {
  const { by, options } = ranking;
  if (options.as === 'freqtrade') return writePairlists(session, io, ranking);
  if (options.as === 'list') {
    const rows = await session.rows('SELECT DISTINCT symbol FROM member ORDER BY symbol');
    await writeData(io, options.json ? rows : rows.map(({ symbol }) => String(symbol)));
    return [];
  }
  // Sums of volumes are text with all digits, without zeros at the end.
  const value =
    by === 'count'
      ? 'CAST("count" AS DOUBLE)'
      : String.raw`regexp_replace(${quoteName(by)}::VARCHAR, '\.?0+$', '')`;
  const rows = await session.select(
    `SELECT * REPLACE (${value} AS ${quoteName(by)}, period::VARCHAR AS period, first_day::VARCHAR AS first_day) FROM member ORDER BY member.period, rank`,
  );
  if (rows !== undefined) await printRows(io, rows, options.json);
  return [];
}

async function writePairlists(
  session: DuckDbSession,
  io: Io,
  { market, starts, options, target, exchange, warn }: Printed,
): Promise<string[]> {
  const lists = starts.map(dayText).map((period) => {
    const path = join(target, `pairlist-${period}.json`);
    const what = 'an unchanged list of cryptodl universe';
    return { period, own: { flag: 'target', path, what, isOwn: isOwnPairlist, force: options.force } };
  });
  for (const { own } of lists) await refuseForeignFile(own);
  const unnamed = new Set<string>();
  for (const { period, own } of lists) {
    const members = await session.rows(
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

/** `BTC/USDT`, `BTC/USDT:USDT`, `BTC/USD:BTC`, `BTC/USDT:USDT-240329` */
function pairName({ base, quote, settle, expiry }: Pair): string {
  return `${base}/${quote}${settle === undefined ? '' : `:${settle}`}${expiry === undefined ? '' : `-${expiry}`}`;
}

/**
 * A fragment of a configuration of freqtrade: its StaticPairList reads the pairs of `exchange.pair_whitelist`. The mark and the digest tell later runs that the file may be replaced. freqtrade
 * ignores both.
 */
function pairlistText(pairs: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(pairs)).digest('hex');
  const content = {
    made_by: MARK,
    digest,
    exchange: { pair_whitelist: pairs },
    pairlists: [{ method: 'StaticPairList' }],
  };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

async function isOwnPairlist(path: string): Promise<boolean> {
  try {
    const text = await readFile(path, 'utf8');
    const { pair_whitelist: pairs } = fieldsOf(fieldsOf(JSON.parse(text))['exchange']);
    return Array.isArray(pairs) && text === pairlistText(pairs.map(String));
  } catch {
    return false;
  }
}
