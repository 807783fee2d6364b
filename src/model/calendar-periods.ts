/** Periods of the calendar, for universes, and for bars of a week or a month. */
import { monthOf, monthStart } from './calendar.js';

/** A period of the calendar. A week begins on Monday. */
export type CalendarPeriod = 'day' | 'week' | 'month' | 'quarter' | 'year';

const MONTHS = { month: 1, quarter: 3, year: 12 } as const;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY = 4;

export function calendarStart(day: number, period: CalendarPeriod): number {
  if (period === 'day') return day;
  if (period === 'week') return day - ((((day - FIRST_MONDAY) % 7) + 7) % 7);
  const month = monthOf(day);
  return monthStart(month - (month % MONTHS[period]));
}

export function nextCalendarStart(day: number, period: CalendarPeriod): number {
  if (period === 'day') return day + 1;
  const start = calendarStart(day, period);
  return period === 'week' ? start + 7 : monthStart(monthOf(start) + MONTHS[period]);
}
