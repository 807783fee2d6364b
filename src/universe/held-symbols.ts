/** The klines of a lake by symbol: their files, and the days on which the symbol was listed. Only manifests are read. */
import type { Catalogue, SeriesFilesPart } from '../catalogue/catalogue.js';
import type { LakeFile } from '../catalogue/read-series.js';
import { dayOf } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';

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
