/** `cryptodl universe`: the most traded symbols at the beginning of each period, from klines of days before the period only. */
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import { withSignals } from '../../run/look-up.js';
import type { Command } from '../../run/verb.js';
import { unreadableFile } from '../../lake/catalogue/file-digests.js';
import { verbEngine } from '../../convert/duckdb.js';
import type { DuckDbSession } from '../../convert/duckdb.js';
import { DAY_MS, calendarStart, dayOf, dayText, nextCalendarStart } from '../../model/calendar.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { countText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import { MEASURES } from '../../plan/options/periods.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { readVerbLake } from '../../plan/select/held-series.js';
import { refuseInLake } from '../../plan/select/refuse-in-lake.js';
import { absolutePath, printLines } from '../../text/printable.js';
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
import type { HeldSymbol } from './members.js';
import { printUniverse } from './print-universe.js';

type Checked = Awaited<ReturnType<typeof check>>;

/** Throws usage errors. */
export async function universe(command: Command): Promise<ExitCode> {
  return withSignals(command, async (request) => rankAndPrint(command, request, await check(request)));
}

/** Everything that is known before the lake is read. */
async function check({ resolved, exchange, clock, surroundings: { home } }: VerbRequest) {
  const { options } = resolved;
  const { as, by, every, from, minAgeMs = 0, nowMs, target, to, windowMs } = options;
  const chosen = universeMarket(options, exchange);
  if (target === undefined && (as === 'parquet' || as === 'freqtrade'))
    throw usage(`--as ${as} needs --target`, `for example --as ${as} --target universe`);
  const file = target === undefined ? '' : absolutePath(target, home);
  if (file !== '') await refuseInLake(file, absolutePath(options.out, home), exchange.name);
  const today = dayOf(nowMs ?? clock.now(), chosen.spec);
  return {
    ...chosen,
    by: MEASURES.find((measure) => measure === by) ?? MEASURES[0],
    every: every?.kind === 'calendar' ? every.period : ('month' as const),
    window: windowMs / DAY_MS,
    minAge: minAgeMs / DAY_MS,
    // Days of the first and the last period.
    from: from?.kind === 'word' ? today - from.daysAgo : from?.first,
    to: to?.kind === 'word' ? today - Math.max(1, to.daysAgo) : to?.last,
    // Absolute; empty for the forms that are printed.
    target: file,
  };
}

/** Sums that exceed the memory limit go to the temporary folder. */
const MOST_MEMORY = 2e9;

async function rankAndPrint({ io }: Command, request: VerbRequest, checked: Checked): Promise<ExitCode> {
  const { exchange, resolved, observer } = request;
  const { options } = resolved;
  const { root, held } = await readVerbLake(request);
  const usable = held.filter((series) => isUsable(series, checked));
  if (usable.length === 0) throw noKlines(checked.market, root, options.out);
  const selected = await selectedSymbols(usable, request);
  const catalogue = openCatalogue(root, exchange, request.signal);
  const symbols = await readHeldSymbols(catalogue, usable, checked.spec);
  if (!symbols.some(({ symbol }) => selected.has(symbol))) throw noKlines(checked.market, root, options.out);
  const starts = periodStarts(checked, symbols, options);
  const ranking = { ...checked, top: options.top, symbols, selected, starts };
  const warn = observer.warn.bind(observer);
  const engine = verbEngine('universe', request, MOST_MEMORY);
  try {
    const session = await engine.session();
    await session.run("SET TimeZone = 'UTC'; SET enable_external_file_cache = false");
    await loadDailySums(session, catalogue, ranking);
    await rankSymbols(session, ranking);
    for (const text of unitWarning(ranking, exchange)) warn(text);
    for (const text of await missingTexts(session, ranking)) warn(text);
    const more = await printUniverse(session, ranking, {
      io,
      options,
      exchange,
      target: checked.target,
      warn,
    });
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
  { every, window, minAge, from, to, market }: Checked,
  symbols: readonly HeldSymbol[],
  { out }: Options,
): number[] {
  const listings = symbols.flatMap((symbol) => symbol.listings);
  const held = {
    first: listings.reduce((least, listing) => Math.min(least, listing.first), Infinity),
    last: listings.reduce((most, listing) => Math.max(most, listing.last), -Infinity),
  };
  const lookback = Math.max(window, minAge);
  const latest = calendarStart(held.last + 1, every);
  // Without --from, the first period with a full window.
  const full = nextCalendarStart(calendarStart(held.first + lookback - 1, every), every);
  const first = from === undefined ? full : calendarStart(from, every);
  const last = to === undefined ? latest : Math.min(calendarStart(to, every), latest);
  if (first > last || last <= held.first)
    throw usage(
      `${out} ${market} ${DATASET} has the days ${dayText(held.first)} … ${dayText(held.last)}, and no ${every} of the range begins after ${countText(lookback, 'day')} of them`,
      'change --from or --to, give a shorter --window or --min-age, or download earlier days',
    );
  const starts: number[] = [];
  for (let start = first; start <= last; start = nextCalendarStart(start, every)) starts.push(start);
  return starts;
}
