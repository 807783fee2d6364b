/** The series of klines, aggTrades or trades from which the bars of a symbol are made: which one it is, and the days that it holds. */
import type { HeldSeries } from '../catalogue/catalogue.js';
import type { LakeFile } from '../catalogue/lake-tables.js';
import { hasTextNumbers, hasZonedTimes } from '../catalogue/views.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { Series, Settings } from '../model/task.js';
import { intervalMs } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import type { BarRule } from './bar-rule.js';

const DATASETS = ['klines', 'aggTrades', 'trades'];

/** Whether bars can be made from series of this dataset. */
export function isSource({ dataset }: Pick<Series, 'dataset'>): boolean {
  return DATASETS.includes(dataset);
}

/** Whether this series can be the source of these bars. */
export function canMake(rule: BarRule, { market, dataset, interval }: Series): boolean {
  if (dataset === 'klines') {
    if (rule.kind !== 'time') return false;
    const lengthMs = intervalMs(interval ?? '');
    // Klines of a day divide a week, but klines of three days begin at multiples of their own.
    return lengthMs < rule.lengthMs && rule.lengthMs % lengthMs === 0 && rule.originMs % lengthMs === 0;
  }
  // Of cm, aggTrades lack the quantity in the base coin, and trades have no quantity in the quote asset.
  return market !== 'cm' || (dataset === 'trades' && rule.kind !== 'dollar');
}

/** The source as in messages and manifest lines: `klines 1m`. */
export function sourceName({ dataset, interval }: Pick<Series, 'dataset' | 'interval'>): string {
  return interval === undefined ? dataset : `${dataset} ${interval}`;
}

/** A series of the lake as a source of bars. */
export interface BarSource extends Pick<HeldSeries, 'series' | 'files' | 'fault'> {
  readonly spec: DatasetSpec;
  /** The held days. A day that was not over when it was fetched is not among them. */
  readonly days: ReadonlySet<number>;
  /** The first held day, and the day after the last one. */
  readonly from: number;
  readonly to: number;
  /** Whether all numbers are text with every digit. */
  readonly isText: boolean;
  /** Of files of bars from this source. */
  readonly settings: Settings;
}

/** Undefined for a series without days, unless it has a fault. */
export function sourceOf({ series, spec, files, fault }: HeldSeries): BarSource | undefined {
  const days = files.flatMap(heldDays);
  const isText = hasTextNumbers(files);
  if (spec === undefined || (days.length === 0 && fault === undefined)) return undefined;
  return {
    series,
    spec,
    files,
    fault,
    days: new Set(days),
    from: days[0] ?? 0,
    to: (days.at(-1) ?? -1) + 1,
    isText,
    settings: {
      format: 'parquet',
      partition: 'month',
      cadence: 'daily',
      numbers: isText ? 'string' : 'double',
      timestamps: hasZonedTimes(files) ? 'utc' : 'us',
      asPublished: false,
    },
  };
}

function heldDays({ days, missing, open }: LakeFile): number[] {
  return eachDay(days).filter((day) => !missing.includes(day) && !open.includes(day));
}

/** The days of a span. */
export function eachDay({ from, to }: { readonly from: number; readonly to: number }): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}

/** The days between the first and the last one that the source does not have. */
export function missingDays({ from, to, days }: BarSource): number[] {
  return eachDay({ from, to }).filter((day) => !days.has(day));
}

/**
 * The source with which the held bars were made last, so that a further source does not change them. Else the klines with the most days; of
 * equal ones, those of the longest interval, which have the fewest rows. Else aggTrades, then trades.
 */
export function chooseSource(usable: readonly BarSource[], held: HeldObjects): BarSource | undefined {
  const before = held
    .lines()
    .reduce<ObjectLine | undefined>((a, b) => (a === undefined || b.at > a.at ? b : a), undefined);
  const rank = ({ series, days }: BarSource): number[] => [
    Number(sourceName(series) !== before?.source),
    DATASETS.indexOf(series.dataset),
    -days.size,
    -(intervalMs(series.interval ?? '') || 0),
  ];
  return usable.toSorted((a, b) => inOrder(rank(a), rank(b)))[0];
}

/** Compares lists of numbers by their first difference. */
function inOrder(a: readonly number[], b: readonly number[]): number {
  return a.map((value, at) => value - (b[at] ?? 0)).find((difference) => difference !== 0) ?? 0;
}
