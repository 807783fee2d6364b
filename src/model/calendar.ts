/**
 * Days and months as integers: days since 1970-01-01, months as `year * 12 + (month - 1)`. The text of a day is a date. The
 * exchange decides at which time a day begins.
 */
import type { Cadence, Period } from './task.js';
import { DAY_MS } from './units.js';

/** The beginning of the days of an exchange: milliseconds after 00:00 UTC of their date; negative if before it. */
export interface DayStart {
  readonly dayStartMs: number;
}

export const UTC: DayStart = { dayStartMs: 0 };

export const dayOf = (epochMs: number, { dayStartMs }: DayStart): number =>
  Math.floor((epochMs - dayStartMs) / DAY_MS);

/** The first instant of a day, in epoch milliseconds. */
export const startOfDay = (day: number, { dayStartMs }: DayStart): number => day * DAY_MS + dayStartMs;

// Every line of a manifest needs days and their texts several times, and a lake has few different days, so they are calculated once.
const texts = new Map<number, string>();
const numbers = new Map<string, number>();
const starts = new Map<number, number>();
const periods = new Map<string, Period>();

/** `2024-02-29` */
export function dayText(day: number): string {
  const known = texts.get(day);
  if (known !== undefined) return known;
  const text = new Date(day * DAY_MS).toISOString().slice(0, 10);
  texts.set(day, text);
  return text;
}

/** `2024-02-29` → day number; undefined for any other form and for dates that do not exist. */
export function parseDay(text: string): number | undefined {
  const known = numbers.get(text);
  if (known !== undefined) return known;
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const day = dayOf(Date.parse(`${text}T00:00:00Z`), UTC);
  // For a date that does not exist, `Date.parse` gives NaN or a day of the next month.
  if (Number.isNaN(day) || dayText(day) !== text) return undefined;
  numbers.set(text, day);
  return day;
}

/** NaN for an infinite day. */
export function monthOf(day: number): number {
  if (!Number.isFinite(day)) return NaN;
  // A month of average length gives this month or a neighbour, and needs no `Date`.
  const about = 12 * 1970 + Math.floor(day / 30.436875);
  if (day < monthStart(about)) return about - 1;
  return day < monthStart(about + 1) ? about : about + 1;
}

export function monthStart(month: number): number {
  const known = starts.get(month);
  if (known !== undefined) return known;
  const start = dayOf(new Date(0).setUTCFullYear(0, month, 1), UTC);
  starts.set(month, start);
  return start;
}

/** `2024-02` */
export const monthText = (month: number): string => dayText(monthStart(month)).slice(0, 7);

export const dayPeriod = (day: number): Period => ({ cadence: 'daily', from: day, to: day + 1 });

export function monthPeriod(month: number): Period {
  return { cadence: 'monthly', from: monthStart(month), to: monthStart(month + 1) };
}

export function periodAt(cadence: Cadence, day: number): Period {
  return cadence === 'daily' ? dayPeriod(day) : monthPeriod(monthOf(day));
}

/** `2024-01-15` or `2024-01`, as in archive keys and file names. */
export function periodText(period: Period): string {
  const text = dayText(period.from);
  return period.cadence === 'daily' ? text : text.slice(0, 7);
}

/** The inverse of `periodText`; undefined when the text is no period of that cadence. */
export function parsePeriod(cadence: Cadence, text: string): Period | undefined {
  const known = periods.get(text);
  if (known?.cadence === cadence) return known;
  const day = parseDay(cadence === 'daily' ? text : `${text}-01`);
  const period = day === undefined ? undefined : periodAt(cadence, day);
  if (period !== undefined) periods.set(text, period);
  return period;
}

/** The days `[from, to)`. */
export function eachDay({ from, to }: Pick<Period, 'from' | 'to'>): number[] {
  const days: number[] = [];
  for (let day = from; day < to; day += 1) days.push(day);
  return days;
}

/** The days of the period that lie completely within one of the spans. Spans are ISO instants `[from, to)`. */
export function daysWithin(
  { from, to }: Period,
  spans: readonly (readonly [string, string])[] | undefined,
  dayStart: DayStart,
): number[] {
  return (spans ?? []).flatMap(([start, end]) => {
    const first = Math.ceil((Date.parse(start) - dayStart.dayStartMs) / DAY_MS);
    return eachDay({ from: Math.max(from, first), to: Math.min(to, dayOf(Date.parse(end), dayStart)) });
  });
}

// Periods of the calendar, for universes, and for bars of a week or a month.

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
