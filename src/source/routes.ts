/** Where a run asks an exchange: the REST routes of a dataset with their cost, and the addresses of the hosts. */
import { placeOf } from '../http/bans.js';
import type { Bans } from '../http/bans.js';
import type { ExchangeHosts } from '../http/exchange-hosts.js';
import { DAY_MS } from '../model/calendar.js';
import type { Market, Period, Series } from '../model/task.js';
import type { Verb } from '../options/flag-spec.js';
import type { Options } from '../options/flags.js';
import type { RouteSpec } from './facts.js';
import type { Source } from './source.js';
import { findDataset, intervalMs } from './venue.js';
import type { DatasetSpec, Venue } from './venue.js';

/** One route, and the series that it is asked for. */
export interface RoutedSeries {
  readonly route: RouteSpec;
  readonly series: Series;
}

/** Several where a dataset is joined from others; none where REST does not have it. */
export function routesOf(venue: Venue, series: Series): RoutedSeries[] {
  const rest = findDataset(venue, series.market, series.dataset)?.rest;
  if (rest === undefined) return [];
  if (!('joins' in rest)) return [{ route: rest, series }];
  return rest.joins.flatMap((dataset) => routesOf(venue, { ...series, dataset, interval: rest.interval }));
}

/** How far back all routes of a dataset answer, in milliseconds; undefined: to the first row. */
export function reachMs(venue: Venue, series: Series): number | undefined {
  const reaches = routesOf(venue, series).flatMap(({ route }) => route.reachHours ?? []);
  return reaches.length === 0 ? undefined : Math.min(...reaches) * 3_600_000;
}

const SETTLEMENT_MS = 8 * 3_600_000;

/** Requests that days cost, as far as that can be told before: rows without a fixed distance are counted as three a day. */
export function requestsFor(
  { route, series }: RoutedSeries,
  { from, to }: Pick<Period, 'from' | 'to'>,
): number {
  const stepMs = series.interval === undefined ? SETTLEMENT_MS : intervalMs(series.interval);
  const rows = ((to - from) * DAY_MS) / stepMs;
  // Whoever starts at a row learns from an empty page that there are no more.
  return Math.ceil(rows / route.limit) + (route.pager === 'end' ? 0 : 1);
}

/** Where REST knows only pairs, the perpetual contract stands for its pair, and no other one does. */
export function takesSymbol(
  { rest: api }: Pick<Source, 'rest'>,
  { rest }: DatasetSpec,
  market: Market,
  symbol: string,
): boolean {
  return rest === undefined || 'joins' in rest || !rest.perpetualOnly || api.isPerpetual(market, symbol);
}

// The addresses: those that the options give, or those of the exchange.

/** Where somebody moved the archive, the listing is asked at the same place. */
export function listingUrl(options: Options, { hosts }: Pick<Venue, 'hosts'>): string {
  return options.listingUrl ?? (options.archiveUrl === hosts.archive ? hosts.listing : options.archiveUrl);
}

export function exchangeHosts(
  options: Options,
  { hosts, buckets, answers, rest }: Pick<Source, 'hosts' | 'buckets' | 'answers' | 'rest'>,
): ExchangeHosts {
  const archiveUrl = options.archiveUrl;
  return {
    ...answers,
    buckets,
    archiveUrl,
    listingUrl: listingUrl(options, { hosts }),
    // An archive that was moved has no other host, unless one is given.
    fallbackUrl: options.fallbackUrl ?? (archiveUrl === hosts.archive ? hosts.origin : undefined),
    restUrls: rest.urls(options),
    knownUrls: Object.values(hosts),
    bannedWith: (url) => rest.bannedWith(options, url),
  };
}

/**
 * Rejects while a place that the run will ask is banned; where one source stands in for the other, only while both are.
 */
export async function refuseBanned(
  bans: Pick<Bans, 'refuse'>,
  source: Source,
  options: Options,
  { verb, markets }: { readonly verb: Verb; readonly markets: readonly Market[] },
): Promise<void> {
  const rest = markets.flatMap((market) => source.rest.places(options, market));
  const archive = [placeOf('archive', options.archiveUrl), placeOf('listing', listingUrl(options, source))];
  const [first, other] = verb === 'metrics' ? [rest, archive] : [archive, rest];
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
