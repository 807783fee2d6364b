import type { FailureReport } from '../report/failure-report.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import type { DatasetSpec } from '../venue/venue.js';
import type { Market } from '../task.js';

/** What somebody asks for, made out but not yet planned. */
export interface Wanted {
  readonly verb: 'vision' | 'metrics' | 'retry';
  readonly requests: readonly SeriesRequest[];
  /** False when it is already known that the listing cannot be had. */
  readonly hasListing: boolean;
  /** `um klines 1m` */
  readonly what: string;
  readonly range: string;
  /** Lines for the plan block. */
  readonly notes: readonly string[];
  /** Datasets that were asked for by name, and that have an end. */
  readonly ended: readonly { readonly market: Market; readonly spec: DatasetSpec }[];
  /** Path under which the lake's data of this run lies. */
  readonly dataPath: string;
  /** How to read the result. */
  readonly query: string | undefined;
  readonly report: FailureReport;
}
