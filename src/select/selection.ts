/** Series requests, and what it takes to choose them. */
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

/** What it takes to understand flags: no archive, no lake. */
export interface Asking {
  readonly options: Options;
  readonly venue: Source;
  /** Wall clock, or what --now says. */
  readonly nowMs: number;
}

/** For a choice among the series that a lake holds. */
export interface LakeSelection extends Asking {
  readonly paths: Pick<LakePaths, 'root'>;
  readonly observer: Pick<Observer, 'warn'>;
}

/** For a choice among the symbols that the archive lists, or that REST knows. */
export interface SymbolSelection extends LakeSelection {
  readonly listing: Listing;
  readonly rest: Pick<Rest, 'symbols'>;
}

export interface Asked {
  readonly range: Range;
  readonly datasets: readonly ChosenDataset[];
}

/** What a run's options are flags of. */
export type RunVerb = 'vision' | 'metrics' | 'repair';

/** What somebody asks for, made out but not yet planned. */
export interface Wanted {
  readonly verb: RunVerb | 'retry';
  readonly requests: readonly SeriesRequest[];
  /** False when it is already known that the listing is not available. */
  readonly hasListing: boolean;
  /** `um klines 1m` */
  readonly what: string;
  readonly range: string;
  /** Said in place of it when there is nothing to do. */
  readonly idle?: string | undefined;
  /** Lines for the plan block. */
  readonly notes: readonly string[];
  /** Datasets that were asked for by name, and that have an end. */
  readonly ended: readonly { readonly market: Market; readonly spec: DatasetSpec }[];
  /** Path under which the lake's data of this run lies. */
  readonly dataPath: string;
  /** How to read the result. */
  readonly query: string | undefined;
}

/** One symbol of a dataset over the range, as the flags say it is written. */
export function seriesRequest(
  context: Asking,
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

/** A dataset with one cadence has no choice to remember. */
export function settingsOf(context: Asking, spec: DatasetSpec, interval: string | undefined): Settings {
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
