/** The periods of a universe: each begins at 00:00 of its first day, and uses days before it only. */
import { calendarStart, dayOf, dayText, nextCalendarStart } from '../model/calendar.js';
import type { CalendarPeriod, DayStart } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { countText } from '../model/units.js';
import type { Options } from '../options/flags.js';

/** First days of the given and the possible periods. */
export interface GivenDays {
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/** The days of --from and --to. Throws a usage error if they are in the wrong order. */
export function givenDays(
  { from, to }: Pick<Options, 'from' | 'to'>,
  nowMs: number,
  dayStart: DayStart,
): GivenDays {
  const today = dayOf(nowMs, dayStart);
  const first = from === undefined ? undefined : from.kind === 'word' ? today - from.daysAgo : from.first;
  const last = to === undefined ? undefined : to.kind === 'word' ? today - Math.max(1, to.daysAgo) : to.last;
  if (from?.kind === 'days' && to?.kind === 'days' && from.first > to.last) {
    throw usage(`--from ${dayText(from.first)} is after --to ${dayText(to.last)}`, 'exchange the two dates');
  }
  return { from: first, to: last };
}

export interface PeriodFacts extends GivenDays {
  readonly every: CalendarPeriod;
  /** Days before a period that it uses. */
  readonly lookback: number;
  /** The first and the last day with rows in the lake. */
  readonly held: { readonly first: number; readonly last: number };
  /** `./data um klines`, for messages. */
  readonly what: string;
}

/**
 * The first days of all periods, in order. The last period is at most the one that begins on the day after the last held day. Throws usage
 * errors for a range without periods.
 */
export function periodStarts({ every, lookback, held, from, to, what }: PeriodFacts): number[] {
  const latest = calendarStart(held.last + 1, every);
  const lowest = held.first + lookback;
  const full = calendarStart(lowest, every);
  const first =
    from === undefined ? (full < lowest ? nextCalendarStart(full, every) : full) : calendarStart(from, every);
  const last = to === undefined ? latest : Math.min(calendarStart(to, every), latest);
  if (first > last || last <= held.first)
    throw usage(
      `${what} has the days ${dayText(held.first)} … ${dayText(held.last)}, and no ${every} of the range begins after ${countText(lookback, 'day')} of them`,
      'change --from or --to, give a shorter --window or --min-age, or add --fetch',
    );
  const starts: number[] = [];
  for (let start = first; start <= last; start = nextCalendarStart(start, every)) starts.push(start);
  return starts;
}
