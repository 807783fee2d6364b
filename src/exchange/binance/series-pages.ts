/**
 * The pages of one series that cover a span of time. If more rows match a request than the limit of a page, a route answers with the first
 * rows, with the last rows, or with the rows from an id on.
 */
import { HOUR_MS, LATEST_DATE_MS, MINUTE_MS, DAY_MS } from '../../model/units.js';
import type { Series } from '../../model/task.js';
import type { RouteSpec } from '../facts.js';
import type { Page, RestRow, TimeSpan } from '../rest-rows.js';
import { intervalMs } from '../exchange-spec.js';
import { contractPair } from './exchange-info.js';
import type { RestClient } from './rest-client.js';
import { CryptodlError } from '../../model/errors.js';
import { shownValue } from '../rest-csv.js';

/** Least time between the last rows of two pages. Settlements are at least one hour apart. */
const SETTLEMENT_STEP_MS = MINUTE_MS;

export async function* seriesPages(
  client: RestClient,
  route: RouteSpec,
  series: Series,
  span: TimeSpan,
): AsyncGenerator<Page> {
  const served = { atMs: Number.NaN };
  const get = getterOf(client, route, series, served);
  const fromMs = span.fromMs - route.lookBackHours * HOUR_MS;
  const pages =
    route.lookBackHours === 0
      ? pagesOf(route, series, get, span)
      : withIntervals(pagesOf(route, series, get, { fromMs, toMs: span.toMs + LOOK_AHEAD_MS }), span);
  for await (const page of pages) yield { ...page, servedAtMs: served.atMs };
}

function pagesOf(route: RouteSpec, series: Series, get: GetPage, span: TimeSpan): AsyncGenerator<Page> {
  if (route.pager === 'start')
    return startAnchored(get, span, route.lookBackHours === 0 ? LEAST_STEP_MS : SETTLEMENT_STEP_MS);
  if (route.pager === 'id') return idAnchored(get, span);
  const longestMs = route.windowDays === undefined ? Number.POSITIVE_INFINITY : route.windowDays * DAY_MS - 1;
  return endAnchored(get, span, { limit: route.limit, stepMs: intervalMs(series.interval ?? ''), longestMs });
}

/** `served` gets the time of the host at its last answer. */
function getterOf(client: RestClient, route: RouteSpec, series: Series, served: { atMs: number }): GetPage {
  const { host, path, bucket, weight, limit } = route;
  const fixed = Object.fromEntries(
    Object.entries(route.parameters).map(([name, value]) => [name, parameter(value, series)]),
  );
  // Routes with an interval have bars; statistics have a period.
  const barMs = 'interval' in route.parameters ? intervalMs(series.interval ?? '') : Number.NaN;
  return (query: PageQuery) =>
    client.get(
      { host, path, bucket, weight, query: { ...fixed, ...query, limit } },
      (content, servedAtMs) => {
        served.atMs = servedAtMs;
        // A bar that is not over changes until its end. The clock of the host decides, because that of this machine may be wrong.
        return readRestPage(content, route, query, series).filter(({ atMs }) => !(atMs + barMs > servedAtMs));
      },
    );
}

function parameter(value: string, { symbol, interval = '' }: Series): string {
  if (value === '$symbol') return symbol;
  if (value === '$pair') return contractPair(symbol);
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
async function* withIntervals(pages: AsyncIterable<Page>, { fromMs, toMs }: TimeSpan): AsyncGenerator<Page> {
  let before: number | undefined;
  let last: RestRow | undefined;
  const addHours = (row: RestRow, next: RestRow | undefined): RestRow => {
    const hours = hoursBetween(before, row.atMs) ?? hoursBetween(row.atMs, next?.atMs) ?? LONGEST_HOURS;
    before = row.atMs;
    return { ...row, cells: { ...row.cells, intervalHours: hours } };
  };
  for await (const { rows, knownMs } of pages) {
    const all = last === undefined ? rows : [last, ...rows];
    // The last row waits for the next page, because its interval may depend on the next row.
    last = rows.at(-1);
    const ready = last === undefined ? all : all.slice(0, -1);
    const withHours = ready.map((row, index) => addHours(row, all[index + 1]));
    yield {
      rows: withHours.filter(({ atMs }) => atMs >= fromMs && atMs < toMs),
      knownMs: last?.atMs ?? knownMs,
    };
  }
}

/** Undefined if one of the times is unknown, or if they are not 1 to 8 hours apart. */
function hoursBetween(fromMs: number | undefined, toMs: number | undefined): number | undefined {
  if (fromMs === undefined || toMs === undefined) return undefined;
  const hours = Math.round((toMs - fromMs) / HOUR_MS);
  return hours >= 1 && hours <= LONGEST_HOURS ? hours : undefined;
}

/** The shortest interval of candles; settlements are at least an hour apart. */
const LEAST_STEP_MS = 1000;

/**
 * Pages for routes that answer with the first rows. Ends at the end of the span or with an empty page. A short page does not end it,
 * because the page size of a host may be smaller than the limit.
 */
export async function* startAnchored(
  get: GetPage,
  { fromMs, toMs }: TimeSpan,
  leastMs = LEAST_STEP_MS,
): AsyncGenerator<Page> {
  let start = fromMs;
  let nextMs = fromMs;
  while (start < toMs) {
    const rows = await get({ startTime: start, endTime: toMs - 1 });
    const last = rows.at(-1);
    if (last === undefined) break;
    // Otherwise, answers with a single row at the requested start would advance by 1 ms per page.
    if (last.atMs < nextMs)
      throw new CryptodlError('page-wrong', `a page ends less than ${leastMs} ms after the previous page`);
    nextMs = last.atMs + leastMs;
    // `readRestPage` refuses rows before the start, so the new start is later.
    start = last.atMs + 1;
    yield { rows, knownMs: start };
  }
  yield { rows: [], knownMs: toMs };
}

/** Pages for routes that answer with the last rows. The windows are so short that all of their rows fit into one page. */
export async function* endAnchored(
  get: GetPage,
  { fromMs, toMs }: TimeSpan,
  window: { readonly limit: number; readonly stepMs: number; readonly longestMs: number },
): AsyncGenerator<Page> {
  // Both ends are inclusive, so a window has one row more than steps.
  const most = Math.floor(window.longestMs / window.stepMs);
  const stepsInWindow = Math.min(window.limit - 1, most);
  for (let start = fromMs; start < toMs;) {
    const endTime = Math.min(start + stepsInWindow * window.stepMs, toMs - 1);
    const rows = await get({ startTime: start, endTime });
    start = Math.min(endTime + window.stepMs, toMs);
    yield { rows, knownMs: start };
  }
}

/** Finds the first row by time, in windows of one hour (hosts refuse longer ones), and then continues by id. */
export async function* idAnchored(get: GetPage, { fromMs, toMs }: TimeSpan): AsyncGenerator<Page> {
  let rows: readonly RestRow[] = [];
  let knownMs = fromMs;
  while (rows.length === 0 && knownMs < toMs) {
    const endTime = Math.min(knownMs + HOUR_MS, toMs) - 1;
    rows = await get({ startTime: knownMs, endTime });
    // A page may lack later rows of its hour, so only the time up to its last row is known. If it is empty, its hour has no rows.
    knownMs = rows.at(-1)?.atMs ?? endTime + 1;
    yield { rows, knownMs };
  }
  while (rows.length > 0 && knownMs < toMs) {
    const fromId = (rows.at(-1)?.id ?? 0) + 1;
    rows = await get({ fromId });
    // A request by id has no start time, so the order is checked against the previous page.
    if ((rows[0]?.atMs ?? knownMs) < knownMs)
      throw new CryptodlError('page-wrong', `row ${rows[0]?.id ?? fromId} is older than the previous row`);
    knownMs = rows.at(-1)?.atMs ?? toMs;
    yield { rows: rows.filter(({ atMs }) => atMs < toMs), knownMs };
  }
  yield { rows: [], knownMs: toMs };
}

// A page of rows from REST. Rows that were not requested are refused.

/** Query parameters of one request. Both times are inclusive. */
export type PageQuery =
  { readonly startTime: number; readonly endTime: number } | { readonly fromId: number };

export type GetPage = (query: PageQuery) => Promise<readonly RestRow[]>;

/**
 * The rows of a page. Throws `answer-malformed` if the answer is no list of rows. Throws `page-wrong` unless the rows are in strictly
 * ascending order (by id if the route has ids), of the symbol and within the query: `/futures/data` answers some requests with rows of
 * today instead of the requested window.
 */
export function readRestPage(
  content: unknown,
  route: RouteSpec,
  query: PageQuery,
  { symbol }: Pick<Series, 'symbol'>,
): RestRow[] {
  if (!Array.isArray(content))
    throw new CryptodlError('answer-malformed', `${route.path} did not answer with a list`);
  const rows = content.map((cells: unknown) => rowOf(cells, route));
  for (const [index, row] of rows.entries()) {
    const wrong = contractFault(row, symbol) ?? orderFault(row, rows[index - 1], query, route);
    if (wrong !== undefined) throw new CryptodlError('page-wrong', `${route.path}: ${wrong}`);
  }
  return rows;
}

function rowOf(cells: unknown, route: RouteSpec): RestRow {
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
  return { atMs: numberOf(route.time), id: route.id === '' ? 0 : numberOf(route.id), cells: byName };
}

/** Times are numbers in answers, but texts in the API documentation: both are read. */
function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  const isOne =
    typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= LATEST_DATE_MS;
  return isOne ? number : undefined;
}

/** A row outside of the query, or one that is not after the row before. */
function orderFault(
  row: RestRow,
  before: RestRow | undefined,
  query: PageQuery,
  { id }: RouteSpec,
): string | undefined {
  if ('fromId' in query && row.id < query.fromId)
    return `row ${row.id} is before the requested row ${query.fromId}`;
  if ('startTime' in query && (row.atMs < query.startTime || row.atMs > query.endTime))
    return `row ${nameOf(row)} is outside of the requested ${instantText(query.startTime)} to ${instantText(query.endTime)}`;
  if (before === undefined) return undefined;
  const isAfter = id === '' ? row.atMs > before.atMs : row.id > before.id && row.atMs >= before.atMs;
  return isAfter ? undefined : `row ${nameOf(row)} comes after ${nameOf(before)}`;
}

/** A field of the row that names another symbol or pair. */
function contractFault({ cells }: RestRow, symbol: string): string | undefined {
  for (const [field, expected] of Object.entries({ symbol, pair: contractPair(symbol) })) {
    const value = cells[field];
    if (value !== undefined && value !== expected)
      return `a row has the ${field} ${shownValue(value)} instead of ${expected}`;
  }
  return undefined;
}

const nameOf = ({ atMs, id }: RestRow): string => (id === 0 ? instantText(atMs) : String(id));

const instantText = (ms: number): string => new Date(ms).toISOString();
