/** The series of an order, and the days that it must have by now. */
import { firstDayOf, type Order } from '../order.js';
import { LATE_MS } from '../../model/absence-reasons.js';
import { dayOf, monthOf, monthStart, parseDay } from '../../model/calendar.js';
import type { Series, Settings } from '../../model/task.js';
import { cadencesOf } from '../../exchange/keys.js';
import type { Exchange } from '../../exchange/exchange.js';
import { findDataset, hasLongBars, type DatasetSpec } from '../../exchange/exchange-spec.js';
import type { DayRange } from './spans.js';

/**
 * Without `from`, the order begins with the first day of each series. `lookBack`: no run has found this day, so the day before the first one that the lake
 * has counts too, unless its absence is proven. `hasRest`: the order asks REST.
 */
export type OrderedDays = Pick<DayRange, 'to'> &
  Partial<DayRange> & { readonly lookBack?: 1; readonly hasRest?: true };

export function seriesOfOrder({ market, dataset, interval, symbols }: Order): Series[] {
  const layer = interval === undefined ? {} : { interval };
  return symbols.map((symbol) => ({ market, dataset, ...layer, symbol }));
}

/** The days up to the last one that must be published by now. */
export function orderedDays(order: Order, exchange: Exchange, nowMs: number): OrderedDays {
  const { market, dataset, interval, verb, settings, first, last, months } = order;
  const cadence = verb === 'vision' ? settings.cadence : undefined;
  const due = dueEnd(findDataset(exchange, market, dataset), { interval, cadence, exchange, nowMs });
  const published = months === undefined ? due : monthStart(monthOf(due));
  const end = Math.min(published, last === null ? Infinity : (parseDay(last) ?? 0) + 1);
  const from = first === null ? undefined : (parseDay(first) ?? 0);
  const ofRest = verb === 'metrics' ? ({ hasRest: true } as const) : {};
  return { ...(from === undefined ? {} : { from }), to: Math.max(end, from ?? 0), ...ofRest };
}

/** The days that the order asks for of one symbol. `days`: those of the order. */
export function daysOfSymbol(order: Order, days: OrderedDays, symbol: string): OrderedDays {
  const from = firstDayOf(order, symbol);
  return from === undefined ? { ...days, lookBack: 1 } : { ...days, from, to: Math.max(days.to, from) };
}

interface DueContext {
  readonly interval: string | undefined;
  /** Undefined for rows of REST. */
  readonly cadence: Settings['cadence'] | undefined;
  readonly exchange: Exchange;
  readonly nowMs: number;
}

/** The day after the last one that must be published by now. Bars above a day have daily objects only for some symbols. */
export function dueEnd(
  spec: DatasetSpec | undefined,
  { interval, cadence, exchange, nowMs }: DueContext,
): number {
  const isMonthly =
    cadence !== undefined &&
    spec !== undefined &&
    (hasLongBars(spec, interval) || !cadencesOf(spec, interval, cadence).includes('daily'));
  const due = dayOf(nowMs - LATE_MS[isMonthly ? 'monthly' : 'daily'], exchange);
  return isMonthly ? monthStart(monthOf(due)) : due;
}
