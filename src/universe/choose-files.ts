/** Chooses the files of the lake that a universe reads: of several intervals of a symbol, shorter ones only where longer ones are missing. */
import { DAY_MS } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { Catalogue, DayRange, SeriesFilesPart } from '../catalogue/catalogue.js';
import type { LakeFile } from '../catalogue/lake-tables.js';
import { intervalMs } from '../source/venue.js';

/** A file with its symbol and series. */
export interface UniverseFile extends LakeFile {
  readonly symbol: string;
  readonly series: Series;
}

/** The series of each symbol, the longest interval first. */
export type FilesBySymbol = ReadonlyMap<string, readonly SeriesFilesPart[]>;

/**
 * All files of the series that a universe may read. Rejects with `disk` if a file is missing, because a rank without its rows would be wrong,
 * and for a damaged manifest.
 */
export async function findFiles(
  catalogue: Catalogue,
  bySymbol: ReadonlyMap<string, readonly Series[]>,
): Promise<FilesBySymbol> {
  const found = new Map<string, SeriesFilesPart[]>([...bySymbol.keys()].map((symbol) => [symbol, []]));
  const longestFirst = [...bySymbol.values()].flat().sort((a, b) => lengthOf(b) - lengthOf(a));
  for await (const { series, files, fault, damage } of catalogue.series(longestFirst)) {
    if (damage !== undefined) throw damage;
    if (fault !== undefined) throw new CryptodlError('disk', `${seriesName(series)}: ${fault}`);
    found.get(series.symbol)?.push({ series, files });
  }
  return found;
}

/** The files without those that longer intervals make superfluous. */
export function chosenFiles(bySymbol: FilesBySymbol): UniverseFile[] {
  return [...bySymbol].flatMap(([symbol, series]) => needed(series).map((file) => ({ ...file, symbol })));
}

function lengthOf({ interval = '' }: Series): number {
  return intervalMs(interval);
}

/**
 * The files whose days no longer interval has completely. `longestFirst`: the series of a symbol. Only files with all bars of all of
 * their days count: the statement of the sums then takes no row of the files that are left out, so later days change nothing.
 */
function needed(longestFirst: readonly SeriesFilesPart[]): Omit<UniverseFile, 'symbol'>[] {
  const chosen: Omit<UniverseFile, 'symbol'>[] = [];
  const complete: LakeFile[] = [];
  for (const { files, series } of longestFirst) {
    const own = files.filter(({ days }) => !isCovered(days, complete));
    chosen.push(...own.map((file) => ({ ...file, series })));
    const barsOfDay = DAY_MS / lengthOf(series);
    complete.push(
      ...files.filter(({ isWhole, rows, days }) => isWhole && rows === (days.to - days.from) * barsOfDay),
    );
    complete.sort((a, b) => a.days.from - b.days.from);
  }
  return chosen;
}

/** `files`: ordered by their first days. */
function isCovered({ from, to }: DayRange, files: readonly LakeFile[]): boolean {
  let reached = from;
  for (const { days } of files) if (days.from <= reached) reached = Math.max(reached, days.to);
  return reached >= to;
}

/** The files with days in the range, and the earliest file of each symbol, which has its first day. */
export function filesOfDays(files: readonly UniverseFile[], { from, to }: DayRange): UniverseFile[] {
  const earliest = new Map<string, number>();
  for (const { symbol, days } of files)
    earliest.set(symbol, Math.min(earliest.get(symbol) ?? Infinity, days.from));
  return files.filter(
    ({ symbol, days }) => days.from < to && (days.to > from || days.from === earliest.get(symbol)),
  );
}
