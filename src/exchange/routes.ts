/** The REST routes of a dataset, with their reach and cost. */
import { parseDay, startOfDay } from '../model/calendar.js';
import { HOUR_MS, DAY_MS } from '../model/units.js';
import type { Market, Period, Series } from '../model/task.js';
import type { RouteSpec } from './facts.js';
import type { TimeSpan } from './rest-rows.js';
import type { Exchange } from './exchange.js';
import { findDataset, intervalMs, type DatasetSpec, type ExchangeSpec } from './exchange-spec.js';

export interface RoutedSeries {
  readonly route: RouteSpec;
  readonly series: Series;
}

/** Several routes for a joined dataset; none for a dataset without REST. */
export function routesOf(exchange: ExchangeSpec, series: Series): RoutedSeries[] {
  const rest = findDataset(exchange, series.market, series.dataset)?.rest;
  if (rest === undefined) return [];
  if (!('joins' in rest)) return [{ route: rest, series }];
  return rest.joins.flatMap((dataset) => routesOf(exchange, { ...series, dataset, interval: rest.interval }));
}

/** Age of the oldest rows that all routes of a dataset have, in milliseconds; undefined if unlimited. */
export function reachMs(exchange: ExchangeSpec, series: Series): number | undefined {
  const reaches = routesOf(exchange, series).flatMap(({ route }) => route.reachHours ?? []);
  return reaches.length === 0 ? undefined : Math.min(...reaches) * HOUR_MS;
}

/** The span of the row times of these days, in epoch ms. Some datasets label a row with the end of its interval. */
export function restSpan(spec: DatasetSpec, { from, to }: Pick<Period, 'from' | 'to'>): TimeSpan {
  return { fromMs: startOf(spec, from), toMs: startOf(spec, to) };
}

function startOf(spec: DatasetSpec, day: number): number {
  const { rest } = spec;
  if (rest === undefined || !('joins' in rest)) return startOfDay(day, spec);
  const shift = rest.endLabelsBefore === undefined ? undefined : parseDay(rest.endLabelsBefore);
  return startOfDay(day, spec) + (shift !== undefined && day < shift ? intervalMs(rest.interval) : 0);
}

const SETTLEMENT_MS = 8 * HOUR_MS;

/** Estimated number of requests for these days. Rows without a fixed interval count as three per day. */
export function requestsFor(
  { route, series }: RoutedSeries,
  { from, to }: Pick<Period, 'from' | 'to'>,
): number {
  const stepMs = series.interval === undefined ? SETTLEMENT_MS : intervalMs(series.interval);
  const rows = ((to - from) * DAY_MS) / stepMs;
  // The other pagers usually need one more page to find the end.
  return Math.ceil(rows / route.limit) + (route.pager === 'end' ? 0 : 1);
}

/** False if the route of the dataset has only perpetual contracts, and the symbol is no such contract. */
export function takesSymbol(
  { rest: api }: Pick<Exchange, 'rest'>,
  { rest }: DatasetSpec,
  market: Market,
  symbol: string,
): boolean {
  return rest === undefined || 'joins' in rest || !rest.perpetualOnly || api.isPerpetual(market, symbol);
}
