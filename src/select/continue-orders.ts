/** The orders of a run: what it asks for, and the first days of the orders that it continues. */
import { firstDayOf, joinOrders, readOrders } from '../lake/orders.js';
import type { AskedOrder, Order, OrderChange, OrderTerms } from '../lake/orders.js';
import { dayText } from '../model/calendar.js';
import { listText } from '../model/units.js';
import type { Options } from '../options/flags.js';
import type { SymbolPatterns } from '../options/symbols.js';
import type { SeriesRequest } from '../plan/series-request.js';
import type { Range } from './date-range.js';
import type { LakeContext, RunSelection } from './selection.js';

/** A range that ends at a date is closed. One that moves with the current day is open. */
export function orderTerms(
  { names, globs, exclusions }: SymbolPatterns,
  { to, months }: Pick<Options, 'to' | 'months'>,
  range: Range,
): OrderTerms {
  return {
    words: [...names, ...globs, ...exclusions.map((word) => `!${word}`)],
    first: range.from,
    last: to?.kind === 'days' ? to.last : undefined,
    isOfMonths: months !== undefined,
  };
}

/**
 * The selection with the first days of its open orders, and the orders to write before the first request for data. A run with `--exact`, and a run
 * with an end, keep to their range. Rejects with errors of the system.
 */
export async function continueOrders(
  context: LakeContext,
  selection: RunSelection,
): Promise<{ readonly selection: RunSelection; readonly orders: OrderChange }> {
  const { paths, options, observer, nowMs } = context;
  if (options.revisions === 'only') return { selection, orders: { held: [], changed: [] } };
  const { orders: held, unreadable } = await readOrders(paths);
  if (unreadable.length > 0) observer.warn(`no orders, left out: ${listText(unreadable, 3)}`);
  const asked = askedOrders(context, selection);
  const { orders: all, changed: joined } = joinOrders(held, asked, new Date(nowMs).toISOString());
  const orders = { held, changed: [...joined, ...(selection.grown ?? [])] };
  if (options.exact || options.to !== undefined) return { selection, orders };
  const firsts = firstDays(all.filter(({ last }) => last === null));
  const requests = selection.requests.map((request) => withFirstDay(request, firsts));
  return { selection: { ...selection, requests }, orders };
}

function withFirstDay(request: SeriesRequest, firsts: ReadonlyMap<string, number>): SeriesRequest {
  const { market, dataset, interval, symbol } = request.series;
  const first = firsts.get(nameOf(market, dataset, interval, symbol));
  if (first === undefined || request.exact === true) return request;
  // REST keeps a window of some days.
  const since = request.rest?.mode === 'only' ? Math.max(first, request.rest.from) : first;
  return { ...request, since };
}

/** The orders of a selection: one for each dataset and format. None for a run that looks for revisions only. */
export function askedOrders(
  { venue, options }: Pick<LakeContext, 'venue' | 'options'>,
  { verb, order, requests }: Pick<RunSelection, 'verb' | 'order' | 'requests'>,
): AskedOrder[] {
  if (order === undefined || options.revisions === 'only' || (verb !== 'vision' && verb !== 'metrics'))
    return [];
  const layers = new Map<string, SeriesRequest[]>();
  for (const request of requests) {
    const { market, dataset, interval } = request.series;
    const name = nameOf(market, dataset, interval, request.settings.format);
    layers.set(name, [...(layers.get(name) ?? []), request]);
  }
  return [...layers.values()].flatMap((group) => {
    const [one] = group;
    if (one === undefined) return [];
    const { market, dataset, interval } = one.series;
    return {
      verb,
      exchange: venue.name,
      market,
      dataset,
      ...(interval === undefined ? {} : { interval }),
      words: [...order.words],
      quote: [...(options.quote ?? [])],
      ...(options.shard === undefined ? {} : { shard: options.shard.text }),
      settings: one.settings,
      first: order.first === undefined ? null : dayText(order.first),
      last: order.last === undefined ? null : dayText(order.last),
      ...(order.isOfMonths ? { months: true } : {}),
      symbols: group.map(({ series }) => series.symbol),
    };
  });
}

/** The earliest first day of each series of the orders. */
function firstDays(orders: readonly Order[]): Map<string, number> {
  const firsts = new Map<string, number>();
  for (const order of orders) {
    const { market, dataset, interval, symbols } = order;
    for (const symbol of symbols) {
      const name = nameOf(market, dataset, interval, symbol);
      const day = firstDayOf(order, symbol) ?? -Infinity;
      firsts.set(name, Math.min(firsts.get(name) ?? Infinity, day));
    }
  }
  return firsts;
}

function nameOf(...parts: readonly (string | undefined)[]): string {
  return JSON.stringify(parts);
}
