/** The days on which bars of several days open: no row is expected of a time in which none opens. */
import { LONG_BAR_DAYS } from '../convert/columns.js';
import type { HeldSpan } from '../lake/held-objects.js';
import { dayOf, nextCalendarStart } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';

/**
 * Whether a bar opens on one of the days `[from, to)`. Weeks begin on Monday; the rows of the series tell on which days bars of three days open. True
 * where they do not tell, and where objects begin with a bar of the period before.
 */
export function barOpenings(
  held: readonly HeldSpan[],
  interval: string | undefined,
  dayStart: DayStart,
): (from: number, to: number) => boolean {
  const days = LONG_BAR_DAYS[interval ?? ''];
  if (days === undefined) return () => true;
  const opened = held.map(({ from, facts: { first = '' } }) => ({
    from,
    day: dayOf(Date.parse(first), dayStart),
  }));
  if (opened.some(({ from, day }) => day < from)) return () => true;
  if (interval === '1w') return (from, to) => nextCalendarStart(from - 1, 'week') < to;
  if (interval === '1mo') return (from, to) => nextCalendarStart(from - 1, 'month') < to;
  const one = opened.find(({ day }) => !Number.isNaN(day));
  return (from, to) => one === undefined || from + ((((one.day - from) % days) + days) % days) < to;
}
