/** `cryptodl universe`: the most traded symbols at the beginning of each period, from klines of days before the period only. */
import { runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { openCatalogue } from '../catalogue/catalogue.js';
import { isFileError } from '../convert/duckdb-errors.js';
import { verbEngine } from '../convert/duckdb.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { calendarStart, DAY_MS, dayText } from '../model/calendar.js';
import type { CalendarPeriod } from '../model/calendar.js';
import { CryptodlError, usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { countText } from '../model/units.js';
import { surroundingsOf } from '../options/environment.js';
import type { Options } from '../options/flags.js';
import { MEASURES } from '../options/periods.js';
import type { Measure } from '../options/periods.js';
import type { RawLayer } from '../options/resolve.js';
import { readLists, readPatterns } from '../options/symbols.js';
import type { SymbolPatterns } from '../options/symbols.js';
import type { VerbRequest } from '../options/verb-request.js';
import { readVerbLake } from '../select/held-series.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import { absolutePath, lakeFlag, printLines } from '../text/printable.js';
import {
  DATASET,
  noKlines,
  selectedSymbols,
  unitWarnings,
  universeMarket,
  usableSeries,
} from './choose-symbols.js';
import type { UniverseMarket } from './choose-symbols.js';
import { firstLine, isTooLarge, loadDailySums } from './daily-sums.js';
import { fetchKlines } from './fetch-klines.js';
import { readHeldSymbols } from './held-symbols.js';
import type { HeldSymbol } from './held-symbols.js';
import { givenDays, periodStarts } from './periods.js';
import type { GivenDays } from './periods.js';
import { printUniverse } from './print-universe.js';
import { rankPeriods } from './rank.js';
import type { Ranking } from './rank.js';
import { incompleteWarnings } from './warnings.js';

export interface UniverseCommand extends LookUp {
  /** The sources of the options, the flags first. */
  readonly layers: readonly RawLayer[];
}

/** Everything that is known before the lake is read. */
interface Checked extends UniverseMarket, GivenDays {
  readonly by: Measure;
  readonly every: CalendarPeriod;
  /** In days. */
  readonly window: number;
  readonly minAge: number;
  readonly patterns: SymbolPatterns | undefined;
  /** Absolute; undefined for the forms that are printed. */
  readonly target: string | undefined;
}

/** Throws usage errors. Resolves with the exit code of the download if `--fetch` fails. */
export async function universe(command: UniverseCommand): Promise<ExitCode> {
  const checked = await check(command);
  if (command.resolved.options.fetch) {
    const code = await fetchKlines(command, checked, { from: firstDay(checked), patterns: checked.patterns });
    if (code !== 0) {
      if (!command.resolved.options.quiet)
        printLines(command.io.stderr, ['nothing is ranked, because the download is not complete']);
      return code;
    }
  }
  return runVerb(command, (request) => rankAndPrint(command, request, checked));
}

/** The first day that the first given period needs. */
function firstDay({ from = 0, every, window, minAge }: Checked): number {
  return calendarStart(from, every) - Math.max(window, minAge);
}

async function check({ resolved, source, io }: UniverseCommand): Promise<Checked> {
  const { options } = resolved;
  const chosen = universeMarket(resolved, source);
  const { home } = surroundingsOf(io.environment);
  const root = absolutePath(options.out, home);
  const target = targetOf(options, home);
  if (target !== undefined) await refuseInLake(target, root, source.name);
  const given = givenDays(options, options.nowMs ?? io.clock.now(), chosen.spec);
  if (options.fetch && given.from === undefined)
    throw usage('--fetch needs --from, the date of the first period', '--from 2023-01');
  return {
    ...chosen,
    ...given,
    ...lengthsOf(options),
    target,
    patterns: options.symbols === undefined ? undefined : await readPatterns(options.symbols, readLists(io)),
  };
}

/** The absolute path of --target; undefined for a form that is printed. Throws a usage error for a missing or an idle --target. */
function targetOf(
  { as, target }: Pick<Options, 'as' | 'target'>,
  home: string | undefined,
): string | undefined {
  const isPrinted = as === 'csv' || as === 'list';
  if (isPrinted === (target === undefined))
    return target === undefined ? undefined : absolutePath(target, home);
  throw isPrinted
    ? usage(`--target changes nothing with --as ${as}, which is printed`, 'leave --target out')
    : usage(`--as ${as} needs --target`, `for example --as ${as} --target universe`);
}

function lengthsOf({
  by,
  every,
  windowMs,
  minAgeMs = 0,
}: Options): Pick<Checked, 'by' | 'every' | 'window' | 'minAge'> {
  return {
    by: MEASURES.find((measure) => measure === by) ?? MEASURES[0],
    every: every?.kind === 'calendar' ? every.period : 'month',
    window: windowMs / DAY_MS,
    minAge: minAgeMs / DAY_MS,
  };
}

async function rankAndPrint(
  command: UniverseCommand,
  request: VerbRequest,
  checked: Checked,
): Promise<ExitCode> {
  const { io, resolved, source } = command;
  const { options } = resolved;
  const warn = (text: string): void => {
    request.observer.warn(text);
  };
  const { root, held } = await readVerbLake(request);
  const usable = usableSeries(held, checked, { root, out: options.out });
  const names = [...new Set(usable.map(({ symbol }) => symbol))];
  const of = { resolved, venue: source, warn };
  const selected = new Set(selectedSymbols(names, checked.patterns, checked, of));
  const catalogue = openCatalogue(root, source, request.signal);
  const symbols = await readHeldSymbols(catalogue, usable, checked.spec);
  if (symbols.length === 0) throw noKlines(checked.market, { root, out: options.out });
  const ranking = rankingOf(symbols, selected, checked, options);
  const { starts, window } = ranking;
  const days = { from: (starts[0] ?? 0) - window, to: starts.at(-1) ?? 0 };
  return withSession<ExitCode>(request, async (session) => {
    await loadDailySums(session, { ...checked, catalogue, symbols, selected, days });
    const incomplete = await rankPeriods(session, ranking);
    for (const text of [
      ...unitWarnings([...selected], checked, { options, venue: source }),
      ...incompleteWarnings(incomplete, ranking, { root, market: checked.market }),
    ])
      warn(text);
    const { market, by, target } = checked;
    const more = await printUniverse(session, {
      io,
      options,
      venue: source,
      market,
      by,
      starts,
      target,
      warn,
    });
    if (more !== undefined && !options.quiet)
      printLines(io.stderr, [[await summary(session, starts), ...more].join('; ')]);
    return 0;
  });
}

/** The periods that the days of the lake allow. Throws a usage error if the selected symbols have no rows before the last one. */
function rankingOf(
  all: readonly HeldSymbol[],
  selected: ReadonlySet<string>,
  { from, to, every, window, minAge, market }: Checked,
  { top, out }: Options,
): Ranking {
  const listings = all.flatMap((symbol) => symbol.listings);
  const first = listings.reduce((least, listing) => Math.min(least, listing.first), Infinity);
  const last = listings.reduce((most, listing) => Math.max(most, listing.last), -Infinity);
  const lookback = Math.max(window, minAge);
  const what = `${out} ${market} ${DATASET}`;
  const starts = periodStarts({ every, lookback, held: { first, last }, from, to, what });
  const before = starts.at(-1) ?? 0;
  const symbols = all.filter(({ symbol }) => selected.has(symbol));
  if (symbols.every((symbol) => symbol.listings.every((listing) => listing.first >= before)))
    throw usage(
      `the lake has no ${market} ${DATASET} of the selected symbols before ${dayText(before)}`,
      'download earlier days, or give a later --to',
    );
  return { starts, window, minAge, top, firstHeld: first, symbols };
}

async function summary(session: DuckDbSession, starts: readonly number[]): Promise<string> {
  const [row] = await session.rows('SELECT count(*) AS rows, count(DISTINCT symbol) AS symbols FROM member');
  const [first = 0] = starts;
  const last = starts.at(-1) ?? first;
  return `${countText(starts.length, 'period')}, ${dayText(first)} … ${dayText(last)}: ${countText(Number(row?.['rows']), 'member')} of ${countText(Number(row?.['symbols']), 'symbol')}`;
}

const MOST_MEMORY = 2e9;

/** Sums that exceed the memory limit go to the temporary folder. */
async function withSession<Result>(
  request: VerbRequest,
  act: (session: DuckDbSession) => Promise<Result>,
): Promise<Result> {
  const { resolved, surroundings } = request;
  const engine = verbEngine('universe', request, MOST_MEMORY);
  let session: DuckDbSession | undefined;
  try {
    session = await engine.session();
    await session.run("SET TimeZone = 'UTC'");
    await session.run('SET enable_external_file_cache = false');
    return await act(session);
  } catch (error) {
    if (error instanceof CryptodlError || !isFileError(error)) throw error;
    if (isTooLarge(error))
      throw usage(
        `the sums of ${resolved.options.by} are too large: universe adds numbers up to 10^30`,
        'leave the symbol with the wrong numbers out, for example --symbols "*,!BTCUSDT"',
      );
    throw new CryptodlError('disk', `a file of the lake cannot be read: ${firstLine(error)}`, {
      cause: error,
      hint: `to find it: cryptodl verify --deep${lakeFlag(absolutePath(resolved.options.out, surroundings.home))}`,
    });
  } finally {
    engine.interrupt();
    session?.close();
    await engine.end();
  }
}
