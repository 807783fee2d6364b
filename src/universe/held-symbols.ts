/** The klines of a lake by symbol: their files, and the days on which the symbol was listed. Only manifests are read. */
import type { Catalogue, SeriesFilesPart } from '../catalogue/catalogue.js';
import type { LakeFile } from '../catalogue/lake-tables.js';
import { DAY_MS, dayOf } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { intervalMs } from '../source/venue.js';

/** The days of the first and the last row of a listing. */
interface Listing {
  readonly first: number;
  readonly last: number;
}

export interface HeldSymbol {
  readonly symbol: string;
  /** Of several intervals, shorter ones only where longer ones are missing. */
  readonly files: readonly SeriesFilesPart[];
  /** In order, at least one. */
  readonly listings: readonly Listing[];
}

/** A symbol without rows on so many days on which others have rows was listed again: its name may stand for another asset. */
export const RELISTED_DAYS = 30;

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
  const longestFirst = [...selected].sort((a, b) => lengthOf(b) - lengthOf(a));
  for await (const { series, files, fault, damage } of catalogue.series(longestFirst)) {
    if (damage !== undefined) throw damage;
    if (fault !== undefined) throw new CryptodlError('disk', `${seriesName(series)}: ${fault}`);
    bySymbol.set(series.symbol, [...(bySymbol.get(series.symbol) ?? []), { series, files }]);
  }
  const spans = new Map([...bySymbol].map(([symbol, parts]) => [symbol, spansOf(parts, dayStart)] as const));
  const open = new Set([...spans.values()].flat().flatMap(({ days }) => days));
  return [...bySymbol].flatMap(([symbol, parts]) => {
    const listings = listingsOf(spans.get(symbol) ?? [], open);
    return listings.length === 0 ? [] : [{ symbol, files: neededFiles(parts), listings }];
  });
}

function lengthOf({ interval = '' }: Series): number {
  return intervalMs(interval);
}

interface FileSpan extends Listing {
  readonly days: readonly number[];
}

/** The days from the first to the last row of each file, in order. */
function spansOf(parts: readonly SeriesFilesPart[], dayStart: DayStart): FileSpan[] {
  const spans = parts
    .flatMap(({ files }) => files)
    .flatMap(({ first, last, missing }) => {
      if (first === undefined || last === undefined) return [];
      const span = { first: dayOf(Date.parse(first), dayStart), last: dayOf(Date.parse(last), dayStart) };
      const lacks = new Set(missing);
      const days = Array.from({ length: span.last - span.first + 1 }, (_, at) => span.first + at);
      return [{ ...span, days: days.filter((day) => !lacks.has(day)) }];
    });
  return spans.sort((a, b) => a.first - b.first);
}

/** `open`: the days of the market. */
function listingsOf(spans: readonly FileSpan[], open: ReadonlySet<number>): Listing[] {
  const listings: Listing[] = [];
  for (const { first, last } of spans) {
    const before = listings.at(-1);
    if (before === undefined || isNewListing(before.last, first, open)) listings.push({ first, last });
    else listings[listings.length - 1] = { first: before.first, last: Math.max(before.last, last) };
  }
  return listings;
}

function isNewListing(last: number, first: number, open: ReadonlySet<number>): boolean {
  let missed = 0;
  for (let day = last + 1; day < first; day += 1) if (open.has(day)) missed += 1;
  return missed >= RELISTED_DAYS;
}

/**
 * The files whose days no longer interval has completely. `longestFirst`: the series of a symbol. Only files with all bars of all of
 * their days count: the statement of the sums then takes no row of the files that are left out, so later days change nothing.
 */
function neededFiles(longestFirst: readonly SeriesFilesPart[]): SeriesFilesPart[] {
  const complete: LakeFile[] = [];
  return longestFirst.map(({ series, files }) => {
    const needed = files.filter(({ days }) => !isCovered(days, complete));
    const barsOfDay = DAY_MS / lengthOf(series);
    complete.push(
      ...files.filter(({ isWhole, rows, days }) => isWhole && rows === (days.to - days.from) * barsOfDay),
    );
    complete.sort((a, b) => a.days.from - b.days.from);
    return { series, files: needed };
  });
}

/** `files`: ordered by their first days. */
function isCovered({ from, to }: LakeFile['days'], files: readonly LakeFile[]): boolean {
  let reached = from;
  for (const { days } of files) if (days.from <= reached) reached = Math.max(reached, days.to);
  return reached >= to;
}
