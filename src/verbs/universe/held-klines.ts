/** The klines of a lake by symbol: their files, and the days on which the symbol was listed. Only manifests are read. */
import type { Catalogue, SeriesFilesPart } from '../../lake/catalogue/catalogue.js';
import { dayOf, eachDay, type DayStart } from '../../model/calendar.js';
import { DAY_MS } from '../../model/units.js';
import { intervalMs } from '../../exchange/exchange-spec.js';
import { CryptodlError, usage } from '../../model/errors.js';
import { seriesName, type Market, type Series } from '../../model/task.js';
import type { HeldFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { selectGiven } from '../../plan/select/held-series.js';
import { pairOf } from '../../exchange/pairs.js';
import { lakeFlag } from '../../text/printable.js';
import type { LakeFile } from '../../lake/catalogue/lake-file.js';

export const DATASET = 'klines';

/** The error for a lake without files that universe reads. `root`: the lake; `out`: as the user named it. */
export function noKlines(market: Market, root: string, out: string): Error {
  return usage(
    `${out} has no ${market} ${DATASET} with an interval of at most 1d as Parquet or CSV`,
    `download them: cryptodl vision --market ${market} --dataset ${DATASET} --interval 1d --symbols all --from 2023-01 --format parquet${lakeFlag(root)}`,
  );
}

/** Whether a universe of the market reads this series. Bars above a day begin before a period and end after its start. */
export function isUsable(
  { market, dataset, interval = '' }: Series,
  of: { readonly market: Market },
): boolean {
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

/** The days of the first and the last row of a listing. */
interface Listing {
  readonly firstDay: number;
  lastDay: number;
}

export type HeldKlines = Awaited<ReturnType<typeof readHeldSymbols>>;

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
  const heldSymbols = [...bySymbol].map(([symbol, parts]) => {
    const files = parts.flatMap((part) => part.files);
    return { symbol, parts, days: inOrder(files.flatMap((file) => daysOf(file, dayStart))) };
  });
  const marketDays = inOrder(heldSymbols.flatMap(({ days }) => days));
  const placeOf = new Map(marketDays.map((day, index) => [day, index]));
  const symbols = heldSymbols.flatMap(({ symbol, parts, days }) =>
    days.length === 0 ? [] : [{ symbol, parts, listings: listingsOf(days, placeOf) }],
  );
  return { symbols, marketDays };
}

/** The days from the first to the last row of a file, without those that it lacks. */
function daysOf({ firstInstant: first, lastInstant: last, missing }: LakeFile, dayStart: DayStart): number[] {
  if (first === undefined || last === undefined) return [];
  const [from, to] = [dayOf(Date.parse(first), dayStart), dayOf(Date.parse(last), dayStart) + 1];
  return eachDay({ from, to }).filter((day) => !missing.includes(day));
}

const inOrder = (days: readonly number[]): number[] => [...new Set(days)].sort((a, b) => a - b);

/** `placeOf`: the place of each day among the days of the market. */
function listingsOf(days: readonly number[], placeOf: ReadonlyMap<number, number>): Listing[] {
  const listings: Listing[] = [];
  const place = (day: number): number => placeOf.get(day) ?? 0;
  for (const day of days) {
    const now = listings.at(-1);
    if (now !== undefined && place(day) - place(now.lastDay) <= RELISTED_DAYS) now.lastDay = day;
    else listings.push({ firstDay: day, lastDay: day });
  }
  return listings;
}
