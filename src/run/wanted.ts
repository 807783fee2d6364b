import type { SeriesRequest } from '../plan/plan-series.js';
import type { DatasetSpec } from '../venue/venue.js';
import type { Range } from '../plan/range.js';
import type { Market } from '../task.js';
import type { ChosenDataset } from './choose-datasets.js';
import type { Session } from './session.js';

/** What it takes to understand flags: no archive, no lake. */
export type Asking = Pick<Session, 'options' | 'venue' | 'nowMs'>;

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
  /** False when it is already known that the listing cannot be had. */
  readonly hasListing: boolean;
  /** `um klines 1m` */
  readonly what: string;
  readonly range: string;
  /** Said in place of it when there is nothing to do. */
  readonly idle?: string;
  /** Lines for the plan block. */
  readonly notes: readonly string[];
  /** Datasets that were asked for by name, and that have an end. */
  readonly ended: readonly { readonly market: Market; readonly spec: DatasetSpec }[];
  /** Path under which the lake's data of this run lies. */
  readonly dataPath: string;
  /** How to read the result. */
  readonly query: string | undefined;
}
