/**
 * One parser per kind of value: text in, typed value out. A parser takes every form with a single meaning, and throws a usage error with
 * a valid value for others.
 */
import { usage } from '../../model/errors.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { didYouMean } from '../../text/did-you-mean.js';

export interface ExchangeNames {
  readonly markets: readonly string[];
  readonly intervals: readonly string[];
  readonly datasets: readonly DatasetSpec[];
}

/** `where` is the name under which the user gave the value: `--days`, `CRYPTODL_DAYS` or a config key. */
export type Parse<T> = (text: string, where: string, exchange?: ExchangeNames) => T;

export function invalid(value: string, where: string, what: string, ...valid: readonly string[]): Error {
  return usage(`${where}: "${value}" is not ${what}`, `for example ${valid.join(' or ')}`);
}

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
export function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[\s_-]/g, '');
}

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
    throw usage(`${where}: "${text}" is not one of ${values.join(', ')}`, didYouMean(text, values));
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
  if (value.includes('\0')) throw usage(`${where} holds a NUL character`);
  return value;
};

export const flag = parser('true or false', ['true'], (value) => {
  const word = value.toLowerCase();
  if (['1', 'true', 'yes', 'on'].includes(word)) return true;
  return ['0', 'false', 'no', 'off'].includes(word) ? false : undefined;
});
