/** Chooses the files of the lake that a universe reads: of several intervals of a symbol, shorter ones only where longer ones are missing. */
import { bringIn } from '../lake/backing.js';
import { DAY_MS } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { Series } from '../model/task.js';
import { readSeriesFiles } from '../query/lake-tables.js';
import type { LakeFile, LeftOut } from '../query/lake-tables.js';
import type { Source } from '../source/source.js';
import { intervalMs } from '../source/venue.js';

/** A range of days `[from, to)`. */
export type Days = LakeFile['days'];

/** A file with its symbol and interval. */
export interface UniverseFile extends LakeFile {
  readonly symbol: string;
}

export interface FoundFiles {
  readonly files: readonly UniverseFile[];
  readonly leftOut: LeftOut;
  /** Series with a damaged manifest; none of their files are read. */
  readonly damaged: readonly { readonly series: Series; readonly error: CryptodlError }[];
  /** Symbols with files that cannot be read. */
  readonly unread: ReadonlySet<string>;
}

/** Number of symbols whose manifests are read at the same time. */
const AT_ONCE = 16;

/** All files of the series that a universe may read, without those that longer intervals make superfluous. */
export async function findFiles(
  root: string,
  venue: Source,
  bySymbol: ReadonlyMap<string, readonly Series[]>,
): Promise<FoundFiles> {
  const files: UniverseFile[] = [];
  const leftOut: LeftOut = { unsound: [], overlapping: [] };
  const damaged: { series: Series; error: CryptodlError }[] = [];
  const unread = new Set<string>();
  const readSeries = async (series: Series): Promise<OfInterval> => {
    const interval = series.interval ?? '';
    try {
      const read = await readSeriesFiles(root, venue, series);
      leftOut.unsound.push(...read.unsound);
      leftOut.overlapping.push(...read.overlapping);
      if (read.unsound.length + read.overlapping.length > 0) unread.add(series.symbol);
      return { interval, files: read.files };
    } catch (error) {
      if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
      damaged.push({ series, error });
      unread.add(series.symbol);
      return { interval, files: [] };
    }
  };
  const symbols = [...bySymbol];
  for (let at = 0; at < symbols.length; at += AT_ONCE) {
    const some = symbols.slice(at, at + AT_ONCE).map(async ([symbol, series]) => {
      const longestFirst = [...series].sort((a, b) => lengthOf(b) - lengthOf(a));
      const ofIntervals = await Promise.all(longestFirst.map(readSeries));
      return needed(ofIntervals).map((file) => ({ ...file, symbol }));
    });
    files.push(...(await Promise.all(some)).flat());
  }
  return { files, leftOut, damaged, unread };
}

function lengthOf({ interval = '' }: Series): number {
  return intervalMs(interval);
}

interface OfInterval {
  readonly interval: string;
  readonly files: readonly LakeFile[];
}

/**
 * The files whose days no longer interval has completely. `ofIntervals`: the longest interval first. Only files with all bars of all of
 * their days count: the statement of the sums then takes no row of the files that are left out, so later days change nothing.
 */
function needed(ofIntervals: readonly OfInterval[]): LakeFile[] {
  const chosen: LakeFile[] = [];
  const complete: LakeFile[] = [];
  for (const { files, interval } of ofIntervals) {
    chosen.push(...files.filter(({ days }) => !isCovered(days, complete)));
    const barsOfDay = DAY_MS / intervalMs(interval);
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

/** Fetches the bytes of files of a lake in a bucket. */
export async function bringInFiles(files: readonly UniverseFile[]): Promise<void> {
  await bringIn(...files.map(({ path }) => path));
}
