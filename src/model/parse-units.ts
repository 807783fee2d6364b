/** Durations, intervals and sizes, parsed from the command line. */
import { DAY_MS } from './calendar.js';

export const DURATION_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
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
