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

/** Units of time in the spelling of other tools. A month is not a number of milliseconds. */
const TIME_WORDS: readonly (readonly [unit: string, words: RegExp])[] = [
  ['ms', /^(?:ms|msecs?|milliseconds?)$/i],
  ['s', /^(?:s|secs?|seconds?)$/i],
  ['mo', /^(?:M|MN|mn|mo|mons?|months?)$/],
  ['m', /^(?:m|mins?|minutes?|T)$/i],
  ['h', /^(?:h|hrs?|hours?)$/i],
  ['d', /^(?:d|days?)$/i],
  ['w', /^(?:w|wks?|weeks?)$/i],
];

/** `5min`, `5 minutes` or `m5` → 5 and `m`; undefined for any other form. */
function timeWords(text: string): { readonly count: number; readonly unit: string } | undefined {
  const [, before = '', number = '', after = ''] = /^([a-z]*)(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text) ?? [];
  if (number === '' || (before === '') === (after === '')) return undefined;
  const unit = TIME_WORDS.find(([, words]) => words.test(before + after))?.[0];
  return unit === undefined ? undefined : { count: Number(number), unit };
}

/** The duration that a text means: `5min` → `5m`, `2 weeks` → `14d`; a bare number means seconds. */
export function durationLike(text: string): string | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return `${text}s`;
  const { count = 0, unit } = timeWords(text) ?? {};
  if (unit === undefined || unit === 'mo') return undefined;
  return unit === 'w' ? `${count * 7}d` : `${count}${unit}`;
}

/** The known interval with the length of a text in the spelling of other tools: `5min`, `m5`, `60m` or `1day`. */
export function sameInterval(text: string, known: readonly string[]): string | undefined {
  const meant = lengthOf(/^[a-z]+$/i.test(text) ? `1${text}` : text);
  return meant === undefined ? undefined : known.find((one) => lengthOf(one) === meant);
}

const UNIT_WORDS: Readonly<Record<string, string>> = {
  s: 'second',
  m: 'minute',
  h: 'hour',
  d: 'day',
  w: 'week',
  mo: 'month',
};

/** `15m` → `15 minutes`; a text of another form stays. */
export function intervalText(interval: string): string {
  const { count = 0, unit = '' } = timeWords(interval) ?? {};
  const word = UNIT_WORDS[unit];
  return word === undefined ? interval : countText(count, word);
}

/** The next shorter and the next longer known interval. Empty for a text that is not an interval. */
export function nearestIntervals(text: string, known: readonly string[]): string[] {
  const meant = approximateMs(text);
  if (meant === undefined) return [];
  const sorted = known
    .map((name) => ({ name, ms: approximateMs(name) ?? 0 }))
    .toSorted((one, other) => one.ms - other.ms);
  const shorter = sorted.findLast(({ ms }) => ms < meant);
  const longer = sorted.find(({ ms }) => ms > meant);
  return [shorter, longer].flatMap((one) => one?.name ?? []);
}

/** A month counts as 30 days. */
function approximateMs(text: string): number | undefined {
  const { count = 0, unit } = timeWords(text) ?? {};
  if (unit === undefined) return undefined;
  return unit === 'mo' ? count * 30 * DAY_MS : parseDurationMs(durationLike(`${count}${unit}`) ?? '');
}

/** The length of an interval as a key for comparison: `3600000` or `1mo`. */
function lengthOf(text: string): string | undefined {
  const { count = 0, unit } = timeWords(text) ?? {};
  if (unit === undefined) return undefined;
  if (unit === 'mo') return `${count}mo`;
  return String(parseDurationMs(durationLike(`${count}${unit}`) ?? ''));
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

/** The size that a text means: `5G` → `5GiB`, as rclone and curl count, and `10MB/s` → `10MB`. */
export function bytesLike(text: string): string | undefined {
  const [, number = '', letter = '', rest = ''] =
    /^(\d+(?:\.\d+)?)\s*([kmgt])(i?b)?(?:\/s|ps)?$/i.exec(text) ?? [];
  if (number === '') return undefined;
  return `${number}${letter.toUpperCase()}${rest === '' ? 'iB' : rest.toLowerCase() === 'ib' ? 'iB' : 'B'}`;
}

/** The duration in its largest whole unit, as `parseDurationMs` takes it: `90s`, `1m`. */
export function durationValue(ms: number): string {
  const [unit = 'ms', length = 1] =
    Object.entries(DURATION_MS).findLast(([, unitMs]) => ms >= unitMs && ms % unitMs === 0) ?? [];
  return `${ms / length}${unit}`;
}

/** The size in its largest whole unit, as `parseBytes` takes it: `250MB`, `2GiB`, `1001`. */
export function bytesValue(bytes: number): string {
  const units = Object.entries(SIZE_UNITS).filter(([, size]) => bytes >= size && bytes % size === 0);
  const [unit = '', size = 1] = units.toSorted(([, one], [, other]) => other - one)[0] ?? [];
  return `${bytes / size}${unit}`;
}

const SIZE_UNITS = {
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

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
