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

/** `2024-02-29` */
export function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** `2024-02-29` → day number; undefined for any other form and for dates that do not exist. */
export function parseDay(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const [year, month, date] = [Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8))];
  // Called for every line of a manifest, so the date is not formatted again for comparison.
  const found = new Date(0);
  found.setUTCFullYear(year, month - 1, date);
  // A date that does not exist rolls over into another month.
  return found.getUTCMonth() === month - 1 && date > 0 ? dayOf(found.getTime(), UTC) : undefined;
}

export function monthOf(day: number): number {
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
