/**
 * One parser per kind of value: text in, typed value out. A parser takes every form with a single meaning, and throws a usage error with
 * a valid value for others.
 */
import { usage } from '../../model/errors.js';
import type { ExchangeSpec } from '../../exchange/exchange-spec.js';
import { didYouMean } from '../../text/did-you-mean.js';
import type { BucketLimit } from '../../exchange/names.js';
import { durationValue, parseBytes, parseDurationMs } from '../../model/units.js';

/** A list of words in a file (`@FILE`) or on standard input (`-`). */
export type WordList = { readonly file: string } | 'stdin';
export type ReadList = (list: WordList) => Promise<string>;

/** The exchange and the lists of a command. Without an exchange, names are those of the flag table. */
export interface ParseContext {
  readonly exchange?: Pick<ExchangeSpec, 'markets'> | undefined;
  readonly readList?: ReadList | undefined;
}

/** `where` is the name under which the user gave the value: `--days`, `CRYPTODL_DAYS` or a config key. */
export type Parse<T> = (text: string, where: string, context?: ParseContext) => T;

export const invalid = (value: string, where: string, what: string, ...valid: readonly string[]): Error =>
  usage(`${where}: "${value}" is not ${what}`, `for example ${valid.join(' or ')}`);

/** The parser of texts that `read` understands. The others are not `what`. */
export function parser<T>(
  what: string,
  valid: readonly string[],
  read: (text: string) => T | undefined,
): Parse<T> {
  return (value, where) => {
    const meant = read(value);
    if (meant !== undefined) return meant;
    throw invalid(value, where, what, ...valid);
  };
}

/** A name without what differs between tools: case, blanks, hyphens and underscores. */
export const folded = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, '');

/** One of the values, in any spelling, or by one of its other names. */
export function choice<const T extends string>(
  values: readonly T[],
  others: Readonly<Partial<Record<string, readonly string[]>>> = {},
): Parse<T> {
  return (text, where) => {
    const word = folded(text);
    const found =
      values.find((value) => value === text) ??
      values.find((value) => folded(value) === word) ??
      values.find((value) => others[value]?.some((other) => folded(other) === word));
    if (found !== undefined) return found;
    throw usage(
      `${where}: "${text}" is not one of ${values.join(', ')}`,
      didYouMean(text, values) ?? `for example ${values.slice(0, 2).join(' or ')}`,
    );
  };
}

/** A name that becomes a part of keys in Redis. */
export function keyName(example: string): Parse<string> {
  const what = 'a name of up to 64 letters, digits, dots, hyphens and underscores';
  return parser(what, [example], (text) => (/^[\w.-]{1,64}$/.test(text) ? text : undefined));
}

/** Any text that is not empty and has no NUL character. */
export const text: Parse<string> = (value, where) => {
  if (value === '') throw usage(`${where} is empty`, `give ${where} a value or leave it out`);
  if (value.includes('\0')) throw usage(`${where} holds a NUL character`, 'write it without this character');
  return value;
};

export const flag = parser('true or false', ['true'], (value) => {
  const word = value.toLowerCase();
  if (['1', 'true', 'yes', 'on'].includes(word)) return true;
  return ['0', 'false', 'no', 'off'].includes(word) ? false : undefined;
});

/** The number if it is in the range; undefined for any other. */
export const within = (least: number, most: number, number = Number.NaN): number | undefined =>
  number >= least && number <= most ? number : undefined;

/** `7` or `1.5`. */
const plainNumber = (value: string): number | undefined =>
  /^\d+(\.\d+)?$/.test(value) ? Number(value) : undefined;

/** A whole number, with or without its `unit`: `7`, `7d`, `7 days`. `example`: a usual number, for messages. */
export function integer(least: number, unit?: string, example = 7): Parse<number> {
  const valid = [String(Math.max(least, example))];
  return parser(`a whole number of at least ${least}`, valid, (value) => {
    const [, digits, word = ''] = /^(\d+)(?:\.0+)?\s*([a-z]*)$/i.exec(value) ?? [];
    const isUnit = word === '' || (unit !== undefined && `${unit}s`.startsWith(word.toLowerCase()));
    return isUnit ? within(least, Number.MAX_SAFE_INTEGER, Number(digits)) : undefined;
  });
}

export const port = parser('a port from 0 to 65535', ['8090'], (value) =>
  within(0, 65_535, /^\d{1,5}$/.test(value) ? Number(value) : undefined),
);

export const factor = parser('a factor from 1 to 100', ['2'], (value) => within(1, 100, plainNumber(value)));

/** `99`, `99.9` or `99.9%` → the number. */
export const percent = parser('a percentage from 0 to 100', ['99.9'], (value) =>
  within(0, 100, plainNumber(value.replace(/ ?%$/, ''))),
);

/** `500ms`, `30s` or `5 min` → milliseconds. A bare number means seconds. */
export const duration = parser('a duration', ['500ms', '30s', '5m'], parseDurationMs);

/** A duration of at least 1ms, because a timeout of 0 would end every attempt at its start. */
export const timeout = parser('a duration of at least 1ms', ['30s'], (value) =>
  within(1, Infinity, parseDurationMs(value)),
);

/** `500MB` or `2GiB` → bytes. */
export const bytes = parser('a size in bytes', ['500MB', '2GiB'], parseBytes);

/** Bytes per second, at least 1000, because a run with a lower limit would seem to hang. */
export const byteRate = parser('at least 1kB per second', ['10MB'], (value) =>
  within(1000, Infinity, parseBytes(value)),
);

export interface Limit {
  readonly bucket: string;
  readonly permits: number;
  readonly windowMs: number;
}

/**
 * `archive=100/s` or `futuresData=800/5m`, at most the limit of the exchange. If the exchange counts in windows of its own, the rate is
 * that of such a window: `futuresData=100/m` is `futuresData=500/5m`.
 */
export function limit(known: Readonly<Record<string, BucketLimit>>): Parse<Limit> {
  return (value, where) => {
    const [, name = '', amount = '', number = '', unit = ''] =
      /^\s*(\w+)\s*[=:]\s*(\d+)\s*\/\s*(?:(\d+)\s*)?([a-z]+)$/i.exec(value) ?? [];
    const givenMs = parseDurationMs(`${number === '' ? '1' : number}${unit}`) ?? 0;
    if (!(Number(amount) >= 1 && givenMs >= 1))
      throw invalid(value, where, 'a limit of a bucket', 'archive=100/s');
    const bucket = choice(Object.keys(known))(name, where);
    const most = known[bucket];
    if (most === undefined) throw new RangeError(bucket);
    const windowMs = most.isWindow ? most.windowMs : givenMs;
    const permits = Math.max(1, Math.floor((Number(amount) / givenMs) * windowMs));
    if (permits / windowMs > most.permits / most.windowMs)
      throw usage(
        `${where}: ${value} is above the limit of ${bucket}`,
        `at most ${bucket}=${most.permits}/${windowText(most.windowMs)}`,
      );
    return { bucket, permits, windowMs };
  };
}

/** `s`, `m` or `5m`. */
const windowText = (windowMs: number): string => durationValue(windowMs).replace(/^1(?=[a-z])/, '');
