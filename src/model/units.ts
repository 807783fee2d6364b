/** Durations, sizes and counts: parsed from the command line, and formatted for people. */

export const SECOND_MS = 1000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const DAY_SECONDS = 86_400;
/** The latest time of a JavaScript Date. */
export const LATEST_DATE_MS = 8.64e15;

export const DURATION_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
};

/** Units of time in the spellings of other tools. A month is not a number of milliseconds. */
const TIME_WORDS: readonly (readonly [unit: string, words: RegExp])[] = [
  ['ms', /^(?:ms|msecs?|millis|milliseconds?)$/i],
  ['s', /^(?:s|secs?|seconds?)$/i],
  ['mo', /^(?:M|mo|mons?|months?)$/],
  ['m', /^(?:m|mins?|minutes?)$/i],
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

/** `500ms`, `1.5h`, `90 sec` or `2 weeks` → milliseconds. A bare number means seconds. Undefined for any other form. */
export function parseDurationMs(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const { count = 0, unit = '' } = timeWords(text) ?? {};
  const unitMs = unit === 'w' ? 7 * DAY_MS : DURATION_MS[unit];
  return unitMs === undefined ? undefined : count * unitMs;
}

/** The known interval of the same length: `5min` → `5m`, `60m` → `1h`, `1M` → `1mo`. Undefined without one. */
export function sameInterval(text: string, known: readonly string[]): string | undefined {
  const meant = lengthOf(/^[a-z]+$/i.test(text) ? `1${text}` : text);
  return meant === undefined ? undefined : known.find((one) => lengthOf(one) === meant);
}

/** The length of an interval as a key for comparison: `3600000`, `1w` or `1mo`. A week begins on a Monday, seven days on any day. */
function lengthOf(text: string): string | undefined {
  const { count, unit } = timeWords(text) ?? {};
  // MetaTrader's M1 is a minute, Binance's 1M a month.
  if (unit === undefined || /^M\d/.test(text)) return undefined;
  return unit === 'mo' || unit === 'w' ? `${count}${unit}` : String(parseDurationMs(text));
}

/** `1024`, `500MB`, `2 GiB`, `10MB/s` → bytes. A letter alone is binary, as for rclone and curl: `5G` is `5GiB`. Undefined for any other form. */
export function parseBytes(text: string): number | undefined {
  const [, number = '', letter = '', ending = ''] =
    /^(\d+(?:\.\d+)?)\s*(?:b|([kmgt])(b|ib)?)?(?:\/s)?$/i.exec(text) ?? [];
  const power = ['', 'k', 'm', 'g', 't'].indexOf(letter.toLowerCase());
  const base = ending.toLowerCase() === 'b' ? 1000 : 1024;
  return number === '' ? undefined : Math.floor(Number(number) * base ** power);
}

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
export const numberText = (number: number | string): string =>
  String(number).replaceAll(/\B(?=(?:\d{3}){1,9}$)/g, ',');

/** `2026-11-21 05:00:00`, in UTC. */
export const instantText = (ms: number): string => new Date(ms).toISOString().replace('T', ' ').slice(0, 19);

/** `3h 0m ago (2026-11-21 05:00 UTC)`. `atMs` and `nowMs` are epoch milliseconds. */
export function agoText(atMs: number, nowMs: number): string {
  const ageMs = Math.max(0, nowMs - atMs);
  const days = Math.floor(ageMs / DAY_MS);
  const age = days < 2 ? durationText(ageMs) : `${days} days`;
  return `${age} ago (${instantText(atMs).slice(0, 16)} UTC)`;
}
