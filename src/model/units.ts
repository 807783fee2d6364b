/** Durations, sizes and counts: parsed from the command line, and formatted for people. */
import { DAY_MS } from './calendar.js';

const DURATION_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `500ms`, `30s`, `1.5h`, `0` → milliseconds; undefined for any other form. */
export function parseDurationMs(text: string): number | undefined {
  if (text === '0') return 0;
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  const unit = DURATION_MS[match?.[2] ?? ''];
  return match === null || unit === undefined ? undefined : Number(match[1]) * unit;
}

const SIZE_BYTES: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
  TIB: 2 ** 40,
};

/** `1024`, `500MB`, `2GiB` → bytes; undefined for any other form. */
export function parseBytes(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
  const unit = SIZE_BYTES[(match?.[2] ?? '').toUpperCase()];
  return match === null || unit === undefined ? undefined : Math.floor(Number(match[1]) * unit);
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

/** A whole number as `1,234,567`. Without Intl, because its first use loads tables and delays the start of every run. */
export function numberText(number: number): string {
  return String(number).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `3h 0m ago (2026-11-21 05:00 UTC)`. `at` and `nowMs` are epoch milliseconds. */
export function agoText(at: number, nowMs: number): string {
  const ageMs = Math.max(0, nowMs - at);
  const days = Math.floor(ageMs / DAY_MS);
  const age = days < 2 ? durationText(ageMs) : `${days} days`;
  return `${age} ago (${new Date(at).toISOString().replace('T', ' ').slice(0, 16)} UTC)`;
}
