/** The types that all stages share. Days are integers since 1970-01-01; ranges are half-open. */
import type { AbsenceReason } from './absence-reasons.js';
import type { ErrorCode, ErrorFacts } from './errors.js';

/** A market of the exchange, for example `um`. */
export type Market = string;
export type Cadence = 'daily' | 'monthly';
export const FORMATS = ['parquet', 'csv', 'zip'] as const;
export type Format = (typeof FORMATS)[number];
export type PartitionPeriod = 'day' | 'month';

export interface Series {
  readonly market: Market;
  readonly dataset: string;
  /** Only for datasets that have an interval layer. */
  readonly interval?: string;
  readonly symbol: string;
}

/** A day or month of the exchange: the days `[from, to)`. */
export interface Period {
  readonly cadence: Cadence;
  readonly from: number;
  readonly to: number;
}

/** The settings of the files of a series. All files of one format agree in the settings that change files of this format. */
export interface Settings {
  readonly format: Format;
  readonly partition: PartitionPeriod;
  readonly cadence: 'auto' | Cadence;
  readonly numbers: 'double' | 'string';
  /** `utc`: Parquet columns with the time zone UTC. The others are forms of times in CSV. */
  readonly timestamps: 'us' | 'ms' | 'iso' | 'utc';
  readonly asPublished: boolean;
}

/** One object of the archive, with facts from the listing or from an earlier run, or the rows of one period from REST. */
export interface SourceObject {
  readonly key: string;
  readonly period: Period;
  /** Set when the rows come from REST. */
  readonly rest?: RestPeriod;
  /** Bytes of the zip, from the listing. */
  readonly bytes?: number;
  /** Bytes of the held revision of the zip, where the listing was not read. The archive may have another revision. */
  readonly heldBytes?: number;
  /** Without quotes. */
  readonly etag?: string;
  readonly lastModified?: string;
  /** From the listing. Empty if the listing has no sidecar; undefined if it was not read, because nothing depends on it. */
  readonly sidecarEtag?: string;
}

export interface RestPeriod {
  /** The days `[from, to)` that share pages of REST: the pages are requested once for all of these days. */
  readonly from: number;
  readonly to: number;
  /** The absence reason if REST has no rows of the period. Without `fills`, it is `hole` after the first row of these days. */
  readonly reasonIfEmpty: AbsenceReason;
  /** The archive has no object of this period, has an incomplete one, or does not answer. */
  readonly fills?: true;
  /** The period is not over: the next run requests it again. */
  readonly open?: true;
  /** The incomplete archive object that these rows replace, if they include all of its rows and more. */
  readonly insteadOf?: ShortObject;
  /** The held rows of the period. They stay if REST does not have all of them and more, or if the request fails. */
  readonly keepsHeld?: ShortObject;
  /** The archive has or may have the period, but the last request to the archive failed with this code. */
  readonly archiveFailed?: ErrorCode;
}

/** A held object with missing rows, whose times are known. */
export interface ShortObject extends Revision {
  readonly rows: number;
  /** ISO instants `[from, to)`, ascending. */
  readonly gaps: readonly (readonly [string, string])[];
}

type Action =
  | { readonly kind: 'fetch' }
  /**
   * `isWithdrawn`: the archive no longer has the object, and its held rows stay. `refused`: an earlier run fetched the listed
   * revision and rejected it, at this ISO time. `archiveFailed`: the request to the archive failed, and rows from REST are held.
   */
  | {
      readonly kind: 'skip';
      readonly isWithdrawn?: true;
      readonly refused?: { readonly code: ErrorCode; readonly at: string };
      readonly archiveFailed?: ErrorCode;
      readonly isRestEmpty?: true;
    }
  /** `sinceDay`: the first day that is absent for this reason, if the listing shows it. `isRestEmpty`: REST answered, and has no further rows. `open`: the period is not over. */
  | {
      readonly kind: 'absent';
      readonly reason: AbsenceReason;
      readonly sinceDay?: number;
      readonly isRestEmpty?: true;
      readonly open?: true;
    };

/** The bytes that a download of the object takes: listed or estimated, undefined if neither is known. */
export const bytesToFetch = (object: Pick<SourceObject, 'bytes' | 'heldBytes'>): number | undefined =>
  object.bytes ?? object.heldBytes;

/** The planned action for one object of one series. */
export interface Task {
  readonly series: Series;
  readonly object: SourceObject;
  readonly action: Action;
  /** The error of the previous round. */
  readonly failure?: ErrorFacts;
  /** The source to use when the archive does not answer: rows of REST, or the held rows. */
  readonly substitute?: SourceObject | 'held';
  /** The archive object that `object` replaces in this task. */
  readonly standsFor?: SourceObject;
}

/** All tasks that end in one output file (for zip: in one commit). */
export interface PartitionPlan {
  readonly series: Series;
  readonly settings: Settings;
  /** `2024-01` or `2024-01-15`. */
  readonly label: string;
  readonly tasks: readonly Task[];
  /** The reason to rebuild the file from all its objects; undefined: rows are added or replaced in the file, or it is new. */
  readonly rebuild?: 'damaged' | 'forced';
  /** The file exists, but the manifest lists no object of it, for example because a run was killed during a commit. */
  readonly isUnlisted?: true;
  /** --force: held files are replaced, even if their settings differ. */
  readonly force?: true;
  /** An earlier round of this run wrote objects of the plan: with --force, further rounds only add objects to the file. */
  readonly isWritten?: true;
  /** Each object gets its own day file. All day files replace one month file in one commit. */
  readonly split?: true;
  /** Days without rows in the month file that is split: they are not lost if no day object has them. */
  readonly emptyDays?: readonly number[];
  /** Has a whole month instead of the requested days or day files, because the archive lacks daily objects of them. */
  readonly isWider?: true;
}

export interface Revision {
  readonly etag?: string;
  readonly lastModified?: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Time of the commit, ISO. */
  readonly at: string;
}

export interface PlanTotals {
  series: number;
  partitions: number;
  fetch: number;
  skip: number;
  absent: number;
  /** Months that are fetched completely although some days or day files were requested. */
  wider: number;
  /** Objects to fetch that are older than the range of the run: its orders lack them. */
  older: number;
  readonly formats: Format[];
  /** Sum of the listed or held sizes; objects without a known size count as 0. */
  fetchBytes: number;
  /** Number of objects to fetch from REST; `fetch` includes them. */
  fetchRest: number;
  /** Known weight of the requests to REST, by quota bucket. */
  readonly restWeights: Record<string, number>;
  /** Bytes to fetch for the largest partition; the spool needs at least this space. */
  largestBytes: number;
  readonly absentBy: Partial<Record<AbsenceReason, number>>;
  /** Objects and bytes to fetch, by market and dataset: `um klines`. */
  readonly fetchBy: Record<string, { objects: number; bytes: number }>;
}

/** The name of a series without its symbol, for people: `um klines 1m`. */
export function layerName({
  market,
  dataset,
  interval,
}: Omit<Series, 'symbol' | 'interval'> & { readonly interval?: string | undefined }): string {
  return [market, dataset, interval].filter((part) => part !== undefined).join(' ');
}

/** `um klines 1m BTCUSDT` */
export const seriesName = (series: Series): string => `${layerName(series)} ${series.symbol}`;
