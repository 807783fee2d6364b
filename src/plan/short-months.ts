/** Plans a series, and replaces held months that lack the rows of whole days by daily objects that may have these rows. */
import { findDataset } from '../exchange/exchange-spec.js';
import { checkedFolder } from '../files/path-checks.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { seriesFolder } from '../lake/layout.js';
import type { Manifest } from '../lake/manifest.js';
import { monthOf, daysWithin, type DayStart } from '../model/calendar.js';
import { isFromRest } from '../model/manifest-line.js';
import type { PartitionPlan, Period } from '../model/task.js';
import { isCheckDay } from './lacking-days.js';
import { planSeries } from './plan-series.js';
import type { PlanContext, SeriesRequest } from './series-request.js';

/** Plans a series. Daily objects replace a short month if the archive lists its other days and at least one of its empty days. */
export async function planWithDays(context: PlanContext, request: SeriesRequest): Promise<PartitionPlan[]> {
  const { rest: _, ...own } = request;
  const folder = await checkedFolder(context.root, seriesFolder(context.exchange.name, request.series));
  const known = { folder, manifest: await context.manifests.of(folder) };
  const plans: PartitionPlan[] = [];
  const replaced: ShortMonth[] = [];
  for (const month of askedShortMonths(context, request, known.manifest)) {
    const ofDays = { ...own, cadences: ['daily'], ranges: [month], exact: true } as const;
    const { emptyDays } = month;
    const days = await planSeries(context, { ...ofDays, rewrites: 'when-days-have-more', emptyDays }, known);
    if (days.length > 0) replaced.push(month);
    plans.push(...days);
  }
  return [...plans, ...(await planSeries(context, { ...request, replaced }, known))];
}

/** The short months in the ranges of a request; if it is not exact, also those of its order, less and less often, without end. */
function askedShortMonths(
  { exchange, today, force, revisions }: PlanContext,
  { series, settings, ranges, exact, since, rewrites }: SeriesRequest,
  manifest: Manifest,
): readonly ShortMonth[] {
  const spec = findDataset(exchange, series.market, series.dataset);
  const isCompared = !force && rewrites === undefined && (revisions === 'check' || revisions === 'take');
  if (!isCompared || spec?.cadences.includes('daily') !== true) return [];
  return shortMonthsOf(manifest[settings.format], spec).filter(({ from, to }) => {
    const isInRange = ranges.some((range) => range.from < to && from < range.to);
    return isInRange || (exact !== true && to > (since ?? Infinity) && isCheckDay(from, today));
  });
}

/** The days `[from, to)` of a held month, and those of them without rows. */
interface ShortMonth extends Pick<Period, 'from' | 'to'> {
  readonly emptyDays: readonly number[];
}

/**
 * The held months of a series that lack the rows of some days. Only months that were written with `--cadence auto`, because the other
 * cadences do not mix months and days.
 */
const shortMonthsOf = (held: HeldObjects, dayStart: DayStart): ShortMonth[] =>
  held.spans().flatMap(({ from, to, facts }): ShortMonth[] => {
    if (facts.cadence !== 'monthly' || facts.settings.cadence !== 'auto' || isFromRest(facts)) return [];
    const gaps = held.ofMonth(monthOf(from))?.gaps;
    const empty = daysWithin({ cadence: 'monthly', from, to }, gaps, dayStart);
    return empty.length > 0 ? [{ from, to, emptyDays: empty }] : [];
  });
