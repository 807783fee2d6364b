/** What a lake holds, for all verbs that read rows: the files of each series, and the SQL of their rows. */
import { bringIn } from '../../files/backing.js';
import { CryptodlError } from '../../model/errors.js';
import { mapOrdered } from '../../model/in-order.js';
import type { Series } from '../../model/task.js';
import { findDataset, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { SeriesStates } from './day-states.js';
import { createDigestCheck, faultOfSeries } from './file-digests.js';
import { readSeriesFiles, type LeftOut } from './series-files.js';
import type { DayRange } from './spans.js';
import { uniqueRowsQuery, withinRange } from './views.js';
import { judgedSeries, haltsOf, type JudgeTerms, type DatasetTerms } from './judge-series.js';
import { filesOfRange, type LakeFile } from './lake-file.js';

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

interface Relation {
  /** A SELECT: `symbol`, `interval` if the dataset has intervals, and the columns of the dataset. */
  readonly sql: string;
  /** The files that it reads, in their order. Each has its committed content. */
  readonly files: readonly LakeFile[];
}

export interface Catalogue {
  /** Absolute. */
  readonly root: string;
  /** The given series, in their order, without those of which the lake has only absences. Manifests are read with some at a time, so that memory stays bounded. */
  series(selected: Iterable<Series>): AsyncGenerator<HeldSeries>;
  /** The day states of the given series in their order, in each range and each format. Each manifest is read once, and no data file. */
  states(selected: Iterable<Series>, terms: JudgeTerms): AsyncGenerator<SeriesStates>;
  /**
   * The rows of these files, all of one market and dataset; undefined if no file can have rows of the range. With a range, only its files are
   * read, and only rows with a time in it. Of several rows with one key, the first published one counts. Bytes come from the bucket, and
   * each file is compared with the digest of its commit, once for all relations of the catalogue. Rejects with `UnreadableFile` if a file
   * differs, with a system error for a CSV file that cannot be read, and when interrupted.
   */
  relation(parts: readonly SeriesFilesPart[], range?: Partial<DayRange>): Promise<Relation | undefined>;
}

const AT_ONCE = 32;

/** Reads nothing yet. `root`: the absolute path of the lake. */
export function openCatalogue(root: string, exchange: Exchange, signal: AbortSignal): Catalogue {
  const refuseDamaged = createDigestCheck(root, signal);
  return {
    root,
    series: async function* (selected) {
      for await (const held of mapOrdered(selected, AT_ONCE, (one) => heldSeriesOf(root, exchange, one)))
        yield* held;
    },
    states: async function* (selected, terms) {
      const ofDataset = new Map<string, DatasetTerms>();
      for (const series of selected) {
        const { market, dataset } = series;
        const shared = ofDataset.get(`${market}/${dataset}`) ?? {
          spec: findDataset(exchange, market, dataset),
          halts: haltsOf(exchange, series),
        };
        ofDataset.set(`${market}/${dataset}`, shared);
        yield* await judgedSeries(root, exchange, series, { ...terms, ...shared });
      }
    },
    relation: async (parts, range = {}) => {
      const [first] = parts;
      if (first === undefined) return undefined;
      const { market, dataset, interval } = first.series;
      const spec = findDataset(exchange, market, dataset);
      if (spec === undefined) throw new RangeError(`${market} has no dataset ${dataset}`);
      const files = parts.flatMap((part) => filesOfRange(part, spec, range));
      if (files.length === 0) return undefined;
      await bringIn(...files.map(({ path }) => path));
      await refuseDamaged(files);
      const table = { market, dataset, hasInterval: interval !== undefined, files, spec };
      return { sql: withinRange(await uniqueRowsQuery(table, spec), files, spec, range), files };
    },
  };
}

/** Empty for a series of which the lake has only absences. */
async function heldSeriesOf(root: string, exchange: Exchange, series: Series): Promise<HeldSeries[]> {
  const spec = findDataset(exchange, series.market, series.dataset);
  try {
    const read = await readSeriesFiles(root, exchange, series);
    if (read.isEmpty) return [];
    return [{ series, spec, ...read, fault: faultOfSeries(root, read), damage: undefined }];
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
    return [{ series, spec, files: [], unsound: [], overlapping: [], fault: error.message, damage: error }];
  }
}
