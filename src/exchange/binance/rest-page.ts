/** A page of rows from REST. Rows that were not requested are refused. */
import { CryptodlError } from '../../model/errors.js';
import type { Series } from '../../model/task.js';
import type { RouteSpec } from '../facts.js';
import { shownValue } from '../rest-csv.js';
import type { RestRow } from '../rest-rows.js';
import { contractPair } from './exchange-info.js';

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
