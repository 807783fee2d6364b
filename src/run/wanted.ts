import type { SeriesRequest } from '../plan/plan-series.js';

/** What the command line asks for. */
export interface Wanted {
  readonly requests: readonly SeriesRequest[];
  /** False when it is already known that the listing cannot be had. */
  readonly hasListing: boolean;
  /** `um klines 1m` */
  readonly what: string;
  readonly rangeText: string;
  /** Lines for the plan block. */
  readonly notes: readonly string[];
  readonly dataPath: string;
  /** How to read the result. */
  readonly query: string | undefined;
}
