/**
 * Days and months as integers: days since 1970-01-01, months as `year * 12 + (month - 1)`. The text of a day is a date. The
 * exchange decides at which time a day begins.
 */
import type { Cadence, Period } from './task.js';

export const DAY_MS = 86_400_000;

/** The beginning of the days of an exchange: milliseconds after 00:00 UTC of their date; negative if before it. */
export interface DayStart {
  readonly dayStartMs: number;
}

/** The days of UTC. */
export const UTC: DayStart = { dayStartMs: 0 };

/** The day that contains an instant. */
export function dayOf(epochMs: number, { dayStartMs }: DayStart): number {
  return Math.floor((epochMs - dayStartMs) / DAY_MS);
}

/** The first instant of a day, in epoch milliseconds. */
export function startOfDay(day: number, { dayStartMs }: DayStart): number {
  return day * DAY_MS + dayStartMs;
}

// Every line of a manifest needs these functions several times, so they calculate without `Date`. Years begin with March:
// the leap day is then the last day of a year.

const YEARS = 400;
/** The days of 400 years, after which the calendar repeats. */
const CYCLE_DAYS = 146_097;
/** Days from 0000-03-01 to 1970-01-01. */
const EPOCH_DAYS = 719_468;
/** 9999-12-31. Later days and those before 1970 have other texts. */
const LAST_DAY = 2_932_896;

interface CalendarDate {
  readonly year: number;
  /** From 1. */
  readonly month: number;
  readonly date: number;
}

/** The date of a whole day from 1970 on. */
function dateOf(day: number): CalendarDate {
  const shifted = day + EPOCH_DAYS;
  const cycle = Math.floor(shifted / CYCLE_DAYS);
  const inCycle = shifted - cycle * CYCLE_DAYS;
  const leapDays =
    Math.floor(inCycle / 1460) - Math.floor(inCycle / 36_524) + Math.floor(inCycle / (CYCLE_DAYS - 1));
  const yearInCycle = Math.floor((inCycle - leapDays) / 365);
  const inYear = inCycle - (365 * yearInCycle + Math.floor(yearInCycle / 4) - Math.floor(yearInCycle / 100));
  // March to July, and August to December, have 153 days each.
  const fromMarch = Math.floor((5 * inYear + 2) / 153);
  const date = inYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  return { year: cycle * YEARS + yearInCycle + (month < 3 ? 1 : 0), month, date };
}

function isPlainDay(day: number): boolean {
  return Number.isInteger(day) && day >= 0 && day <= LAST_DAY;
}

/** `2024-02-29` */
export function dayText(day: number): string {
  if (!isPlainDay(day)) return new Date(day * DAY_MS).toISOString().slice(0, 10);
  const { year, month, date } = dateOf(day);
  return `${year}-${month < 10 ? '0' : ''}${month}-${date < 10 ? '0' : ''}${date}`;
}

/** `2024-02-29` → day number; undefined for any other form and for dates that do not exist. */
export function parseDay(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const [year, month, date] = [Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8))];
  if (month < 1 || month > 12 || date < 1) return undefined;
  const marchYear = month < 3 ? year - 1 : year;
  const fromMarch = month < 3 ? month + 9 : month - 3;
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / YEARS);
  const inYear = Math.floor((153 * fromMarch + 2) / 5) + date - 1;
  const day = 365 * marchYear + leapDays + inYear - EPOCH_DAYS;
  return date <= 28 || isDate(day, date) ? day : undefined;
}

/** Whether the day has this date; a date that does not exist rolls over into another month. */
function isDate(day: number, date: number): boolean {
  return isPlainDay(day) ? dateOf(day).date === date : new Date(day * DAY_MS).getUTCDate() === date;
}

export function monthOf(day: number): number {
  if (isPlainDay(day)) {
    const { year, month } = dateOf(day);
    return year * 12 + month - 1;
  }
  const date = new Date(day * DAY_MS);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

export function monthStart(month: number): number {
  return dayOf(Date.UTC(Math.floor(month / 12), month % 12, 1), UTC);
}

/** `2024-02` */
export function monthText(month: number): string {
  return dayText(monthStart(month)).slice(0, 7);
}

export function dayPeriod(day: number): Period {
  return { cadence: 'daily', from: day, to: day + 1 };
}

export function monthPeriod(month: number): Period {
  return { cadence: 'monthly', from: monthStart(month), to: monthStart(month + 1) };
}

/** `2024-01-15` or `2024-01`, as in archive keys and file names. */
export function periodText(period: Period): string {
  const text = dayText(period.from);
  return period.cadence === 'daily' ? text : text.slice(0, 7);
}

/** The inverse of `periodText`; undefined when the text is no period of that cadence. */
export function parsePeriod(cadence: Cadence, text: string): Period | undefined {
  const day = parseDay(cadence === 'daily' ? text : `${text}-01`);
  if (day === undefined) return undefined;
  return cadence === 'daily' ? dayPeriod(day) : monthPeriod(monthOf(day));
}

// Periods of the calendar, for lists that change with each of them.

/** A period of the calendar. A week begins on Monday. */
export type CalendarPeriod = 'day' | 'week' | 'month' | 'quarter' | 'year';

const MONTHS = { month: 1, quarter: 3, year: 12 } as const;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY = 4;

/** The first day of the period that contains a day. */
export function calendarStart(day: number, period: CalendarPeriod): number {
  if (period === 'day') return day;
  if (period === 'week') return day - ((((day - FIRST_MONDAY) % 7) + 7) % 7);
  const month = monthOf(day);
  return monthStart(month - (month % MONTHS[period]));
}

/** The first day of the period after the one that contains a day. */
export function nextCalendarStart(day: number, period: CalendarPeriod): number {
  if (period === 'day') return day + 1;
  const start = calendarStart(day, period);
  return period === 'week' ? start + 7 : monthStart(monthOf(start) + MONTHS[period]);
}

/** The days of the period that lie completely within one of the spans. Spans are ISO instants `[from, to)`. */
export function daysWithin(
  { from, to }: Period,
  spans: readonly (readonly [string, string])[] | undefined,
  dayStart: DayStart,
): number[] {
  const days: number[] = [];
  for (const [start, end] of spans ?? []) {
    const first = Math.max(from, Math.ceil((Date.parse(start) - dayStart.dayStartMs) / DAY_MS));
    const last = Math.min(to, dayOf(Date.parse(end), dayStart));
    for (let day = first; day < last; day += 1) days.push(day);
  }
  return days;
}
