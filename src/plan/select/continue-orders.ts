/** The orders of a run: what it asks for, and the first days of the orders that it continues. */
import { join } from 'node:path';
import { seriesFolder } from '../../lake/layout.js';
import { hasManifest } from '../../lake/manifest-place.js';
import { readOrders } from '../../lake/orders.js';
import { joinOrders } from '../../lake/change-orders.js';
import { firstDayOf, isOrderedBy, type AskedOrder, type Order, type OrderTerms } from '../../lake/order.js';
import type { OrderChange } from '../../lake/change-orders.js';
import { areOfFormat } from '../../lake/settings.js';
import { readHeld } from '../../lake/catalogue/read-series.js';
import { grouped } from '../../model/by-name.js';
import { dayOf, dayText } from '../../model/calendar.js';
import { FORMATS, type Format, type Series } from '../../model/task.js';
import { listText } from '../../model/units.js';
import type { Options } from '../options/flags.js';
import type { SymbolPatterns } from '../options/symbols.js';
import { isCheckDay } from '../ranges-to-plan.js';
import type { SelectedSeries } from '../series-request.js';
import type { Range } from './date-range.js';
import type { LakeContext, RunSelection } from './selection.js';

/** A range that ends at a date is closed. One that moves with the current day is open. */
export const orderTerms = (
  { names, globs, exclusions }: SymbolPatterns,
  { to, months }: Options<'to' | 'months'>,
  range: Range,
): OrderTerms => ({
  words: [...names, ...globs, ...exclusions.map((word) => `!${word}`)],
  firstDay: range.from,
  lastDay: to?.kind === 'days' ? to.lastDay : undefined,
  isOfMonths: months !== undefined,
});

/**
 * The selection with the first days of its open orders, and the orders to write before the first request for data. A run with `--exact`, and a run
 * with an end, keep to their range. Rejects with errors of the system.
 */
export async function continueOrders(
  context: LakeContext,
  selection: RunSelection,
): Promise<{ readonly selection: RunSelection; readonly orders: OrderChange }> {
  const { paths, exchange, options, observer, nowMs } = context;
  if (options.revisions === 'only') return { selection, orders: () => [] };
  const { orders: held, unreadable } = await readOrders(paths);
  if (unreadable.length > 0) observer.warn(`no orders, left out: ${listText(unreadable, 3)}`);
  const formatsOf = orderedFormats(held.filter((order) => order.exchange === exchange.name));
  const formatted: SelectedSeries[] = [];
  for (const request of selection.requests)
    formatted.push(await withKnownFormat(context, request, formatsOf));
  const asked = askedOrders(context, { ...selection, requests: formatted });
  const joined = (known: readonly Order[]): ReturnType<typeof joinOrders> =>
    joinOrders(known, asked, new Date(nowMs).toISOString());
  const { grown = () => [] } = selection;
  const keepsRange = options.exact || options.to !== undefined;
  const firsts = firstDays(keepsRange ? [] : joined(held).orders);
  const requests = formatted.map((request) => withFirstDay(request, firsts, dayOf(nowMs, exchange)));
  return {
    selection: { ...selection, requests },
    orders: (known) => [...joined(known).changed, ...grown(known)],
  };
}

/** A run without `--format` keeps the format of the orders of a series; without an order, that of the held files, as its plan does. */
async function withKnownFormat(
  { paths: { root }, exchange }: LakeContext,
  request: SelectedSeries,
  orderedOf: (series: Series) => readonly Format[],
): Promise<SelectedSeries> {
  const { series, settings, given } = request;
  if (given === undefined || given.has('format')) return request;
  const ordered = orderedOf(series);
  const isHeld = ordered.length === 0 && (await hasManifest(join(root, seriesFolder(exchange.name, series))));
  // The plan reports a manifest that cannot be read.
  const held = isHeld ? await readHeld(root, exchange, series).catch(() => undefined) : undefined;
  const formats = held === undefined ? ordered : FORMATS.filter((one) => held[one].size > 0);
  const format = formats.find((one) => areOfFormat(given, one));
  if (format === undefined || formats.includes(settings.format)) return request;
  return { ...request, settings: { ...settings, format } };
}

function orderedFormats(orders: readonly Order[]): (series: Series) => readonly Format[] {
  const known = orders.map((order) => ({ isOwn: isOrderedBy(order), format: order.settings.format }));
  return (series) => known.filter(({ isOwn }) => isOwn(series)).map(({ format }) => format);
}

function withFirstDay(
  request: SelectedSeries,
  firsts: ReadonlyMap<string, First>,
  today: number,
): SelectedSeries {
  const { market, dataset, interval, symbol } = request.series;
  const first = firsts.get(nameOf(market, dataset, interval, symbol));
  if (first === undefined || request.exact === true) return request;
  const { rest } = request;
  // REST keeps a window of some days.
  if (rest?.mode === 'only') return { ...request, sinceDay: Math.max(first.day, rest.from) };
  // Each run looks for an unknown first day. The archive may get days before a known one: they are looked for less and less often, without end.
  const isKnown = Number.isFinite(first.day);
  const isExtended = first.isOfSeries && (!isKnown || isCheckDay(first.day, today));
  const before = isExtended ? [{ from: -Infinity, to: isKnown ? first.day : today }] : [];
  return { ...request, sinceDay: first.day, ranges: [...before, ...request.ranges] };
}

/** The orders of a selection: one for each dataset and format. None for a run that looks for revisions only. */
export function askedOrders(
  { exchange, options }: Pick<LakeContext, 'exchange' | 'options'>,
  { verb, order, requests }: Pick<RunSelection, 'verb' | 'order' | 'requests'>,
): AskedOrder[] {
  if (order === undefined || options.revisions === 'only' || (verb !== 'vision' && verb !== 'metrics'))
    return [];
  const layers = grouped(requests, ({ series: { market, dataset, interval }, settings }) =>
    nameOf(market, dataset, interval, settings.format),
  );
  return [...layers.values()].flatMap((group) => {
    const [one] = group;
    if (one === undefined) return [];
    const { market, dataset, interval } = one.series;
    return {
      ...(one.rest?.mode === 'only' ? { reach: dayText(one.rest.from) } : {}),
      verb,
      exchange: exchange.name,
      market,
      dataset,
      ...(interval === undefined ? {} : { interval }),
      words: [...order.words],
      quote: [...options.quote],
      ...(options.shard === undefined ? {} : { shard: options.shard.text }),
      settings: one.settings,
      first: order.firstDay === undefined ? null : dayText(order.firstDay),
      last: order.lastDay === undefined ? null : dayText(order.lastDay),
      ...(order.isOfMonths ? { months: true } : {}),
      ...(options.join === undefined ? {} : { join: options.join }),
      symbols: group.map(({ series }) => series.symbol),
    };
  });
}

/** `isOfSeries`: an order begins with the first day of the series, whichever it is. */
interface First {
  readonly day: number;
  readonly isOfSeries: boolean;
}

/** The earliest first day of each series of the open orders. */
function firstDays(orders: readonly Order[]): Map<string, First> {
  const firsts = new Map<string, First>();
  for (const order of orders.filter(({ last }) => last === null)) {
    const { market, dataset, interval, symbols } = order;
    for (const symbol of symbols) {
      const name = nameOf(market, dataset, interval, symbol);
      const known = firsts.get(name);
      firsts.set(name, {
        day: Math.min(known?.day ?? Infinity, firstDayOf(order, symbol) ?? -Infinity),
        isOfSeries: order.first === null || known?.isOfSeries === true,
      });
    }
  }
  return firsts;
}

const nameOf = (...parts: readonly (string | undefined)[]): string => JSON.stringify(parts);
