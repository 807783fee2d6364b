/** The selection of a run, and the contexts in which it is made. */
import type { LakePaths } from '../lake/layout.js';
import type { Observer } from '../model/observer.js';
import type { Market, Settings } from '../model/task.js';
import type { Options } from '../options/flags.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import { cadencesOf } from '../source/keys.js';
import type { Listing } from '../source/listing.js';
import type { Rest, Source } from '../source/source.js';
import type { DatasetSpec } from '../source/venue.js';
import { defaultPartition } from '../source/venue.js';
import type { Range } from './date-range.js';
import type { ChosenDataset } from './select-datasets.js';

/** For checks of flags, without archive and lake. */
export interface SelectionContext {
  readonly options: Options;
  readonly venue: Source;
  /** The time of --now, or of the clock. */
  readonly nowMs: number;
}

/** For a selection among the series of a lake. */
export interface LakeContext extends SelectionContext {
  readonly paths: Pick<LakePaths, 'root'>;
  readonly observer: Pick<Observer, 'warn'>;
}

/** For a selection among the symbols of the archive or of REST. */
export interface SymbolContext extends LakeContext {
  readonly listing: Listing;
  readonly rest: Pick<Rest, 'symbols'>;
}

export interface ParsedOptions {
  readonly range: Range;
  readonly datasets: readonly ChosenDataset[];
}

/** The verbs whose options a run can have. */
export type RunVerb = 'vision' | 'metrics' | 'repair';

/** The selected series of a run, before planning, and their description. */
export interface RunSelection {
  readonly verb: RunVerb | 'retry';
  readonly requests: readonly SeriesRequest[];
  /** False when it is already known that the listing is not available. */
  readonly hasListing: boolean;
  /** `um klines 1m` */
  readonly what: string;
  readonly range: string;
  /** Printed instead of the plan if there is nothing to do. */
  readonly idle?: string | undefined;
  /** Lines for the plan block. */
  readonly notes: readonly string[];
  /** Selected datasets that have ended. */
  readonly ended: readonly { readonly market: Market; readonly spec: DatasetSpec }[];
  /** The path in the lake that contains the data of this run. */
  readonly dataPath: string;
  /** An example query for the result. */
  readonly query: string | undefined;
}

/** The request for one symbol of a dataset in the range, with the settings of the flags. */
export function seriesRequest(
  context: SelectionContext,
  { market, spec, interval, cadences }: ChosenDataset,
  symbol: string,
  range: Range,
): SeriesRequest {
  const layer = interval === undefined ? {} : { interval };
  return {
    series: { market, dataset: spec.name, ...layer, symbol },
    settings: settingsOf(context, spec, interval),
    cadences,
    ranges: [{ from: range.from, to: range.to }],
  };
}

/** A dataset with a single cadence is recorded with that cadence. */
export function settingsOf(
  context: SelectionContext,
  spec: DatasetSpec,
  interval: string | undefined,
): Settings {
  const { options } = context;
  const exist = cadencesOf(spec, interval);
  return {
    format: options.format,
    partition: options.partition === 'auto' ? defaultPartition(spec, interval) : options.partition,
    cadence: exist.length === 1 ? (exist[0] ?? 'auto') : options.cadence,
    numbers: options.numbers,
    timestamps: options.timestamps,
    asPublished: options.asPublished,
  };
}
