/** The totals of a plan. */
import type { Exchange } from '../exchange/exchange.js';
import { routesOf, requestsFor } from '../exchange/routes.js';
import { bytesToFetch } from '../model/task.js';
import type { PlanTotals, PartitionPlan, Series, SourceObject } from '../model/task.js';

export function addTo(
  totals: PlanTotals,
  partition: PartitionPlan,
  { exchange, first = -Infinity }: { readonly exchange: Exchange; readonly first: number | undefined },
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
    if (object.period.to <= first) totals.older += 1;
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

export const emptyTotals = (): PlanTotals => ({
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
