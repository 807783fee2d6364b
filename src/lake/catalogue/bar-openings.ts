/** The days on which bars of several days open: no row is expected of a time in which none opens. */
import type { HeldSpan } from '../held-objects.js';
import { calendarStart, dayOf, type DayStart } from '../../model/calendar.js';
import { LONG_BAR_DAYS } from '../../convert/expected-rows.js';
export type BarOpenings = ReturnType<typeof barOpenings>;

/**
 * `opensIn`: whether a bar opens on one of the days `[from, to)`. True where the rows of the series do not tell, and where objects begin with a bar of the period before.
 * `firstOf`: the first day of which rows are expected if the symbol is traded from this day on: that on which the bar with this day opens, and for shorter bars
 * the next day, because the rows of the first day may begin at any hour. `endOfPause`: the day from which on bars open again if the symbol is traded from this day on.
 */
export function barOpenings(held: readonly HeldSpan[], interval: string | undefined, dayStart: DayStart) {
  const days = LONG_BAR_DAYS[interval ?? ''];
  if (days === undefined)
    return { opensIn: () => true, firstOf: (day: number) => day + 1, endOfPause: (day: number) => day };
  const opened = held.map(({ facts: { first = '' } }) => dayOf(Date.parse(first), dayStart));
  const one = opened.find((day) => !Number.isNaN(day));
  const firstOf = (day: number): number => {
    if (interval === '1w' || interval === '1mo')
      return calendarStart(day, interval === '1w' ? 'week' : 'month');
    return one === undefined ? day + 1 : day - ((((day - one) % days) + days) % days);
  };
  const isOfPeriodBefore = held.some(({ from }, index) => (opened[index] ?? from) < from);
  const opensIn = (from: number, to: number): boolean =>
    isOfPeriodBefore || firstOf(Math.ceil(to) - 1) >= from;
  return { opensIn, firstOf, endOfPause: (day: number) => Math.min(day, firstOf(day)) };
}
