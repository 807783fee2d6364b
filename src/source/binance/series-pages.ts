/** The pages of one series over a span of time, by the route that has it. */
import { DAY_MS } from '../../model/calendar.js';
import type { Series } from '../../model/task.js';
import type { RouteSpec } from '../facts.js';
import type { RestClient } from './rest-client.js';
import { endAnchored, idAnchored, readPage, startAnchored } from './rest-page.js';
import type { GetPage, PageQuery } from './rest-page.js';
import type { Page, Row, Span } from '../rest-rows.js';
import { pairOf } from './contracts.js';
import { intervalMs } from '../venue.js';

const HOUR_MS = 3_600_000;

/** Settlements are further apart: by an hour at least, and a venue may add one. */
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

/** The next settlement is asked for as well, however late it came. */
const LOOK_AHEAD_MS = (LONGEST_HOURS + 1) * HOUR_MS;

/**
 * Funding rates tell when, not after how long: hours since the settlement before, or else, as for the first of all, until
 * the next one. Both are looked for beyond the span, so that a row does not depend on what it is asked for with.
 */
async function* withIntervals(pages: AsyncIterable<Page>, { from, to }: Span): AsyncGenerator<Page> {
  let before: number | undefined;
  let last: Row | undefined;
  const told = (row: Row, next: Row | undefined): Row => {
    const hours = hoursBetween(before, row.at) ?? hoursBetween(row.at, next?.at) ?? LONGEST_HOURS;
    before = row.at;
    return { ...row, cells: { ...row.cells, intervalHours: hours } };
  };
  for await (const { rows, known } of pages) {
    const all = last === undefined ? rows : [last, ...rows];
    // The last row waits for the page behind it, which has none when there are no more.
    last = rows.at(-1);
    const ready = last === undefined ? all : all.slice(0, -1);
    const withHours = ready.map((row, index) => told(row, all[index + 1]));
    yield { rows: withHours.filter(({ at }) => at >= from && at < to), known: last?.at ?? known };
  }
}

/** Undefined when one of them is not known, or a settlement is missing between them. */
function hoursBetween(from: number | undefined, to: number | undefined): number | undefined {
  if (from === undefined || to === undefined) return undefined;
  const hours = Math.round((to - from) / HOUR_MS);
  return hours >= 1 && hours <= LONGEST_HOURS ? hours : undefined;
}
