/**
 * REST of Binance for one run: hosts, limits, the pages of a series, and the hosts that are banned together.
 */
import { placeOf } from '../../http/bans.js';
import { DAY_MS } from '../../model/calendar.js';
import { isNoAnswer } from '../../model/errors.js';
import type { Market, Series } from '../../model/task.js';
import { agoText } from '../../model/units.js';
import type { Options } from '../../options/flags.js';
import type { RouteSpec } from '../facts.js';
import type { Page, Row, Span } from '../rest-rows.js';
import type { RestApi, RestSessionOptions } from '../source.js';
import type { Venue } from '../venue.js';
import { intervalMs } from '../venue.js';
import { exchangeInfo, isPerpetual, pairOf, parseHeldInfo, weightBucket } from './exchange-info.js';
import type { ExchangeInfo } from './exchange-info.js';
import { RestClient } from './rest-client.js';
import { endAnchored, idAnchored, readPage, startAnchored } from './rest-page.js';
import type { GetPage, PageQuery } from './rest-page.js';

export function binanceRest({ spot, spotPublic }: Venue['hosts']): RestApi {
  return {
    urls: restUrls,
    places: restPlaces,
    bannedWith,
    isPerpetual,
    open: (session) => {
      const { options, fetch, throttle, observer, signal } = session;
      const client = new RestClient({
        fetch,
        urls: { fapi: options.fapiUrl, dapi: options.dapiUrl, spot: options.spotUrl },
        // A custom address of spot has no replacement.
        otherSpotUrl: options.spotUrl === spot ? spotPublic : undefined,
        priority: options.priority,
        signal,
        warn: (message) => {
          observer.warn(message);
        },
      });
      return {
        pages: (route, series, span) => seriesPages(client, route, series, span),
        symbols: async (market) => {
          const { symbols, weight } = await infoOf(session, client, market);
          if (weight !== undefined)
            throttle.setBudget(weightBucket(market), { permits: weight.limit, windowMs: weight.windowMs });
          return symbols;
        },
      };
    },
  };
}

function restUrls(options: Options): Record<string, string> {
  return {
    'fapi-url': options.fapiUrl,
    'dapi-url': options.dapiUrl,
    'spot-url': options.spotUrl,
  };
}

/** Always sends a request. If the host does not answer, uses the cached answer and prints a warning. */
async function infoOf(
  { options, copies, nowMs, observer }: RestSessionOptions,
  client: RestClient,
  market: Market,
): Promise<ExchangeInfo> {
  const url = market === 'spot' ? options.spotUrl : options[market === 'cm' ? 'dapiUrl' : 'fapiUrl'];
  const name = `exchangeInfo ${url} ${market}`;
  const copy = await copies.read(name, parseHeldInfo);
  try {
    const info = await exchangeInfo(client, market);
    await copies.keep(name, info);
    return info;
  } catch (error) {
    if (copy === undefined || !isNoAnswer(error)) throw error;
    observer.warn(
      `exchangeInfo of ${new URL(url).host} is not available (${error.message}): its copy of ${agoText(copy.at, nowMs)} is used; later listings and delistings of symbols are not known`,
    );
    return copy.value;
  }
}

const FUTURES: readonly string[] = ['futures', 'futuresData', 'funding'];

/** The places of a market's REST, one per bucket. Bans are recorded by place. */
function restPlaces(options: Options, market: Market): string[] {
  if (market === 'spot') return [placeOf('spot', options.spotUrl)];
  const url = market === 'cm' ? options.dapiUrl : options.fapiUrl;
  return FUTURES.map((bucket) => placeOf(bucket, url));
}

/** The hosts of USD-margined and coin-margined futures share their limits, so a ban of one applies to both. */
function bannedWith(options: Options, url: string): string[] {
  const futures = [options.fapiUrl, options.dapiUrl];
  const isOf = (base: string): boolean => new URL(base).host === new URL(url).host;
  return futures.some(isOf) ? [...new Set([url, ...futures])] : [url];
}

// The pages of one series over a span of time.

const HOUR_MS = 3_600_000;

/** Least time between the last rows of two pages. Settlements are at least one hour apart. */
const SETTLEMENT_STEP_MS = 60_000;

export async function* seriesPages(
  client: RestClient,
  route: RouteSpec,
  series: Series,
  span: Span,
): AsyncGenerator<Page> {
  const get = getterOf(client, route, series);
  if (route.lookBackHours === 0) {
    yield* pagesOf(route, series, get, span);
    return;
  }
  const from = span.from - route.lookBackHours * HOUR_MS;
  yield* withIntervals(pagesOf(route, series, get, { from, to: span.to + LOOK_AHEAD_MS }), span);
}

function pagesOf(route: RouteSpec, series: Series, get: GetPage, span: Span): AsyncGenerator<Page> {
  if (route.pager === 'start')
    return route.lookBackHours === 0
      ? startAnchored(get, span)
      : startAnchored(get, span, SETTLEMENT_STEP_MS);
  if (route.pager === 'id') return idAnchored(get, span);
  const longestMs = route.windowDays === undefined ? Number.POSITIVE_INFINITY : route.windowDays * DAY_MS - 1;
  return endAnchored(get, span, { limit: route.limit, stepMs: intervalMs(series.interval ?? ''), longestMs });
}

function getterOf(client: RestClient, route: RouteSpec, series: Series): GetPage {
  const { host, path, bucket, weight, limit } = route;
  const fixed = Object.fromEntries(
    Object.entries(route.parameters).map(([name, value]) => [name, parameter(value, series)]),
  );
  return (query: PageQuery) =>
    client.get({ host, path, bucket, weight, query: { ...fixed, ...query, limit } }, (content) =>
      readPage(content, route, query, series),
    );
}

function parameter(value: string, { symbol, interval = '' }: Series): string {
  if (value === '$symbol') return symbol;
  if (value === '$pair') return pairOf(symbol);
  // The archive writes `1mo` where REST has `1M`.
  if (value === '$interval') return interval === '1mo' ? '1M' : interval;
  return value;
}

/** Settlements are 1 to 8 hours apart. */
const LONGEST_HOURS = 8;

/** Includes the settlement after the span, also a late one. */
const LOOK_AHEAD_MS = (LONGEST_HOURS + 1) * HOUR_MS;

/**
 * Adds the hours of each funding interval, which REST does not report: the hours since the previous settlement, else until the next
 * settlement, else 8. The pages reach beyond the span on both sides, so that a row gets the same hours in every request.
 */
async function* withIntervals(pages: AsyncIterable<Page>, { from, to }: Span): AsyncGenerator<Page> {
  let before: number | undefined;
  let last: Row | undefined;
  const addHours = (row: Row, next: Row | undefined): Row => {
    const hours = hoursBetween(before, row.at) ?? hoursBetween(row.at, next?.at) ?? LONGEST_HOURS;
    before = row.at;
    return { ...row, cells: { ...row.cells, intervalHours: hours } };
  };
  for await (const { rows, known } of pages) {
    const all = last === undefined ? rows : [last, ...rows];
    // The last row waits for the next page, because its interval may depend on the next row.
    last = rows.at(-1);
    const ready = last === undefined ? all : all.slice(0, -1);
    const withHours = ready.map((row, index) => addHours(row, all[index + 1]));
    yield { rows: withHours.filter(({ at }) => at >= from && at < to), known: last?.at ?? known };
  }
}

/** Undefined if one of the times is unknown, or if they are not 1 to 8 hours apart. */
function hoursBetween(from: number | undefined, to: number | undefined): number | undefined {
  if (from === undefined || to === undefined) return undefined;
  const hours = Math.round((to - from) / HOUR_MS);
  return hours >= 1 && hours <= LONGEST_HOURS ? hours : undefined;
}
