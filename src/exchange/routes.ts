/** The REST routes of a dataset with their cost, and the addresses of the hosts. */
import { banKey, type Bans } from '../http/throttle/bans.js';
import type { ExchangeHosts } from '../http/throttle/exchange-hosts.js';
import { DAY_MS, parseDay, startOfDay } from '../model/calendar.js';
import type { Market, Period, Series } from '../model/task.js';
import type { RouteSpec } from './facts.js';
import type { Span } from './rest-rows.js';
import type { Exchange } from './exchange.js';
import type { Addresses } from './rest-api.js';
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
  return reaches.length === 0 ? undefined : Math.min(...reaches) * 3_600_000;
}

/** The span of the row times of these days, in epoch ms. Some datasets label a row with the end of its interval. */
export function restSpan(spec: DatasetSpec, { from, to }: Pick<Period, 'from' | 'to'>): Span {
  return { fromMs: startOf(spec, from), toMs: startOf(spec, to) };
}

function startOf(spec: DatasetSpec, day: number): number {
  const { rest } = spec;
  if (rest === undefined || !('joins' in rest)) return startOfDay(day, spec);
  const shift = rest.endLabelsBefore === undefined ? undefined : parseDay(rest.endLabelsBefore);
  return startOfDay(day, spec) + (shift !== undefined && day < shift ? intervalMs(rest.interval) : 0);
}

const SETTLEMENT_MS = 8 * 3_600_000;

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

// The addresses of a run.

export function exchangeHosts(
  addresses: Addresses,
  { hosts, buckets, answers, rest }: Pick<Exchange, 'hosts' | 'buckets' | 'answers' | 'rest'>,
): ExchangeHosts {
  const { archiveUrl, listingUrl, fallbackUrl } = addresses;
  return {
    ...answers,
    buckets,
    archiveUrl,
    listingUrl,
    fallbackUrl,
    restUrls: rest.urls(addresses),
    knownUrls: Object.values(hosts),
    bannedWith: (url) => rest.bannedWith(addresses, url),
  };
}

/** Rejects while a host of the run is banned. If archive and REST replace each other, rejects only while both are banned. */
export async function refuseBanned(
  bans: Pick<Bans, 'refuse'>,
  exchange: Exchange,
  options: Addresses & { readonly fill?: unknown; readonly join?: unknown },
  { isRest, markets }: { readonly isRest: boolean; readonly markets: readonly Market[] },
): Promise<void> {
  const rest = markets.flatMap((market) => exchange.rest.places(options, market));
  const archive = [banKey('archive', options.archiveUrl), banKey('listing', options.listingUrl)];
  const [first, other] = isRest ? [rest, archive] : [archive, rest];
  const isReplaced = options.fill !== undefined || options.join !== undefined;
  try {
    await bans.refuse(first);
  } catch (error) {
    if (!isReplaced) throw error;
    const isFree = await bans.refuse(other).then(
      () => true,
      () => false,
    );
    if (!isFree) throw error;
  }
}
