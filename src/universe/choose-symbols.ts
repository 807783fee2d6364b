/** Chooses the market of a universe, and its series and symbols from the klines of the lake. */
import { DAY_MS } from '../model/calendar.js';
import { usage } from '../model/errors.js';
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
