/**
 * From a span of time to the pages that cover it, by what a route gives when more rows fit than its limit (facts of the
 * REST interface, section 8): the first ones, the last ones, or those from an id on.
 */
import { CryptodlError } from '../errors.js';
import type { GetPage, Row, Span } from './page.js';

/** `known`: everything before this instant has been seen. Pages come in order of time. */
export interface Page {
  readonly rows: readonly Row[];
  readonly known: number;
}

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
