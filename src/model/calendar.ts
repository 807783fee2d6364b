/** UTC days and months as integers: a day counts from 1970-01-01, a month is `year * 12 + month0`. */
import type { Cadence, Period } from './task.js';

export const DAY_MS = 86_400_000;

export function dayOf(epochMs: number): number {
  return Math.floor(epochMs / DAY_MS);
}

export function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** `2024-02-29` → day number; undefined for anything that is not a real date in this form. */
export function parseDay(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const [year, month, date] = [Number(text.slice(0, 4)), Number(text.slice(5, 7)), Number(text.slice(8))];
  // Every line of a large manifest comes by here: no text is made to compare with.
  const found = new Date(0);
  found.setUTCFullYear(year, month - 1, date);
  // What is no date rolls over into another month.
  return found.getUTCMonth() === month - 1 && date > 0 ? dayOf(found.getTime()) : undefined;
}

export function monthOf(day: number): number {
  const date = new Date(day * DAY_MS);
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

export function monthStart(month: number): number {
  return dayOf(Date.UTC(Math.floor(month / 12), month % 12, 1));
}

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

/** The inverse of `periodText`; undefined when the text is not a period of that cadence. */
export function parsePeriod(cadence: Cadence, text: string): Period | undefined {
  const day = parseDay(cadence === 'daily' ? text : `${text}-01`);
  if (day === undefined) return undefined;
  return cadence === 'daily' ? dayPeriod(day) : monthPeriod(monthOf(day));
}

/** Whole days of the period within spans of ISO instants `[from, to)`. */
export function daysWithin(
  { from, to }: Period,
  spans: readonly (readonly [string, string])[] = [],
): number[] {
  const days: number[] = [];
  for (const [start, end] of spans) {
    const first = Math.max(from, Math.ceil(Date.parse(start) / DAY_MS));
    const last = Math.min(to, Math.floor(Date.parse(end) / DAY_MS));
    for (let day = first; day < last; day += 1) days.push(day);
  }
  return days;
}
