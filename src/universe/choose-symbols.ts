/** Chooses the market of a universe, and its series and symbols from the klines of the lake. */
import { DAY_MS, dayOf } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import { CryptodlError, usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Market, Series } from '../model/task.js';
import { listText } from '../model/units.js';
import type { Options } from '../options/flags.js';
import type { SymbolPatterns } from '../options/symbols.js';
import type { VerbRequest } from '../options/verb-request.js';
import { filterHeldSeries } from '../select/held-series.js';
import { oneMarket } from '../select/select-datasets.js';
import { pairOf } from '../source/pairs.js';
import { findDataset, intervalMs } from '../source/venue.js';
import type { DatasetSpec, Venue } from '../source/venue.js';
import { lakeFlag } from '../text/printable.js';
import type { Catalogue, SeriesFilesPart } from '../catalogue/catalogue.js';
import type { LakeFile } from '../catalogue/read-series.js';

export const DATASET = 'klines';

/** The klines of one market. */
export interface UniverseMarket {
  readonly market: Market;
  readonly spec: DatasetSpec;
}

/** Throws usage errors for several markets, for a market without klines, and for a column that is not comparable. */
export function universeMarket(options: Options, venue: Venue): UniverseMarket {
  const { by } = options;
  const market = oneMarket(venue, options, 'universe');
  const spec = findDataset(venue, market, DATASET);
  if (spec === undefined) throw usage(`--market ${market} has no ${DATASET}`, 'choose another market');
  const unitOf = (name: string): string | undefined =>
    spec.columns.find((column) => column.name === name)?.unit;
  // The archive's quote_volume of coin-margined futures is in the base coin, and the size of a contract differs by symbol.
  if (unitOf('quote_volume') !== 'quote asset' && by !== 'count')
    throw usage(
      `--by ${by} is in ${unitOf(by) ?? 'another unit'} for ${market}, so it does not compare symbols`,
      '--by count ranks by the number of trades',
    );
  return { market, spec };
}

/** The error for a lake without files that universe reads. `root`: the lake; `out`: as the user named it. */
export function noKlines(market: Market, root: string, out: string): Error {
  return usage(
    `${out} has no ${market} ${DATASET} with an interval of at most 1d as Parquet or CSV`,
    `add --fetch, or download them: cryptodl vision --market ${market} --dataset ${DATASET} --interval 1d --symbols all --from 2023-01 --format parquet${lakeFlag(root)}`,
  );
}

/** Whether a universe of the market reads this series. Bars above a day begin before a period and end after its start. */
export function isUsable({ market, dataset, interval = '' }: Series, of: UniverseMarket): boolean {
  return market === of.market && dataset === DATASET && DAY_MS % intervalMs(interval) === 0;
}

/** The symbols that --symbols, --quote and --contract select. Throws usage errors for names that the lake does not have, and if none is left. */
export function selectedSymbols(
  usable: readonly Series[],
  patterns: SymbolPatterns | undefined,
  { resolved, source: venue, observer }: VerbRequest,
): ReadonlySet<string> {
  const { contract } = resolved.options;
  const chosen = filterHeldSeries(usable, resolved, patterns, observer.warn.bind(observer)).filter(
    ({ market, symbol }) =>
      contract === 'all' || (pairOf(venue, market, symbol)?.expiry !== undefined) === (contract === 'dated'),
  );
  if (chosen.length === 0)
    throw usage(`--contract ${contract} leaves none of the selected symbols`, '--contract all');
  return new Set(chosen.map(({ symbol }) => symbol));
}

/** Text about sums that are in different units for different symbols; empty without any. */
export function unitWarning(
  symbols: ReadonlySet<string>,
  { market }: UniverseMarket,
  { by, venue }: { readonly by: string; readonly venue: Venue },
): string[] {
  const quotes = new Set([...symbols].flatMap((symbol) => pairOf(venue, market, symbol)?.quote ?? []));
  if (by !== 'quote_volume' || quotes.size < 2) return [];
  return [
    `quote_volume is in the quote asset of each symbol, and the symbols have ${listText([...quotes].sort())}; --quote USDT selects symbols with one unit`,
  ];
}

// The klines of a lake by symbol: their files, and the days on which the symbol was listed. Only manifests are read.

/** The days of the first and the last row of a listing. */
interface Listing {
  readonly first: number;
  readonly last: number;
}

export interface HeldSymbol {
  readonly symbol: string;
  readonly parts: readonly SeriesFilesPart[];
  /** In order, at least one. */
  readonly listings: readonly Listing[];
}

/** A symbol without rows on so many days on which others have rows was listed again: its name may stand for another asset. */
const RELISTED_DAYS = 30;

/**
 * The symbols with rows. Rejects with `disk` if a file is missing, because a rank without its rows would be wrong, and for a damaged
 * manifest.
 */
export async function readHeldSymbols(
  catalogue: Catalogue,
  selected: readonly Series[],
  dayStart: DayStart,
): Promise<HeldSymbol[]> {
  const bySymbol = new Map<string, SeriesFilesPart[]>();
  for await (const { series, files, fault, damage } of catalogue.series(selected)) {
    if (damage !== undefined) throw damage;
    if (fault !== undefined) throw new CryptodlError('disk', `${seriesName(series)}: ${fault}`);
    bySymbol.set(series.symbol, [...(bySymbol.get(series.symbol) ?? []), { series, files }]);
  }
  const days = new Map([...bySymbol].map(([symbol, parts]) => [symbol, daysOf(parts, dayStart)] as const));
  const open = inOrder([...days.values()].flat());
  const placeOf = new Map(open.map((day, at) => [day, at]));
  return [...bySymbol].flatMap(([symbol, parts]) => {
    const listings = listingsOf(days.get(symbol) ?? [], placeOf);
    return listings.length === 0 ? [] : [{ symbol, parts, listings }];
  });
}

/** The days from the first to the last row of each file, without those that it lacks. */
function daysOf(parts: readonly SeriesFilesPart[], dayStart: DayStart): number[] {
  const ofFile = ({ first, last, missing }: LakeFile): number[] => {
    if (first === undefined || last === undefined) return [];
    const [from, to] = [dayOf(Date.parse(first), dayStart), dayOf(Date.parse(last), dayStart)];
    return Array.from({ length: to - from + 1 }, (_, at) => from + at).filter(
      (day) => !missing.includes(day),
    );
  };
  return inOrder(parts.flatMap(({ files }) => files.flatMap(ofFile)));
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
    if (now === undefined || place(day) - place(now.last) > RELISTED_DAYS)
      listings.push({ first: day, last: day });
    else listings[listings.length - 1] = { first: now.first, last: day };
  }
  return listings;
}
