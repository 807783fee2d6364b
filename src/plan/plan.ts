/** The whole plan: each selected object of each series with its action, and the totals. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { dayOf, monthOf, daysWithin, type DayStart } from '../model/calendar.js';
import type { Observer } from '../model/observer.js';
import { bytesToFetch, seriesName } from '../model/task.js';
import type { Cadence, PlanTotals, Series, PartitionPlan, Period, SourceObject } from '../model/task.js';
import { mapOrdered } from '../model/in-order.js';
import { isListingFault, type Listing } from '../exchange/listing.js';
import type { Exchange } from '../exchange/exchange.js';
import type { Rest } from '../exchange/rest-api.js';
import { findDataset } from '../exchange/exchange-spec.js';
import { requestsFor, routesOf } from '../exchange/routes.js';
import { datasetSettings, knownSeries, type PlanContext, type SelectedSeries } from './series-request.js';
import { proveEdges, type EdgeContext, type PlannedSeries } from './prove-edges.js';
import { PlanSpool } from './plan-spool.js';
import { listSeries, probeSeries, withNewerProbed } from './series-listing.js';
import type { SeriesListing, ListingRange, Probe } from './series-listing.js';
import { SymbolLife } from './symbol-life.js';
import { checkedFolder } from '../files/path-checks.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { seriesFolder } from '../lake/layout.js';
import type { Manifest } from '../lake/manifest.js';
import { isFromRest } from '../model/manifest-line.js';
import { isCheckDay } from './ranges-to-plan.js';
import { planSeries } from './plan-series.js';

export interface Plan {
  readonly spool: PlanSpool;
  readonly totals: PlanTotals;
  /** See `PlanContext.starts`. */
  readonly starts: ReadonlyMap<Series, number>;
  /** Notes the proven outer days of the series after the run. */
  readonly proveEdges: (note: EdgeContext['note']) => Promise<void>;
}

export interface PlanTools extends Pick<PlanContext, 'exchange' | 'manifests' | 'nowMs'> {
  readonly paths: { readonly root: string };
  readonly options: Pick<PlanContext, 'force' | 'revisions' | 'recheckDays'> & {
    readonly verify: 'sha256' | 'etag' | 'none';
    readonly staleChecksum: 'warn' | 'fail';
  };
  readonly listing: Listing;
  readonly rest: Pick<Rest, 'pages'>;
  readonly probe: Probe;
  readonly runFolder: string;
  readonly observer: Pick<Observer, 'warn'>;
}

interface Requested {
  readonly requests: readonly SelectedSeries[];
  /** False if it is already known that the listing is not available. */
  readonly hasListing: boolean;
  /** `firstDay`: of the range of this run. Older days come from the orders that it continues. */
  readonly order?: { readonly firstDay: number | undefined };
}

export const SERIES_AT_ONCE = 16;

/** Plans the series in order, several at a time. The caller must close the spool. */
export async function makePlan(tools: PlanTools, { requests, hasListing, order }: Requested): Promise<Plan> {
  const { exchange } = tools;
  const context = contextOf(tools, requests, hasListing);
  const spool = new PlanSpool(join(tools.runFolder, `plan-${randomUUID()}.jsonl`));
  const planned: PlannedSeries[] = [];
  const plan: Plan = {
    spool,
    totals: emptyTotals(),
    starts: context.starts,
    proveEdges: (note) => proveEdges({ ...context, note }, planned),
  };
  const planOf = async (request: SelectedSeries) => ({
    ...request,
    partitions: await planWithDays(context, request),
  });
  for await (const { series, settings, partitions } of mapOrdered(requests, SERIES_AT_ONCE, planOf)) {
    plan.totals.series += 1;
    // A pause may begin within an object that an earlier run fetched.
    const found = partitions
      .flatMap(({ tasks }) => tasks)
      .map(({ action }) => (action.kind === 'absent' ? action.reason : action.kind));
    const isChanged = found.includes('fetch') || found.includes('not-traded');
    if (hasListing && isPublished(exchange, series) && (isChanged || context.edges.has(series)))
      planned.push({ series, format: settings.format, isChanged });
    for (const partition of partitions) {
      await spool.add(partition);
      addTo(plan.totals, partition, { exchange, firstDay: order?.firstDay });
    }
  }
  return plan;
}

function contextOf(tools: PlanTools, requests: readonly SelectedSeries[], hasListing: boolean): PlanContext {
  const { exchange, manifests, options, paths } = tools;
  const { root } = paths;
  const today = dayOf(tools.nowMs, exchange);
  const { verify, staleChecksum } = options;
  return {
    ...tools,
    ...options,
    root,
    today,
    ignoredRefusals: new Set(verify === 'sha256' && staleChecksum === 'fail' ? [] : ['sidecar-stale']),
    life: new SymbolLife({
      ...tools,
      today,
      requests,
      knownSeries: (market) => knownSeries({ root, exchange }, market),
    }),
    listSeries: listOrProbe(tools, hasListing),
    datasetSettings: datasetSettings({ root, exchange, manifests }),
    edges: new Set(),
    starts: new Map(),
  };
}

/** Walks the listing. If it is not available, requests the sidecars that should exist by date instead. */
export function listOrProbe(
  { listing, probe, exchange, observer }: Pick<PlanTools, 'listing' | 'observer' | 'probe' | 'exchange'>,
  hasListing: boolean,
): PlanContext['listSeries'] {
  let hasWarned = false;
  return async (series: Series, cadence: Cadence, selected: ListingRange): Promise<SeriesListing> => {
    if (!hasListing) return probeSeries(probe, exchange, series, cadence, selected);
    try {
      const listed = await listSeries(listing, exchange, series, cadence, selected);
      return await withNewerProbed(probe, exchange, series, { cadence, listed, selected });
    } catch (error) {
      if (!isListingFault(error)) throw error;
      if (!hasWarned)
        observer.warn(
          `the listing of ${seriesName(series)} is not available (${error.message}) and has no copy: the sidecar of each selected period is requested instead, also for other series without a listing`,
        );
      hasWarned = true;
      return probeSeries(probe, exchange, series, cadence, selected);
    }
  };
}

const isPublished = (exchange: Exchange, { market, dataset }: Series): boolean =>
  (findDataset(exchange, market, dataset)?.cadences.length ?? 0) > 0;

/** Plans a series. Daily objects replace a short month if the archive lists its other days and at least one of its empty days. */
async function planWithDays(context: PlanContext, request: SelectedSeries): Promise<PartitionPlan[]> {
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
  { series, settings, ranges, exact, sinceDay, rewrites }: SelectedSeries,
  manifest: Manifest,
): readonly ShortMonth[] {
  const spec = findDataset(exchange, series.market, series.dataset);
  const isCompared = !force && rewrites === undefined && (revisions === 'check' || revisions === 'take');
  if (!isCompared || spec?.cadences.includes('daily') !== true) return [];
  return shortMonthsOf(manifest[settings.format], spec).filter(({ from, to }) => {
    const isInRange = ranges.some((range) => range.from < to && from < range.to);
    return isInRange || (exact !== true && to > (sinceDay ?? Infinity) && isCheckDay(from, today));
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

function addTo(
  totals: PlanTotals,
  partition: PartitionPlan,
  { exchange, firstDay = -Infinity }: { readonly exchange: Exchange; readonly firstDay: number | undefined },
): void {
  const { format } = partition.settings;
  if (!totals.formats.includes(format)) totals.formats.push(format);
  for (const { action } of partition.tasks) {
    totals[action.kind] += 1;
    if (action.kind === 'absent') totals.absentBy[action.reason] = (totals.absentBy[action.reason] ?? 0) + 1;
  }
  const fetched = partition.tasks.filter(({ action }) => action.kind === 'fetch');
  if (fetched.length > 0) totals.partitions += 1;
  if (fetched.length > 0 && partition.isWider === true) totals.wider += 1;
  let bytes = 0;
  for (const { object } of fetched) {
    if (object.period.to <= firstDay) totals.older += 1;
    bytes += bytesToFetch(object) ?? 0;
    if (object.rest === undefined) continue;
    totals.fetchRest += 1;
    addWeights(totals, exchange, partition.series, object);
  }
  totals.fetchBytes += bytes;
  const { market, dataset } = partition.series;
  const of = (totals.fetchBy[`${market} ${dataset}`] ??= { objects: 0, bytes: 0 });
  of.objects += fetched.length;
  of.bytes += bytes;
  totals.largestBytes = Math.max(totals.largestBytes, bytes);
}

/** Adds the weight of requests, once per span of periods that share pages of REST. */
function addWeights(
  { restWeights }: Pick<PlanTotals, 'restWeights'>,
  exchange: Exchange,
  series: Series,
  { rest, period }: SourceObject,
): void {
  if (rest?.from !== period.from) return;
  for (const routed of routesOf(exchange, series)) {
    const { bucket, weight } = routed.route;
    restWeights[bucket] = (restWeights[bucket] ?? 0) + requestsFor(routed, rest) * weight;
  }
}

const emptyTotals = (): PlanTotals => ({
  series: 0,
  partitions: 0,
  fetch: 0,
  skip: 0,
  absent: 0,
  wider: 0,
  older: 0,
  formats: [],
  fetchBytes: 0,
  largestBytes: 0,
  fetchRest: 0,
  restWeights: {},
  absentBy: {},
  fetchBy: {},
});
