/** The whole plan: each selected object of each series with its action, and the totals. */
import { isFromRest } from '../lake/held-objects.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { daysWithin, monthOf } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import type { ArchiveObject, Cadence, PartitionPlan, PlanTotals, Series } from '../model/task.js';
import { bytesToFetch, seriesName } from '../model/task.js';
import { mapOrdered } from '../queue/in-order.js';
import { isListingFault } from '../source/listing.js';
import type { Listing } from '../source/listing.js';
import { requestsFor, routesOf } from '../source/routes.js';
import type { Source } from '../source/source.js';
import type { DayRange } from './choose-objects.js';
import { DatasetSettings } from './dataset-settings.js';
import type { PlanContext } from './plan-series.js';
import type { SeriesRequest, ShortMonth } from './series-request.js';
import { planSeries } from './plan-series.js';
import { PlanSpool } from './plan-spool.js';
import { LAG_DAYS, listSeries, probeNewest, probeSeries, withNewerProbed } from './series-listing.js';
import type { Probe, SeriesListing, ListingRange } from './series-listing.js';

export interface Plan {
  readonly spool: PlanSpool;
  readonly totals: PlanTotals;
}

export interface PlanOptions extends Pick<
  PlanContext,
  | 'venue'
  | 'root'
  | 'manifests'
  | 'today'
  | 'nowMs'
  | 'force'
  | 'revisions'
  | 'recheckDays'
  | 'ignoredRefusals'
> {
  /** Undefined if it is already known that the listing is not available. */
  readonly listing: Listing | undefined;
  readonly probe: Probe;
  readonly spoolPath: string;
  readonly warn: (message: string) => void;
}

const SERIES_AT_ONCE = 16;

/** Plans the series in order, several at a time. The caller must close the spool. */
export async function makePlan(options: PlanOptions, requests: Iterable<SeriesRequest>): Promise<Plan> {
  const newest = new Map<string, number>();
  const context: PlanContext = {
    ...options,
    listSeries: listOrProbe(options),
    datasetSettings: new DatasetSettings(options),
    onListed: (series, cadence, listing, to) => {
      if (cadence !== 'daily') return;
      const dataset = datasetOf(series);
      // A listing with more entries has an object after the range.
      const lastDay = listing.more ? to : (listing.last?.from ?? 0);
      newest.set(dataset, Math.max(newest.get(dataset) ?? 0, lastDay));
    },
  };
  let plan: Plan = { spool: new PlanSpool(options.spoolPath), totals: emptyTotals() };
  for await (const partitions of mapOrdered(requests, SERIES_AT_ONCE, (request) =>
    planWithDays(context, request),
  )) {
    plan.totals.series += 1;
    for (const partition of partitions) await addTo(plan, partition, options.venue);
  }
  const lagging = new Set(
    [...newest].filter(([, day]) => day < options.today - 2).map(([dataset]) => dataset),
  );
  if (lagging.size > 0 && plan.totals.absent > 0) plan = await withNewestProbed(options, plan, lagging);
  return plan;
}

function datasetOf(series: Series): string {
  return `${series.market} ${series.dataset}`;
}

/** Walks the listing. If it is not available, requests the sidecars that should exist by date instead. */
export function listOrProbe(
  options: Pick<PlanOptions, 'listing' | 'probe' | 'venue' | 'warn'>,
): PlanContext['listSeries'] {
  const { listing, venue, probe } = options;
  let hasWarned = false;
  return async (series: Series, cadence: Cadence, selected: ListingRange): Promise<SeriesListing> => {
    if (listing === undefined) return probeSeries(probe, venue, series, cadence, selected);
    try {
      const listed = await listSeries(listing, venue, series, cadence, selected);
      return await withNewerProbed(probe, venue, series, { cadence, listed, selected });
    } catch (error) {
      if (!isListingFault(error)) throw error;
      if (!hasWarned)
        options.warn(
          `the listing of ${seriesName(series)} is not available (${error.message}) and has no copy: the sidecar of each selected period is requested instead, also for other series without a listing`,
        );
      hasWarned = true;
      return probeSeries(probe, venue, series, cadence, selected);
    }
  };
}

async function withNewestProbed(
  options: PlanOptions,
  plan: Plan,
  lagging: ReadonlySet<string>,
): Promise<Plan> {
  const probed: Plan = { spool: new PlanSpool(`${options.spoolPath}.probed`), totals: emptyTotals() };
  probed.totals.series = plan.totals.series;
  const probe = (partition: PartitionPlan): Promise<PartitionPlan> =>
    lagging.has(datasetOf(partition.series))
      ? probeNewest(options.probe, partition, options.today)
      : Promise.resolve(partition);
  for await (const partition of mapOrdered(plan.spool.plans(), SERIES_AT_ONCE, probe))
    await addTo(probed, partition, options.venue);
  await plan.spool.close();
  const found = probed.totals.fetch - plan.totals.fetch;
  if (found > 0) {
    options.warn(
      `the listing lags behind the archive: ${found} objects of the last ${LAG_DAYS} days were found by probing their sidecars`,
    );
  }
  return probed;
}

async function addTo(plan: Plan, partition: PartitionPlan, venue: Source): Promise<void> {
  await plan.spool.add(partition);
  const { totals } = plan;
  const { format, partition: grain } = partition.settings;
  if (!totals.formats.includes(format)) totals.formats.push(format);
  if (partition.tasks.some((task) => task.action.kind === 'fetch')) {
    totals.partitions += 1;
    const isMonth = format !== 'zip' && partition.tasks[0]?.object.period.cadence === 'monthly';
    if (grain === 'day' && isMonth) totals.monthFiles += 1;
    if (partition.isWider === true) totals.wider += 1;
  }
  let bytes = 0;
  for (const { action, object } of partition.tasks) {
    totals[action.kind] += 1;
    if (action.kind === 'fetch') {
      bytes += bytesToFetch(object) ?? 0;
      if (object.rest === undefined) continue;
      totals.fetchRest += 1;
      addWeights(totals, venue, partition.series, object);
    } else if (action.kind === 'absent')
      totals.absentBy[action.reason] = (totals.absentBy[action.reason] ?? 0) + 1;
  }
  totals.fetchBytes += bytes;
  const fetched = partition.tasks.filter(({ action }) => action.kind === 'fetch').length;
  const of = (totals.fetchBy[datasetOf(partition.series)] ??= { objects: 0, bytes: 0 });
  of.objects += fetched;
  of.bytes += bytes;
  totals.largestBytes = Math.max(totals.largestBytes, bytes);
}

/** Adds the weight of requests, once per span of periods that share pages of REST. */
function addWeights(
  { restWeights }: Pick<PlanTotals, 'restWeights'>,
  venue: Source,
  series: Series,
  { rest, period }: ArchiveObject,
): void {
  if (rest?.from !== period.from) return;
  for (const routed of routesOf(venue, series)) {
    const { bucket, weight } = routed.route;
    restWeights[bucket] = (restWeights[bucket] ?? 0) + requestsFor(routed, rest) * weight;
  }
}

function emptyTotals(): PlanTotals {
  return {
    series: 0,
    partitions: 0,
    fetch: 0,
    skip: 0,
    absent: 0,
    wider: 0,
    monthFiles: 0,
    formats: [],
    fetchBytes: 0,
    largestBytes: 0,
    fetchRest: 0,
    restWeights: {},
    absentBy: {},
    fetchBy: {},
  };
}

// Held months that lack the rows of whole days. Their daily objects may have these rows.

/** Plans a series. Daily objects replace a short month if the archive lists its other days and at least one of its empty days. */
async function planWithDays(context: PlanContext, request: SeriesRequest): Promise<PartitionPlan[]> {
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
    const after = { from: Math.max(range.from ?? to, to), to: range.to };
    return [before, after].filter((part) => (part.from ?? -Infinity) < part.to);
  });
}

/**
 * The held months of a series that lack the rows of some days. Only months that were written with `--cadence auto`, because the other
 * cadences do not mix months and days.
 */
export function shortMonthsOf(held: HeldObjects, dayStart: DayStart): ShortMonth[] {
  return held.spans().flatMap(({ from, to, facts }): ShortMonth[] => {
    if (facts.cadence !== 'monthly' || facts.settings.cadence !== 'auto' || isFromRest(facts)) return [];
    const gaps = held.ofMonth(monthOf(from))?.gaps;
    const empty = daysWithin({ cadence: 'monthly', from, to }, gaps, dayStart);
    return empty.length > 0 ? [{ from, to, emptyDays: empty }] : [];
  });
}
