/**
 * REST of Binance for one run: hosts, limits, the pages of a series, and the hosts that are banned together.
 */
import { placeOf } from '../../http/bans.js';
import { DAY_MS } from '../../model/calendar.js';
import { CryptodlError, isNoAnswer } from '../../model/errors.js';
import type { Market, Series } from '../../model/task.js';
import { agoText } from '../../model/units.js';
import type { RouteSpec } from '../facts.js';
import { shownValue } from '../rest-rows.js';
import type { Page, Row, Span } from '../rest-rows.js';
import type { Addresses, RestApi, RestContext } from '../exchange.js';
import { intervalMs } from '../exchange-spec.js';
import type { ExchangeSpec } from '../exchange-spec.js';
import { exchangeInfo, isPerpetual, pairOf, parseHeldInfo, weightBucket } from './exchange-info.js';
import type { ExchangeInfo } from './exchange-info.js';
import { RestClient } from './rest-client.js';

export function binanceRest({ spot, spotPublic }: ExchangeSpec['hosts']): RestApi {
  return {
    urls: ({ fapiUrl, dapiUrl, spotUrl }) => ({
      'fapi-url': fapiUrl,
      'dapi-url': dapiUrl,
      'spot-url': spotUrl,
    }),
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
        warn: (message) => observer.warn(message),
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

/** Always sends a request. If the host does not answer, uses the cached answer and prints a warning. */
async function infoOf(
  { options, copies, nowMs, observer }: RestContext,
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
function restPlaces(options: Addresses, market: Market): string[] {
  if (market === 'spot') return [placeOf('spot', options.spotUrl)];
  const url = market === 'cm' ? options.dapiUrl : options.fapiUrl;
  return FUTURES.map((bucket) => placeOf(bucket, url));
}

/** The hosts of USD-margined and coin-margined futures share their limits, so a ban of one applies to both. */
function bannedWith(options: Addresses, url: string): string[] {
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
  const served = { at: Number.NaN };
  const get = getterOf(client, route, series, served);
  const from = span.from - route.lookBackHours * HOUR_MS;
  const pages =
    route.lookBackHours === 0
      ? pagesOf(route, series, get, span)
      : withIntervals(pagesOf(route, series, get, { from, to: span.to + LOOK_AHEAD_MS }), span);
  for await (const page of pages) yield { ...page, servedAt: served.at };
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

/** `served` gets the time of the host at its last answer. */
function getterOf(client: RestClient, route: RouteSpec, series: Series, served: { at: number }): GetPage {
  const { host, path, bucket, weight, limit } = route;
  const fixed = Object.fromEntries(
    Object.entries(route.parameters).map(([name, value]) => [name, parameter(value, series)]),
  );
  // Routes with an interval have bars; statistics have a period.
  const barMs = 'interval' in route.parameters ? intervalMs(series.interval ?? '') : Number.NaN;
  return (query: PageQuery) =>
    client.get({ host, path, bucket, weight, query: { ...fixed, ...query, limit } }, (content, servedAt) => {
      served.at = servedAt;
      // A bar that is not over changes until its end. The clock of the host decides, because that of this machine may be wrong.
      return readPage(content, route, query, series).filter(({ at }) => !(at + barMs > servedAt));
    });
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

// Pages of rows from REST. Rows that were not requested are refused.

/** Query parameters of one request. Both times are inclusive. */
export type PageQuery =
  { readonly startTime: number; readonly endTime: number } | { readonly fromId: number };

export type GetPage = (query: PageQuery) => Promise<readonly Row[]>;

/**
 * The rows of a page. Throws `answer-malformed` if the answer is no list of rows. Throws `page-wrong` unless the rows are in strictly
 * ascending order (by id if the route has ids), of the symbol and within the query: `/futures/data` answers some requests with rows of
 * today instead of the requested window.
 */
export function readPage(
  content: unknown,
  route: RouteSpec,
  query: PageQuery,
  { symbol }: Pick<Series, 'symbol'>,
): Row[] {
  if (!Array.isArray(content))
    throw new CryptodlError('answer-malformed', `${route.path} did not answer with a list`);
  const rows = content.map((cells: unknown) => rowOf(cells, route));
  for (const [index, row] of rows.entries()) {
    const wrong = contractFault(row, symbol) ?? orderFault(row, rows[index - 1], query, route);
    if (wrong !== undefined) throw new CryptodlError('page-wrong', `${route.path}: ${wrong}`);
  }
  return rows;
}

function rowOf(cells: unknown, route: RouteSpec): Row {
  if (typeof cells !== 'object' || cells === null)
    throw new CryptodlError('answer-malformed', `${route.path} answered with ${shownValue(cells)} as a row`);
  const byName = cells as Readonly<Record<string, unknown>>;
  const numberOf = (field: string): number => {
    const number = wholeNumber(byName[field]);
    if (number !== undefined) return number;
    const value = shownValue(byName[field]);
    throw new CryptodlError(
      'answer-malformed',
      `${route.path} answered with a row whose ${field} is ${value}`,
    );
  };
  return { at: numberOf(route.time), id: route.id === '' ? 0 : numberOf(route.id), cells: byName };
}

/** The latest time of a JavaScript Date. */
const LAST_MS = 8.64e15;

/** Times are numbers in answers, but texts in the API documentation: both are read. */
function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  const isOne = typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= LAST_MS;
  return isOne ? number : undefined;
}

/** A row outside of the query, or one that is not after the row before. */
function orderFault(
  row: Row,
  before: Row | undefined,
  query: PageQuery,
  { id }: RouteSpec,
): string | undefined {
  if ('fromId' in query && row.id < query.fromId)
    return `row ${row.id} is before the requested row ${query.fromId}`;
  if ('startTime' in query && (row.at < query.startTime || row.at > query.endTime))
    return `row ${nameOf(row)} is outside of the requested ${instantText(query.startTime)} to ${instantText(query.endTime)}`;
  if (before === undefined) return undefined;
  const isAfter = id === '' ? row.at > before.at : row.id > before.id && row.at >= before.at;
  return isAfter ? undefined : `row ${nameOf(row)} comes after ${nameOf(before)}`;
}

/** A field of the row that names another symbol or pair. */
function contractFault({ cells }: Row, symbol: string): string | undefined {
  for (const [field, expected] of Object.entries({ symbol, pair: pairOf(symbol) })) {
    const value = cells[field];
    if (value !== undefined && value !== expected)
      return `a row has the ${field} ${shownValue(value)} instead of ${expected}`;
  }
  return undefined;
}

function nameOf({ at, id }: Row): string {
  return id === 0 ? instantText(at) : String(id);
}

function instantText(ms: number): string {
  return new Date(ms).toISOString();
}

// The pages that cover a span of time. If more rows match a request than the limit of a page, a route answers with the first rows, with
// the last rows, or with the rows from an id on.

/** The shortest interval of candles; settlements are at least an hour apart. */
const LEAST_STEP_MS = 1000;

/**
 * Pages for routes that answer with the first rows. Ends at the end of the span or with an empty page. A short page does not end it,
 * because the page size of a host may be smaller than the limit.
 */
export async function* startAnchored(
  get: GetPage,
  { from, to }: Span,
  leastMs = LEAST_STEP_MS,
): AsyncGenerator<Page> {
  let start = from;
  let nextMs = from;
  while (start < to) {
    const rows = await get({ startTime: start, endTime: to - 1 });
    const last = rows.at(-1);
    if (last === undefined) break;
    // Otherwise, answers with a single row at the requested start would advance by 1 ms per page.
    if (last.at < nextMs)
      throw new CryptodlError('page-wrong', `a page ends less than ${leastMs} ms after the previous page`);
    nextMs = last.at + leastMs;
    // `readPage` refuses rows before the start, so the new start is later.
    start = last.at + 1;
    yield { rows, known: start };
  }
  yield { rows: [], known: to };
}

/** Pages for routes that answer with the last rows. The windows are so short that all of their rows fit into one page. */
export async function* endAnchored(
  get: GetPage,
  { from, to }: Span,
  window: { readonly limit: number; readonly stepMs: number; readonly longestMs: number },
): AsyncGenerator<Page> {
  // Both ends are inclusive, so a window has one row more than steps.
  const most = Math.floor(window.longestMs / window.stepMs);
  const stepsInWindow = Math.min(window.limit - 1, most);
  for (let start = from; start < to;) {
    const endTime = Math.min(start + stepsInWindow * window.stepMs, to - 1);
    const rows = await get({ startTime: start, endTime });
    start = Math.min(endTime + window.stepMs, to);
    yield { rows, known: start };
  }
}

/** Finds the first row by time, in windows of one hour (hosts refuse longer ones), and then continues by id. */
export async function* idAnchored(get: GetPage, { from, to }: Span): AsyncGenerator<Page> {
  let rows: readonly Row[] = [];
  let known = from;
  while (rows.length === 0 && known < to) {
    const endTime = Math.min(known + HOUR_MS, to) - 1;
    rows = await get({ startTime: known, endTime });
    // A page may lack later rows of its hour, so only the time up to its last row is known. If it is empty, its hour has no rows.
    known = rows.at(-1)?.at ?? endTime + 1;
    yield { rows, known };
  }
  while (rows.length > 0 && known < to) {
    const fromId = (rows.at(-1)?.id ?? 0) + 1;
    rows = await get({ fromId });
    // A request by id has no start time, so the order is checked against the previous page.
    if ((rows[0]?.at ?? known) < known)
      throw new CryptodlError('page-wrong', `row ${rows[0]?.id ?? fromId} is older than the previous row`);
    known = rows.at(-1)?.at ?? to;
    yield { rows: rows.filter(({ at }) => at < to), known };
  }
  yield { rows: [], known: to };
}
