/** Durations, sizes and counts: parsed from the command line, and formatted for people. */
import { DAY_MS } from './calendar.js';
import { DURATION_MS } from './parse-units.js';

/** The duration in its largest whole unit, as `parseDurationMs` takes it: `90s`, `1m`. */
export function durationValue(ms: number): string {
  const [unit = 'ms', length = 1] =
    Object.entries(DURATION_MS).findLast(([, unitMs]) => ms >= unitMs && ms % unitMs === 0) ?? [];
  return `${ms / length}${unit}`;
}

/** `250ms`, `12.5s`, `3m 20s`, `2h 5m` */
export function durationText(ms: number): string {
  if (Math.round(ms) < 1000) return `${Math.round(ms)}ms`;
  const tenths = Math.round(ms / 100);
  if (tenths < 1200) return `${tenths / 10}s`;
  const whole = Math.round(ms / 1000);
  const minutes = Math.floor(whole / 60);
  const seconds = whole % 60;
  if (minutes < 120) return seconds === 0 ? `${minutes}m` : `${minutes}m ${seconds}s`;
  return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
}

/** `512 B`, `1.5 kB`, `20 MB`: decimal units. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return unit === 0 ? `${value} B` : `${value.toFixed(value < 9.95 ? 1 : 0)} ${units[unit] ?? ''}`;
}

/** `1 day`, `2,000 days`, `3 series`. */
export function countText(number: number, what: string): string {
  const plural = what.endsWith('s') || number === 1 ? what : `${what}s`;
  return `${numberText(number)} ${plural}`;
}

/** `a, b, c and 12 more`: the first texts of a list, and the number of the others. */
export function listText(texts: Iterable<string>, most = 5): string {
  const all = [...texts];
  const more = all.length > most ? ` and ${numberText(all.length - most)} more` : '';
  return all.slice(0, most).join(', ') + more;
}

/** A whole number, or its digits, as `1,234,567`. Without Intl, because its first use loads tables and delays the start of every run. */
export function numberText(number: number | string): string {
  return String(number).replaceAll(/\B(?=(?:\d{3}){1,9}$)/g, ',');
}

/** `2026-11-21 05:00:00`, in UTC. */
export function instantText(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').slice(0, 19);
}

/** `3h 0m ago (2026-11-21 05:00 UTC)`. `at` and `nowMs` are epoch milliseconds. */
export function agoText(atMs: number, nowMs: number): string {
  const ageMs = Math.max(0, nowMs - atMs);
  const days = Math.floor(ageMs / DAY_MS);
  const age = days < 2 ? durationText(ageMs) : `${days} days`;
  return `${age} ago (${instantText(atMs).slice(0, 16)} UTC)`;
}
