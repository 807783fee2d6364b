/** Pages of rows from REST. Rows that were not requested are refused. */
import { CryptodlError } from '../../model/errors.js';
import type { Series } from '../../model/task.js';
import type { RouteSpec } from '../facts.js';
import { shownValue } from '../rest-rows.js';
import type { Page, Row, Span } from '../rest-rows.js';
import { pairOf } from './exchange-info.js';

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

const HOUR_MS = 3_600_000;

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
