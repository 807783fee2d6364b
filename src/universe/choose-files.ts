/** Chooses the files of the lake that a universe reads: of several intervals of a symbol, shorter ones only where longer ones are missing. */
import { DAY_MS } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { FileFault } from '../query/file-digests.js';
import { readSeriesFiles } from '../query/lake-tables.js';
import type { LakeFile } from '../query/lake-tables.js';
import type { Source } from '../source/source.js';
import { intervalMs } from '../source/venue.js';
import { shownPath } from '../text/printable.js';

/** A range of days `[from, to)`. */
export type Days = LakeFile['days'];

/** A file with its symbol and interval. */
export interface UniverseFile extends LakeFile {
  readonly symbol: string;
}

/** The readable files of a series. */
interface SeriesFiles {
  readonly series: Series;
  readonly files: readonly LakeFile[];
}

/** Data of a symbol that cannot be read, and why. */
interface Unread {
  readonly symbol: string;
  readonly text: string;
}

export interface FoundFiles {
  /** The series of each symbol, the longest interval first. */
  readonly bySymbol: Map<string, readonly SeriesFiles[]>;
  readonly unread: Unread[];
}

/** Number of symbols whose manifests are read at the same time. */
const AT_ONCE = 16;

/** All files of the series that a universe may read. */
export async function findFiles(
  root: string,
  venue: Source,
  bySymbol: ReadonlyMap<string, readonly Series[]>,
): Promise<FoundFiles> {
  const found = new Map<string, readonly SeriesFiles[]>();
  const unread: Unread[] = [];
  const readSeries = async (series: Series): Promise<SeriesFiles> => {
    const { symbol } = series;
    try {
      const { files, unsound, overlapping } = await readSeriesFiles(root, venue, series);
      for (const path of unsound) unread.push({ symbol, text: faultText(path, undefined) });
      for (const path of overlapping)
        unread.push({ symbol, text: `${shownPath(path)} has some of the days of Parquet files` });
      return { series, files };
    } catch (error) {
      if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
      unread.push({ symbol, text: `${seriesName(series)} (its manifest is damaged: ${error.message})` });
      return { series, files: [] };
    }
  };
  const symbols = [...bySymbol];
  for (let at = 0; at < symbols.length; at += AT_ONCE) {
    const some = symbols.slice(at, at + AT_ONCE).map(async ([symbol, series]) => {
      const longestFirst = [...series].sort((a, b) => lengthOf(b) - lengthOf(a));
      return [symbol, await Promise.all(longestFirst.map(readSeries))] as const;
    });
    for (const [symbol, read] of await Promise.all(some)) found.set(symbol, read);
  }
  return { bySymbol: found, unread };
}

function faultText(path: string, reason: string | undefined): string {
  return `${shownPath(path)} ${reason === undefined ? 'is missing or changed since the download' : `cannot be read (${reason})`}`;
}

/**
 * Removes files that turned out to be damaged. A damaged file makes no file of a shorter interval superfluous, so the files must be chosen
 * again.
 */
export function leaveOut({ bySymbol, unread }: FoundFiles, faults: readonly FileFault<UniverseFile>[]): void {
  const paths = new Set(faults.map(({ file }) => file.path));
  for (const { file, reason } of faults) {
    unread.push({ symbol: file.symbol, text: faultText(file.path, reason) });
    const series = bySymbol.get(file.symbol) ?? [];
    const isSound = ({ path }: LakeFile): boolean => !paths.has(path);
    bySymbol.set(
      file.symbol,
      series.map((one) => ({ ...one, files: one.files.filter(isSound) })),
    );
  }
}

/** The files without those that longer intervals make superfluous. */
export function chosenFiles({ bySymbol }: Pick<FoundFiles, 'bySymbol'>): UniverseFile[] {
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
