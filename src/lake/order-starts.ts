/** The days from which the symbols of an order are asked for. */
import { dayText, parseDay } from '../model/calendar.js';
import type { Order } from './order.js';

/** The first day that the order asks for of a symbol; undefined: the first day of the series, which is not known. */
export function firstDayOf(
  { first, starts = {} }: Pick<Order, 'first' | 'starts'>,
  symbol: string,
): number | undefined {
  const asked = Object.hasOwn(starts, symbol) ? starts[symbol] : first;
  return parseDay(asked ?? '');
}

/** The order with the days from which these symbols are asked for. `reach`: the first day that REST has now, if only it has their rows. */
export function withStarts(
  order: Order,
  symbols: readonly string[],
  reach: string | undefined,
  before?: Order,
): Order {
  if (reach === undefined && order.first === null) return order;
  const own = new Set(symbols);
  const starts = new Map(Object.entries(order.starts ?? {}).filter(([symbol]) => !own.has(symbol)));
  for (const symbol of own) {
    if (reach === undefined) break;
    const known = before?.symbols.includes(symbol) === true ? firstDayOf(before, symbol) : undefined;
    const start = known !== undefined && dayText(known) < reach ? dayText(known) : reach;
    if (start > (order.first ?? '')) starts.set(symbol, start);
  }
  const { starts: _, ...rest } = order;
  return starts.size === 0 ? rest : { ...rest, starts: Object.fromEntries(starts) };
}
