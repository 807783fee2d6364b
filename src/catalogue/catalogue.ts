/** What a lake holds, for all verbs that read rows: the files of each series, and the SQL of their rows. */
import { instantExpression, legalTimeRange } from '../convert/columns.js';
import { timestampLiteral } from '../convert/sql.js';
import { bringIn } from '../lake/backing.js';
import { startOfDay } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { Series } from '../model/task.js';
import { findDataset } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import type { Source } from '../source/source.js';
import { faultOfSeries, FileDigests } from './file-digests.js';
import { readSeriesFiles } from './lake-tables.js';
import type { LakeFile, LeftOut } from './lake-tables.js';
import { hasZonedTimes, uniqueRowsQuery } from './views.js';

/** Days `[from, to)` of the exchange. */
export interface DayRange {
  readonly from: number;
  readonly to: number;
}

/** A series that the lake holds. */
export interface HeldSeries extends LeftOut {
  readonly series: Series;
  /** Undefined for a dataset that this version does not know. */
  readonly spec: DatasetSpec | undefined;
  /** The sound files with their settings and digests, each day once, ordered by days. */
  readonly files: readonly LakeFile[];
  /** Why the series as a whole cannot be read, with the next step: a damaged manifest, a missing or damaged file, a day in two formats. */
  readonly fault: string | undefined;
  /** The error of a damaged manifest. The series then has no files. */
  readonly damage: CryptodlError | undefined;
}

/** Files of a series whose rows are read. `files` may be a part of the held ones. */
export type SeriesFilesPart = Pick<HeldSeries, 'series' | 'files'>;

/** Rows of a lake. */
interface Relation {
  /** A SELECT: `symbol`, `interval` if the dataset has intervals, and the columns of the dataset. */
  readonly sql: string;
  /** The files that it reads, in their order. Each has its committed content. */
  readonly files: readonly LakeFile[];
}

export interface Catalogue {
  /** Absolute. */
  readonly root: string;
  /** The given series, in their order. Manifests are read with some at a time, so that memory stays bounded. */
  series(selected: Iterable<Series>): AsyncGenerator<HeldSeries>;
  /**
   * The rows of these files, all of one market and dataset; undefined if no file can have rows of the range. With a range, only its files are
   * read, and only rows with a time in it. Of several rows with one key, the first published one counts. Bytes come from the bucket, and
   * each file is compared with the digest of its commit, once for all relations of the catalogue. Rejects with `UnreadableFile` if a file
   * differs, with a system error for a CSV file that cannot be read, and when interrupted.
   */
  relation(parts: readonly SeriesFilesPart[], range?: Partial<DayRange>): Promise<Relation | undefined>;
}

/** Number of manifests that are read at the same time. */
const AT_ONCE = 32;

/** Reads nothing yet. `root`: the absolute path of the lake. */
export function openCatalogue(root: string, venue: Source, signal: AbortSignal): Catalogue {
  const digests = new FileDigests(root, signal);
  return {
    root,
    series: async function* (selected) {
      const all = [...selected];
      for (let at = 0; at < all.length; at += AT_ONCE)
        yield* await Promise.all(all.slice(at, at + AT_ONCE).map((one) => heldSeriesOf(root, venue, one)));
    },
    relation: async (parts, range = {}) => {
      const [first] = parts;
      const { market, dataset, interval } = first?.series ?? {};
      const spec =
        market === undefined || dataset === undefined ? undefined : findDataset(venue, market, dataset);
      if (market === undefined || dataset === undefined) return undefined;
      if (spec === undefined) throw new RangeError(`${market} has no dataset ${dataset}`);
      const files = parts.flatMap((part) => filesOfRange(part, spec, range));
      if (files.length === 0) return undefined;
      await bringIn(files.map(({ path }) => path));
      await digests.refuseDamaged(files);
      const rows = await uniqueRowsQuery(
        { market, dataset, hasInterval: interval !== undefined, files },
        spec,
      );
      return { sql: withinRange(rows, files, spec, range), files };
    },
  };
}

async function heldSeriesOf(root: string, venue: Source, series: Series): Promise<HeldSeries> {
  const spec = findDataset(venue, series.market, series.dataset);
  try {
    const read = await readSeriesFiles(root, venue, series);
    return { series, spec, ...read, fault: faultOfSeries(root, read), damage: undefined };
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
    return { series, spec, files: [], unsound: [], overlapping: [], fault: error.message, damage: error };
  }
}

/** The files that may have rows of the range. A row can lie outside of the period of its object: seconds, or the length of a bar above a day. */
export function filesOfRange(
  { series: { interval }, files }: SeriesFilesPart,
  spec: DatasetSpec,
  { from, to }: Partial<DayRange>,
): LakeFile[] {
  return files.filter(({ days }) => {
    const legal = legalTimeRange(spec, interval, days);
    const isBefore = from !== undefined && legal.last < startOfDay(from, spec);
    return !isBefore && (to === undefined || legal.first < startOfDay(to, spec));
  });
}

/** DuckDB skips row groups where a column is compared with a literal of its own type. */
function withinRange(
  rows: string,
  files: readonly LakeFile[],
  spec: DatasetSpec,
  { from, to }: Partial<DayRange>,
): string {
  const time = instantExpression(spec);
  const isZoned =
    hasZonedTimes(files) && spec.columns.some(({ type }) => type === 'time' || type === 'datetime');
  const literal = (day: number): string => timestampLiteral(startOfDay(day, spec), isZoned);
  const conditions = [
    ...(from === undefined ? [] : [`${time} >= ${literal(from)}`]),
    ...(to === undefined ? [] : [`${time} < ${literal(to)}`]),
  ];
  return conditions.length === 0 ? rows : `SELECT * FROM (${rows}) WHERE ${conditions.join(' AND ')}`;
}
