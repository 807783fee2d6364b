/** One page of rows from REST: its times made out, and nothing taken that was not asked for. */
import { CryptodlError } from '../errors.js';
import type { Series } from '../task.js';
import type { RouteSpec } from '../venue/facts.js';
import { pairOf } from '../venue/routes.js';

/** Epoch milliseconds `[from, to)`. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** `cells` by name, or by position as text. */
export interface Row {
  readonly at: number;
  /** Of a trade; 0 where rows have none. */
  readonly id: number;
  readonly cells: Readonly<Record<string, unknown>>;
}

/** What one request asks for, as parameters of the route; both ends of the times are included. */
export type PageQuery =
  { readonly startTime: number; readonly endTime: number } | { readonly fromId: number };

export type GetPage = (query: PageQuery) => Promise<readonly Row[]>;

/**
 * Rows strictly ascending, by id where the route has ids, each of the symbol and within what was asked for. Throws `answer-malformed`
 * for what is no list of rows and `page-wrong` otherwise: `/futures/data` answers some questions with today's rows instead
 * of those of the window (facts, section 6).
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
  let before: Row | undefined;
  for (const row of rows) {
    refuseOtherContract(row, symbol, route);
    refuseStranger(row, query, route);
    if (before !== undefined && !isAfter(row, before, route))
      throw new CryptodlError(
        'page-wrong',
        `${route.path}: row ${nameOf(row)} comes after ${nameOf(before)}`,
      );
    before = row;
  }
  return rows;
}

function rowOf(cells: unknown, route: RouteSpec): Row {
  if (typeof cells !== 'object' || cells === null)
    throw new CryptodlError('answer-malformed', `${route.path} answered with a row that is none`);
  const byName = cells as Readonly<Record<string, unknown>>;
  const numberOf = (field: string): number => {
    const number = wholeNumber(byName[field]);
    if (number !== undefined) return number;
    const said = `a row whose ${field} is ${shownValue(byName[field])}`;
    throw new CryptodlError('answer-malformed', `${route.path} answered with ${said}`);
  };
  return { at: numberOf(route.time), id: route.id === '' ? 0 : numberOf(route.id), cells: byName };
}

/** The last instant that a date can be. */
const LAST_MS = 8.64e15;

/** Times are numbers on the wire and texts in the documents: both are taken. */
function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  const isOne = typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= LAST_MS;
  return isOne ? number : undefined;
}

/** What a cell holds, for messages. */
export function shownValue(value: unknown): string {
  return (JSON.stringify(value) as string | undefined)?.slice(0, 40) ?? 'missing';
}

function refuseStranger(row: Row, query: PageQuery, { path }: RouteSpec): void {
  if ('fromId' in query) {
    if (row.id >= query.fromId) return;
    throw new CryptodlError('page-wrong', `${path}: row ${row.id} is before the ${query.fromId} asked for`);
  }
  if (row.at >= query.startTime && row.at <= query.endTime) return;
  const asked = `${instantText(query.startTime)} to ${instantText(query.endTime)}`;
  throw new CryptodlError('page-wrong', `${path}: row ${nameOf(row)} is outside of ${asked}, as asked for`);
}

/** Where rows name what they are of. */
function refuseOtherContract({ cells }: Row, symbol: string, { path }: RouteSpec): void {
  const asked = { symbol, pair: pairOf(symbol) };
  for (const [field, expected] of Object.entries(asked)) {
    const said = cells[field];
    if (said === undefined || said === expected) continue;
    throw new CryptodlError(
      'page-wrong',
      `${path}: a row has the ${field} ${shownValue(said)}, asked for was ${expected}`,
    );
  }
}

function isAfter(row: Row, before: Row, { id }: RouteSpec): boolean {
  return id === '' ? row.at > before.at : row.id > before.id && row.at >= before.at;
}

function nameOf({ at, id }: Row): string {
  return id === 0 ? instantText(at) : String(id);
}

function instantText(ms: number): string {
  return new Date(ms).toISOString();
}
