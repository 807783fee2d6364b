/** One page of rows from REST: its times made out, and nothing taken that was not asked for. */
import { CryptodlError } from '../../model/errors.js';
import type { Series } from '../../model/task.js';
import type { RouteSpec } from '../facts.js';
import { shownValue } from '../rest-rows.js';
import type { Page, Row, Span } from '../rest-rows.js';
import { pairOf } from './exchange-info.js';

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

// From a span of time to the pages that cover it, by what a route gives when more rows fit than its limit (facts of
// the REST interface, section 8): the first ones, the last ones, or those from an id on.

/** The shortest interval of candles; settlements are at least an hour apart. */
const LEAST_STEP_MS = 1000;

/**
 * The first rows from a start on. It ends at the requested end or with an empty page, not with a short one: nobody knows
 * how many rows a page may have.
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
    // A host that answers each question with a row at its start would be asked for ever.
    if (last.at < nextMs)
      throw new CryptodlError('page-wrong', `a page ends less than ${leastMs} ms after the one before it`);
    nextMs = last.at + leastMs;
    // A page is refused when a row is before its start, so this is later.
    start = last.at + 1;
    yield { rows, known: start };
  }
  yield { rows: [], known: to };
}

/** The last rows before an end: asked for in windows that hold no more than a page, so that it does not matter. */
export async function* endAnchored(
  get: GetPage,
  { from, to }: Span,
  window: { readonly limit: number; readonly stepMs: number; readonly longestMs: number },
): AsyncGenerator<Page> {
  // Both ends are included: a page holds one row more than there are steps between them.
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

/** Found by time, an hour at a time (a longer window is refused), then followed by id. */
export async function* idAnchored(get: GetPage, { from, to }: Span): AsyncGenerator<Page> {
  let rows: readonly Row[] = [];
  let known = from;
  while (rows.length === 0 && known < to) {
    const endTime = Math.min(known + HOUR_MS, to) - 1;
    rows = await get({ startTime: known, endTime });
    // Of an hour that does not fit into a page there is more; of an empty one there is not.
    known = rows.at(-1)?.at ?? endTime + 1;
    yield { rows, known };
  }
  while (rows.length > 0 && known < to) {
    const fromId = (rows.at(-1)?.id ?? 0) + 1;
    rows = await get({ fromId });
    // Nothing but the page before tells at what time this one has to begin.
    if ((rows[0]?.at ?? known) < known)
      throw new CryptodlError('page-wrong', `row ${rows[0]?.id ?? fromId} is older than the one before it`);
    known = rows.at(-1)?.at ?? to;
    yield { rows: rows.filter(({ at }) => at < to), known };
  }
  yield { rows: [], known: to };
}
