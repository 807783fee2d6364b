/** Chooses the files of the lake that a universe reads: of several intervals of a symbol, shorter ones only where longer ones are missing. */
import { DAY_MS } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { faultOfSeries } from '../query/file-digests.js';
import { readSeriesFiles } from '../query/lake-tables.js';
import type { LakeFile } from '../query/lake-tables.js';
import type { Source } from '../source/source.js';
import { intervalMs } from '../source/venue.js';

/** A range of days `[from, to)`. */
export type Days = LakeFile['days'];

/** A file with its symbol and interval. */
export interface UniverseFile extends LakeFile {
  readonly symbol: string;
}

/** The files of a series. */
interface SeriesFiles {
  readonly series: Series;
  readonly files: readonly LakeFile[];
}

/** The series of each symbol, the longest interval first. */
export type FilesBySymbol = ReadonlyMap<string, readonly SeriesFiles[]>;

/** Number of symbols whose manifests are read at the same time. */
const AT_ONCE = 16;

/**
 * All files of the series that a universe may read. Rejects with `disk` if a file is missing, because a rank without its rows would be wrong,
 * and for a damaged manifest.
 */
export async function findFiles(
  root: string,
  venue: Source,
  bySymbol: ReadonlyMap<string, readonly Series[]>,
): Promise<FilesBySymbol> {
  const found = new Map<string, readonly SeriesFiles[]>();
  const readSeries = async (series: Series): Promise<SeriesFiles> => {
    const read = await readSeriesFiles(root, venue, series);
    const fault = faultOfSeries(root, read);
    if (fault !== undefined) throw new CryptodlError('disk', `${seriesName(series)}: ${fault}`);
    return { series, files: read.files };
  };
  const symbols = [...bySymbol];
  for (let at = 0; at < symbols.length; at += AT_ONCE) {
    const some = symbols.slice(at, at + AT_ONCE).map(async ([symbol, series]) => {
      const longestFirst = [...series].sort((a, b) => lengthOf(b) - lengthOf(a));
      return [symbol, await Promise.all(longestFirst.map(readSeries))] as const;
    });
    for (const [symbol, read] of await Promise.all(some)) found.set(symbol, read);
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
function needed(longestFirst: readonly SeriesFiles[]): LakeFile[] {
  const chosen: LakeFile[] = [];
  const complete: LakeFile[] = [];
  for (const { files, series } of longestFirst) {
    chosen.push(...files.filter(({ days }) => !isCovered(days, complete)));
    const barsOfDay = DAY_MS / lengthOf(series);
    complete.push(
      ...files.filter(({ isWhole, rows, days }) => isWhole && rows === (days.to - days.from) * barsOfDay),
    );
    complete.sort((a, b) => a.days.from - b.days.from);
  }
  return chosen;
}

/** `files`: ordered by their first days. */
function isCovered({ from, to }: Days, files: readonly LakeFile[]): boolean {
  let reached = from;
  for (const { days } of files) if (days.from <= reached) reached = Math.max(reached, days.to);
  return reached >= to;
}

/** The files with days in the range, and the earliest file of each symbol, which has its first day. */
export function filesOfDays(files: readonly UniverseFile[], { from, to }: Days): UniverseFile[] {
  const earliest = new Map<string, number>();
  for (const { symbol, days } of files)
    earliest.set(symbol, Math.min(earliest.get(symbol) ?? Infinity, days.from));
  return files.filter(
    ({ symbol, days }) => days.from < to && (days.to > from || days.from === earliest.get(symbol)),
  );
}
