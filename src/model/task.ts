/** The nouns that every stage shares. Days are integers since 1970-01-01 UTC; ranges are half-open. */
import type { ErrorCode } from './errors.js';

export type Market = 'spot' | 'um' | 'cm' | 'option';
export type Cadence = 'daily' | 'monthly';
export const FORMATS = ['parquet', 'csv', 'zip'] as const;
export type Format = (typeof FORMATS)[number];
export type Grain = 'day' | 'month';

export interface Series {
  readonly market: Market;
  readonly dataset: string;
  /** Only for datasets that have an interval layer. */
  readonly interval?: string;
  readonly symbol: string;
}

/** A UTC day or month: the days `[from, to)`. */
export interface Period {
  readonly cadence: Cadence;
  readonly from: number;
  readonly to: number;
}

/** How a series is written. A series holds one choice per format. */
export interface Settings {
  readonly format: Format;
  readonly partition: Grain;
  readonly cadence: 'auto' | Cadence;
  readonly numbers: 'double' | 'string';
  readonly timestamps: 'us' | 'ms' | 'iso';
  readonly asPublished: boolean;
}

/** One object of the archive, as the listing (or an earlier run) knows it; or a period of REST's rows in its place. */
export interface ArchiveObject {
  readonly key: string;
  readonly period: Period;
  /** It is made of what REST answers. */
  readonly rest?: RestPeriod;
  /** Bytes of the zip. */
  readonly bytes?: number;
  /** Without quotes. */
  readonly etag?: string;
  readonly lastModified?: string;
  /** As listed, empty where none is; undefined: not looked at, because nothing depends on it. */
  readonly sidecarEtag?: string;
  /** Why nothing comes behind the last listed day of its series; absent: it is not the last, or more may come. */
  readonly endReason?: 'delisted' | 'dataset-ended';
}

export interface RestPeriod {
  /** Days `[from, to)` that are asked for one after the other: pages hold rows of several. */
  readonly from: number;
  readonly to: number;
  /** Why the period is absent when REST has nothing of it either. */
  readonly reasonIfEmpty: AbsenceReason;
  /** It stands in for what the archive has not got. */
  readonly fills?: true;
  /** It is not over yet: the next run asks for it again. */
  readonly open?: true;
  /** What it stands in for, if it has every row of that, and more. */
  readonly insteadOf?: ShortObject;
  /** When it has not, or cannot be had, what is held stays. */
  readonly keepsHeld?: true;
  /** The archive has the period, or may have it, and did not answer: how its last answer failed. */
  readonly archiveFailed?: ErrorCode;
}

/** An object of the archive that lacks rows of a regular grain. */
export interface ShortObject extends Revision {
  readonly rows: number;
  /** ISO instants `[from, to)`, ascending. */
  readonly gaps: readonly (readonly [string, string])[];
}

export type AbsenceReason =
  'not-listed-yet' | 'not-published-yet' | 'hole' | 'halt' | 'delisted' | 'dataset-ended' | 'before-history';

type Action =
  | { readonly kind: 'fetch' }
  /**
   * `isWithdrawn`: the archive has it no more, and what is held of it stays. `refused`: an earlier run has fetched the listed
   * revision and could not take it. `archiveFailed`: the archive did not answer, and REST's rows are held.
   */
  | {
      readonly kind: 'skip';
      readonly isWithdrawn?: true;
      readonly refused?: Refusal;
      readonly archiveFailed?: ErrorCode;
    }
  /** `since`: the first day that is absent for this reason, where the listing tells it. */
  | { readonly kind: 'absent'; readonly reason: AbsenceReason; readonly since?: number };

interface Refusal {
  readonly code: ErrorCode;
  /** ISO. */
  readonly at: string;
}

/** What is to be done about one object of one series. */
export interface Task {
  readonly series: Series;
  readonly object: ArchiveObject;
  readonly action: Action;
  /** Why it failed in the round before. */
  readonly failure?: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly attempts: number;
  };
  /** Where its rows come from when the archive does not answer: REST's rows of the period, or those that are held already. */
  readonly substitute?: ArchiveObject | 'held';
  /** What its object is the substitute of. */
  readonly standsFor?: ArchiveObject;
}

/** All tasks that end in one output file (for zip: in one commit). */
export interface PartitionPlan {
  readonly series: Series;
  readonly settings: Settings;
  /** `2024-01` or `2024-01-15`. */
  readonly label: string;
  readonly tasks: readonly Task[];
  /** Why the file is made from all its objects instead of added to; undefined: it is new or added to. */
  readonly rebuild?: 'damaged' | 'forced';
  /** --force: what the series holds is replaced, whatever its settings. */
  readonly force?: true;
  /** Every object goes into a day file of its own, all in one commit: they replace a month file together. */
  readonly split?: true;
  /** Days without a row in the month that makes way for its days: nothing is lost when nobody has them. */
  readonly emptyDays?: readonly number[];
  /** Holds more days than were asked for: its month has no daily objects. */
  readonly isWider?: true;
}

/** One state of an object upstream. */
export interface Revision {
  readonly etag?: string;
  readonly lastModified?: string;
  readonly bytes: number;
  readonly sha256: string;
  /** When it was committed, ISO. */
  readonly at: string;
}

/** What a plan comes to. */
export interface PlanTotals {
  series: number;
  partitions: number;
  fetch: number;
  skip: number;
  absent: number;
  /** Months that are taken whole for a part of them. */
  wider: number;
  /** From the listing; objects whose size it does not tell count nothing. */
  fetchBytes: number;
  /** Of those to fetch, what comes from REST. */
  fetchRest: number;
  /** Weight of the requests to REST by quota bucket, as far as it can be told. */
  readonly requests: Record<string, number>;
  /** Bytes to fetch for the largest partition: what the spool must hold at least. */
  largestBytes: number;
  readonly absentBy: Partial<Record<AbsenceReason, number>>;
  /** What is to fetch, by market and dataset: `um klines`. */
  readonly fetchBy: Record<string, { objects: number; bytes: number }>;
}

/** Readable name of a series: `um klines 1m BTCUSDT`. */
export function seriesName(series: Series): string {
  return [series.market, series.dataset, series.interval, series.symbol]
    .filter((part) => part !== undefined)
    .join(' ');
}
