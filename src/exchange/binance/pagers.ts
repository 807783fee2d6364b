/**
 * The pages that cover a span of time. If more rows match a request than the limit of a page, a route answers with the first rows, with
 * the last rows, or with the rows from an id on.
 */
import { CryptodlError } from '../../model/errors.js';
import type { Page, Row, Span } from '../rest-rows.js';
import type { GetPage } from './rest-page.js';

export const HOUR_MS = 3_600_000;

/** The shortest interval of candles; settlements are at least an hour apart. */
const LEAST_STEP_MS = 1000;

/**
 * Pages for routes that answer with the first rows. Ends at the end of the span or with an empty page. A short page does not end it,
 * because the page size of a host may be smaller than the limit.
 */
export async function* startAnchored(
  get: GetPage,
  { fromMs, toMs }: Span,
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
    // `readPage` refuses rows before the start, so the new start is later.
    start = last.atMs + 1;
    yield { rows, known: start };
  }
  yield { rows: [], known: toMs };
}

/** Pages for routes that answer with the last rows. The windows are so short that all of their rows fit into one page. */
export async function* endAnchored(
  get: GetPage,
  { fromMs, toMs }: Span,
  window: { readonly limit: number; readonly stepMs: number; readonly longestMs: number },
): AsyncGenerator<Page> {
  // Both ends are inclusive, so a window has one row more than steps.
  const most = Math.floor(window.longestMs / window.stepMs);
  const stepsInWindow = Math.min(window.limit - 1, most);
  for (let start = fromMs; start < toMs;) {
    const endTime = Math.min(start + stepsInWindow * window.stepMs, toMs - 1);
    const rows = await get({ startTime: start, endTime });
    start = Math.min(endTime + window.stepMs, toMs);
    yield { rows, known: start };
  }
}

/** Finds the first row by time, in windows of one hour (hosts refuse longer ones), and then continues by id. */
export async function* idAnchored(get: GetPage, { fromMs, toMs }: Span): AsyncGenerator<Page> {
  let rows: readonly Row[] = [];
  let known = fromMs;
  while (rows.length === 0 && known < toMs) {
    const endTime = Math.min(known + HOUR_MS, toMs) - 1;
    rows = await get({ startTime: known, endTime });
    // A page may lack later rows of its hour, so only the time up to its last row is known. If it is empty, its hour has no rows.
    known = rows.at(-1)?.atMs ?? endTime + 1;
    yield { rows, known };
  }
  while (rows.length > 0 && known < toMs) {
    const fromId = (rows.at(-1)?.id ?? 0) + 1;
    rows = await get({ fromId });
    // A request by id has no start time, so the order is checked against the previous page.
    if ((rows[0]?.atMs ?? known) < known)
      throw new CryptodlError('page-wrong', `row ${rows[0]?.id ?? fromId} is older than the previous row`);
    known = rows.at(-1)?.atMs ?? toMs;
    yield { rows: rows.filter(({ atMs }) => atMs < toMs), known };
  }
  yield { rows: [], known: toMs };
}
