/** Chooses the market of a universe, and its series and symbols from the klines of the lake. */
import { listText } from '../model/units.js';
import { usage } from '../model/errors.js';
import type { Market, Series } from '../model/task.js';
import type { Resolved } from '../options/resolve.js';
import type { SymbolPatterns } from '../options/symbols.js';
import { selectSymbols } from '../select/symbol-patterns.js';
import { pairOf } from '../source/pairs.js';
import { findDataset, intervalMs, intervalsOf, marketNames } from '../source/venue.js';
import type { DatasetSpec, Venue } from '../source/venue.js';
import { DAY_MS } from '../model/calendar.js';
import { lakeFlag } from '../text/printable.js';

export const DATASET = 'klines';

/** The klines of one market. */
export interface UniverseMarket {
  readonly market: Market;
  readonly spec: DatasetSpec;
  /** Intervals that divide a day, the longest first. */
  readonly intervals: readonly string[];
}

/** Throws usage errors for several markets, for a market without klines, and for a column that is not comparable. */
export function universeMarket({ options, origins }: Resolved, venue: Venue): UniverseMarket {
  const [market = '', second] = options.market;
  if (second !== undefined)
    throw usage(
      `universe ranks the symbols of one market, and --market has ${options.market.join(', ')}`,
      `choose one, for example --market ${market}`,
    );
  const spec = findDataset(venue, market, DATASET);
  if (spec === undefined) {
    const others = marketNames(venue).filter((name) => findDataset(venue, name, DATASET) !== undefined);
    throw usage(`--market ${market} has no ${DATASET}`, `markets with ${DATASET}: ${others.join(', ')}`);
  }
  const unit = spec.columns.find(({ name }) => name === 'quote_volume')?.unit;
  // The archive's quote_volume of coin-margined futures is in the base coin, and the size of a contract differs by symbol.
  if (unit !== 'quote asset' && options.by !== 'count') {
    const what = origins.by === 'default' ? 'the default, --by quote_volume,' : `--by ${options.by}`;
    const of = spec.columns.find(({ name }) => name === options.by)?.unit ?? 'another unit';
    throw usage(
      `${what} is in ${of} for ${market}, so it does not compare symbols`,
      '--by count ranks by the number of trades',
    );
  }
  return { market, spec, intervals: intervalsWithinDay(spec) };
}

/** Intervals above a day have rows that begin before a period and end after its start. */
function intervalsWithinDay(spec: DatasetSpec): string[] {
  return (intervalsOf(spec) ?? [])
    .filter((interval) => DAY_MS % intervalMs(interval) === 0)
    .sort((a, b) => intervalMs(b) - intervalMs(a));
}

/** A lake: its absolute path, and as the user named it. */
interface LakeName {
  readonly root: string;
  readonly out: string;
}

/** The error for a lake without files that universe reads. */
export function noKlines(market: Market, { root, out }: LakeName): Error {
  return usage(
    `${out} has no ${market} ${DATASET} with an interval of at most 1d as Parquet or CSV`,
    `add --fetch, or download them: cryptodl vision --market ${market} --dataset ${DATASET} --interval 1d --symbols all --from 2023-01 --format parquet${lakeFlag(root)}`,
  );
}

/** Throws a usage error for a lake without klines of the market. `held`: all series of the lake. */
export function usableSeries(
  held: readonly Series[],
  { market, intervals }: UniverseMarket,
  lake: LakeName,
): Series[] {
  const usable = held.filter(
    (series) =>
      series.market === market && series.dataset === DATASET && intervals.includes(series.interval ?? ''),
  );
  if (usable.length === 0) throw noKlines(market, lake);
  return usable;
}

/** The symbols that --symbols, --quote and --contract select. Throws usage errors for names that the lake does not have, and if none is left. */
export function selectedSymbols(
  available: readonly string[],
  patterns: SymbolPatterns | undefined,
  { market }: UniverseMarket,
  {
    resolved,
    venue,
    warn,
  }: { readonly resolved: Resolved; readonly venue: Venue; readonly warn: (text: string) => void },
): string[] {
  const { options } = resolved;
  const { symbols, warnings } = selectSymbols(
    patterns ?? { names: [], globs: ['*'], exclusions: [] },
    options.quote ?? [],
    available,
    { what: `${market} ${DATASET}`, owner: options.out, skipUnknown: options.skipUnknown },
  );
  for (const warning of warnings) warn(warning);
  const { contract } = options;
  const isDated = (symbol: string): boolean => pairOf(venue, market, symbol)?.expiry !== undefined;
  const chosen = symbols.filter((symbol) => contract === 'all' || isDated(symbol) === (contract === 'dated'));
  if (chosen.length === 0)
    throw usage(
      `--contract ${contract} leaves none of the ${symbols.length} selected symbols of ${market} ${DATASET}`,
      '--contract all',
    );
  return chosen;
}

/** Texts about sums that are in different units for different symbols. */
export function unitWarnings(
  symbols: readonly string[],
  { market }: UniverseMarket,
  { options: { by }, venue }: { readonly options: Resolved['options']; readonly venue: Venue },
): string[] {
  if (by === 'volume')
    return [
      '--by volume is in the base asset of each symbol, so it does not compare symbols of different assets',
    ];
  if (by !== 'quote_volume') return [];
  const quotes = [...new Set(symbols.flatMap((symbol) => pairOf(venue, market, symbol)?.quote ?? []))].sort();
  if (quotes.length < 2) return [];
  const [first = ''] = quotes.includes('USDT') ? ['USDT'] : quotes;
  return [
    `quote_volume is in the quote asset of each symbol, and the symbols have ${listText(quotes)}; --quote ${first} selects symbols with one unit`,
  ];
}
