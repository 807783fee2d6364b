/** The series to wait for: the archive still publishes them, but does not have their newest selected period yet. */
import { grouped } from '../../model/by-name.js';
import { dayPeriod, monthOf, monthPeriod } from '../../model/calendar.js';
import type { Period, Series } from '../../model/task.js';
import type { PlanContext, SelectedSeries } from '../../plan/series-request.js';
import { absenceReason, LONGEST_DELAY_DAYS } from '../../plan/series-listing.js';
import { mapOrdered } from '../../model/in-order.js';
import { findDataset, hasLongBars } from '../../exchange/exchange-spec.js';

/** One series, and the newest selected period that can be published by now. */
export interface Expected {
  readonly series: Series;
  readonly period: Period;
}

type PublicationContext = Pick<PlanContext, 'exchange' | 'today' | 'listSeries'>;

const SERIES_AT_ONCE = 16;

/** Leaves out series from REST, because REST publishes nothing, and bars longer than a day, because they have no object per day. */
export function awaitedOf(
  { exchange, today }: PublicationContext,
  requests: readonly SelectedSeries[],
): Expected[] {
  return requests.flatMap(({ series, cadences, ranges, rest }) => {
    const last = ranges.at(-1);
    const spec = findDataset(exchange, series.market, series.dataset);
    if (rest?.mode === 'only' || last === undefined || hasLongBars(spec, series.interval)) return [];
    const day = Math.min(last.to, today) - 1;
    const period = cadences.includes('daily') ? dayPeriod(day) : lastWholeMonth(day, today);
    const isWanted = period.to > last.from && cadences.length > 0;
    return isWanted ? [{ series, period }] : [];
  });
}

/** The month of the day, or the previous month while that month is not over. */
function lastWholeMonth(day: number, today: number): Period {
  const period = monthPeriod(monthOf(day));
  return period.to <= today ? period : monthPeriod(monthOf(day) - 1);
}

/**
 * Series whose period is not published yet but will be. A series that ended before the others of its dataset does not count:
 * otherwise, each delisted symbol would cost the whole wait for two weeks.
 */
export async function unpublished(
  context: PublicationContext,
  awaited: readonly Expected[],
): Promise<Expected[]> {
  const looks: Awaited<ReturnType<typeof lookAt>>[] = [];
  for await (const look of mapOrdered(awaited, SERIES_AT_ONCE, (one) => lookAt(context, one)))
    looks.push(look);
  return [...grouped(looks, groupOf).values()].flatMap((group) => {
    const front = Math.max(...group.map(({ before }) => before));
    return group.filter(({ isMissing, before }) => isMissing && before === front);
  });
}

function groupOf({ series: { market, dataset, interval }, period }: Expected): string {
  return [market, dataset, interval ?? '', period.from].join(' ');
}

async function lookAt({ exchange, today, listSeries }: PublicationContext, { series, period }: Expected) {
  // The previous period shows whether the series is still published, even if only sidecars can be requested.
  const before = period.cadence === 'daily' ? period.from - 1 : monthPeriod(monthOf(period.from) - 1).from;
  const listing = await listSeries(series, period.cadence, { from: before, to: period.to, today });
  const span = findDataset(exchange, series.market, series.dataset)?.spans[period.cadence];
  const earlier = [...listing.objects.keys()].filter((from) => from < period.from);
  return {
    series,
    period,
    /** Whether the period is not published yet, judged by the listing of this series alone. */
    isMissing:
      !listing.objects.has(period.from) &&
      absenceReason(listing, period, span) === 'not-published-yet' &&
      (listing.last?.to ?? 0) >= today - LONGEST_DELAY_DAYS[period.cadence],
    /** First day of the last published period before the expected one; -Infinity if the listing has none. */
    before: Math.max(Number.NEGATIVE_INFINITY, ...earlier),
  };
}
