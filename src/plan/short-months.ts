/** Held months that lack the rows of whole days, which their daily objects may have. */
import { daysWithin, parsePeriod } from '../model/calendar.js';
import { isFromRest } from '../lake/manifest.js';
import type { HeldObjects } from '../lake/manifest.js';
import type { PartitionPlan } from '../model/task.js';
import type { DayRange } from './choose-objects.js';
import { planSeries } from './plan-series.js';
import type { PlanContext, SeriesRequest, ShortMonth } from './plan-series.js';

/** A series whose daily objects replace its short months if the archive has them. */
export async function planWithDays(context: PlanContext, request: SeriesRequest): Promise<PartitionPlan[]> {
  const { shortMonths = [], rest: _, ...own } = request;
  const plans: PartitionPlan[] = [];
  let { ranges } = request;
  for (const { from, to, emptyDays: empty } of shortMonths) {
    const days = await planSeries(context, {
      ...own,
      cadences: ['daily'],
      ranges: [{ from, to }],
      rewrites: 'when-days-have-more',
      emptyDays: empty,
    });
    if (days.length > 0) ranges = without(ranges, { from, to });
    plans.push(...days);
  }
  return ranges.length === 0 ? plans : [...plans, ...(await planSeries(context, { ...request, ranges }))];
}

function without(
  ranges: readonly DayRange[],
  { from, to }: Pick<ShortMonth, 'from' | 'to'>,
): readonly DayRange[] {
  return ranges.flatMap((range) => {
    const before = { from: range.from, to: Math.min(range.to, from) };
    const behind = { from: Math.max(range.from ?? to, to), to: range.to };
    return [before, behind].filter((part) => (part.from ?? -Infinity) < part.to);
  });
}

/** Held months of a series that lack days; empty with `--cadence`. */
export function shortMonthsOf(held: HeldObjects): ShortMonth[] {
  return held.lines().flatMap((line): ShortMonth[] => {
    const period = parsePeriod(line.cadence, line.period);
    if (period?.cadence !== 'monthly' || line.settings.cadence !== 'auto' || isFromRest(line)) return [];
    const { from, to } = period;
    const empty = daysWithin(period, line.gaps);
    return empty.length > 0 ? [{ from, to, emptyDays: empty }] : [];
  });
}
