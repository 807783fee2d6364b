/** Chooses the source of the bars of a symbol among its series of klines, aggTrades and trades. */
import type { HeldObjects } from '../lake/held-objects.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { Series } from '../model/task.js';
import { intervalMs } from '../source/venue.js';
import type { BarRule } from './bar-rule.js';
import { barDays } from './day-rules.js';
import type { BarDay, Recipe } from './day-rules.js';
import { sourceName } from './source-days.js';
import type { SourceDays } from './source-days.js';

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

/** A source with the days of its bars. */
export interface Chosen {
  readonly recipe: Recipe;
  readonly days: readonly BarDay[];
}

/**
 * The source of the held bars, so that a further source does not change them. Else the klines with the most days; of equal ones, those
 * of the longest interval. Else aggTrades, then trades.
 */
export function chooseSource(
  rule: BarRule,
  isFilled: boolean,
  usable: readonly SourceDays[],
  held: HeldObjects,
): Chosen | undefined {
  const before = sourceOfBars(held.lines());
  const isOther = ({ series }: SourceDays): boolean => sourceName(series) !== before;
  const [source] = usable.toSorted((a, b) => Number(isOther(a)) - Number(isOther(b)) || byRank(a, b));
  if (source === undefined) return undefined;
  // A candle without trades is a row of klines, so klines have nothing to fill.
  const recipe = { rule, source, isFilled: isFilled && source.series.dataset !== 'klines' };
  return { recipe, days: barDays(recipe) };
}

/** The source that the last command used. It may differ from the source of other days of the series. */
function sourceOfBars(lines: readonly ObjectLine[]): string | undefined {
  let last: ObjectLine | undefined;
  for (const line of lines) if (last === undefined || line.at > last.at) last = line;
  return last?.source;
}

function byRank(a: SourceDays, b: SourceDays): number {
  const kind = DATASETS.indexOf(a.series.dataset) - DATASETS.indexOf(b.series.dataset);
  if (kind !== 0) return kind;
  return b.byDay.size - a.byDay.size || lengthRank(b) - lengthRank(a);
}

/** The interval in ms: longer klines have fewer rows for the same bars. */
function lengthRank({ series: { interval = '' } }: SourceDays): number {
  return intervalMs(interval) || 0;
}
