/** Finds the series that wait for the archive: they are still published, but not yet for their newest selected period. */
import { dayPeriod, monthOf, monthPeriod } from '../model/calendar.js';
import type { Period, Series } from '../model/task.js';
import { findDataset, rowSeconds } from '../source/venue.js';
import type { Venue } from '../source/venue.js';
import { mapOrdered } from '../queue/in-order.js';
import type { PlanContext, SeriesRequest } from './plan-series.js';
import { absenceReason } from './series-listing.js';

/** One series, and the newest selected period that can be published by now. */
export interface Awaited {
  readonly series: Series;
  readonly period: Period;
}

export interface PublicationContext {
  readonly venue: Venue;
  readonly today: number;
  readonly listSeries: PlanContext['listSeries'];
}

const SERIES_AT_ONCE = 16;

/** Only series of the archive wait: REST publishes nothing, and bars longer than a day have no object per day. */
export function awaitedOf(venue: Venue, today: number, requests: readonly SeriesRequest[]): Awaited[] {
  return requests.flatMap(({ series, cadences, ranges, rest }) => {
    const last = ranges.at(-1);
    if (rest?.mode === 'only' || last === undefined || isOpenOnSomeDays(venue, series)) return [];
    const day = Math.min(last.to, today) - 1;
    const period = cadences.includes('daily') ? dayPeriod(day) : lastWholeMonth(day, today);
    const isWanted = period.to > (last.from ?? 0) && cadences.length > 0;
    return isWanted ? [{ series, period }] : [];
  });
}

/** The month of the day, or the previous month while that month is not over. */
function lastWholeMonth(day: number, today: number): Period {
  const period = monthPeriod(monthOf(day));
  return period.to <= today ? period : monthPeriod(monthOf(day) - 1);
}

function isOpenOnSomeDays(venue: Venue, { market, dataset, interval }: Series): boolean {
  const spec = findDataset(venue, market, dataset);
  return interval !== undefined && spec !== undefined && rowSeconds(spec, interval) === undefined;
}

/**
 * Series that are not published yet but will be. A series that ended before the others of its dataset does not count:
 * otherwise, each delisted symbol would cost the whole wait for two weeks.
 */
export async function unpublished(
  context: PublicationContext,
  awaited: readonly Awaited[],
): Promise<Awaited[]> {
  const looks: Look[] = [];
  for await (const look of mapOrdered(awaited, SERIES_AT_ONCE, (one) => lookAt(context, one)))
    looks.push(look);
  const front = new Map<string, number>();
  for (const { awaited: one, before } of looks)
    front.set(groupOf(one), Math.max(front.get(groupOf(one)) ?? before, before));
  return looks
    .filter(({ awaited: one, isMissing, before }) => isMissing && before === front.get(groupOf(one)))
    .map(({ awaited: one }) => one);
}

interface Look {
  readonly awaited: Awaited;
  /** Not published yet, according to the series itself. */
  readonly isMissing: boolean;
  /** First day of the last published period before the expected one. */
  readonly before: number;
}

function groupOf({ series: { market, dataset, interval }, period }: Awaited): string {
  return [market, dataset, interval ?? '', period.from].join(' ');
}

async function lookAt({ venue, today, listSeries }: PublicationContext, awaited: Awaited): Promise<Look> {
  const { series, period } = awaited;
  // The previous period shows whether the series is still published, even if only sidecars can be requested.
  const before = period.cadence === 'daily' ? period.from - 1 : monthPeriod(monthOf(period.from) - 1).from;
  const listing = await listSeries(series, period.cadence, { from: before, to: period.to, today });
  const span = findDataset(venue, series.market, series.dataset)?.spans[period.cadence];
  const earlier = [...listing.objects.keys()].filter((from) => from < period.from);
  return {
    awaited,
    isMissing:
      !listing.objects.has(period.from) &&
      absenceReason(listing, period, { today, span }) === 'not-published-yet',
    before: Math.max(Number.NEGATIVE_INFINITY, ...earlier),
  };
}
