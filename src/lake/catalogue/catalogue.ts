/** What a lake holds, for all verbs that read it: the files of each series, the SQL of their rows, and the states of their days. */
import { bringIn } from '../../files/backing.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import { mapOrdered } from '../../model/in-order.js';
import { seriesName, type Series, type Format } from '../../model/task.js';
import { findDataset, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { Exchange } from '../../exchange/exchange.js';
import { statesOf } from './day-states.js';
import type { SeriesStates, OrderedFormats, ReportedFailure, StateTerms } from './day-states.js';
import { createDigestCheck, faultOfSeries } from './file-digests.js';
import { union, type DayRange, type Spans } from './spans.js';
import { uniqueRowsQuery, withinRange } from './views.js';
import { filesOfRange, readSeriesFiles, type LakeFile, type LeftOut } from './lake-file.js';
import { dayOf } from '../../model/calendar.js';
import type { OrderedDays } from './ordered-series.js';
import { readSeries } from './read-series.js';

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

interface JudgeTerms {
  /** The ranges of days to judge a series in. Without `from` or `to`, a range begins or ends with the own days of the series. */
  readonly rangesOf: (series: Series) => readonly Partial<OrderedDays>[];
  /** See `StateTerms.ordered`. */
  readonly orderedOf?: (series: Series) => OrderedFormats | undefined;
  /** Undefined: all. Series that hold nothing and record absences have none of them. */
  readonly formats?: readonly Format[] | undefined;
  readonly nowMs: number;
  /** Of the last failure report, by the name of the series. */
  readonly failures?: ReadonlyMap<string, readonly ReportedFailure[]> | undefined;
  /** Called for each manifest line or manifest that cannot be read; the others are still read. */
  readonly onRefused: (error: CryptodlError) => void;
}

type DatasetTerms = Pick<StateTerms, 'spec' | 'halts'>;

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

/** Reads the manifest of a series, and computes the states of its days. Empty for a manifest that cannot be read. */
async function judgedSeries(
  root: string,
  exchange: Exchange,
  series: Series,
  terms: JudgeTerms & DatasetTerms,
): Promise<SeriesStates[]> {
  const { rangesOf, orderedOf, formats, nowMs, failures, onRefused, spec, halts } = terms;
  const own = {
    spec,
    halts,
    today: dayOf(nowMs, exchange),
    failures: failures?.get(seriesName(series)) ?? [],
    ordered: orderedOf?.(series),
  };
  const isWanted = ({ format }: SeriesStates): boolean =>
    formats === undefined || format === undefined || formats.includes(format);
  try {
    const read = await readSeries(root, exchange, series);
    for (const error of read.refused) onRefused(error);
    return rangesOf(series).flatMap((range) => statesOf(series, read, { ...own, range }).filter(isWanted));
  } catch (error) {
    onRefused(toCryptodlError(error));
    return [];
  }
}

/** The listed halts of the trading that the dataset records. */
export function haltsOf(exchange: Exchange, { market, dataset }: Pick<Series, 'market' | 'dataset'>): Spans {
  const seconds = (iso: string): number => (Date.parse(iso) - exchange.dayStartMs) / 1000;
  return union(
    exchange
      .halts()
      .filter((halt) => halt.market === market && halt.datasets.includes(dataset))
      .flatMap(({ from, to }) => [seconds(from), seconds(to)]),
  );
}
