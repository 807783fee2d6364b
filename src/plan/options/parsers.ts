/**
 * One parser per kind of value: text in, typed value out. A parser takes every form with a single meaning, and throws a usage error with
 * a valid value for others.
 */
import { usage } from '../../model/errors.js';
import { DAY_MS, parseDay } from '../../model/calendar.js';
import { parseBytes, parseDurationMs, sameInterval } from '../../model/parse-units.js';
import { ALL, MARKET_ALIASES, readDatasetWords } from '../../exchange/names.js';
import { isArchived, isMetric } from '../../exchange/exchange-spec.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { didYouMean } from '../../text/did-you-mean.js';
import type { CalendarPeriod } from '../../model/calendar-periods.js';

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

/** The number if it is in the range; undefined for any other. */
function within(least: number, most: number, number = Number.NaN): number | undefined {
  return number >= least && number <= most ? number : undefined;
}

/** `7` or `1.5`. */
function plainNumber(text: string): number | undefined {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}

/** The number of objects in flight: fixed, or adapted up to a maximum. */
export type Concurrency =
  { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };

/** A name without what differs between tools: case, blanks, hyphens and underscores. */
function folded(name: string): string {
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

/** A market of the exchange of the run by its name or by one of other tools (`usdm` is `um`), or `all`. */
export function market(known: readonly string[]): Parse<string> {
  return (value, where, exchange) =>
    choice([...(exchange?.markets ?? known), ALL], MARKET_ALIASES)(value, where);
}

/** A name that becomes a part of keys in Redis. */
export function keyName(example: string): Parse<string> {
  const what = 'a name of up to 64 letters, digits, dots, hyphens and underscores';
  return parser(what, [example], (text) => (/^[\w.-]{1,64}$/.test(text) ? text : undefined));
}

/** Whether a source has a dataset. */
export const HAS = { archive: isArchived, rest: isMetric, any: () => true } as const;

/**
 * A dataset by its name, in any spelling, or by one of its other names: `agg_trades`, `ohlcv`. `from`: where the verb takes its datasets
 * from; another name of two datasets means the one of there. Other texts stay, because markets have different datasets.
 */
export function dataset(from: keyof typeof HAS): Parse<string> {
  return (value, where, exchange) => {
    const word = folded(text(value, where));
    const isMeant = ({ name, aliases }: Pick<DatasetSpec, 'name' | 'aliases'>): boolean =>
      [name, ...aliases].some((other) => folded(other) === word);
    if (exchange === undefined) return readDatasetWords().find(isMeant)?.name ?? value;
    // Statistics that only REST has stand after the datasets of the archive.
    const specs = from === 'rest' ? exchange.datasets.toReversed() : exchange.datasets;
    const taken = specs.filter(HAS[from]);
    const found = specs.find(({ name }) => name === value) ?? taken.find(isMeant) ?? specs.find(isMeant);
    return found?.name ?? value;
  };
}

/**
 * An interval in the spelling of the exchange: `60min`, `1hour` and `1H` are `1h`, and `1M` is a month as for the exchange. Other texts
 * stay, because datasets have different intervals.
 */
export function interval(known: readonly string[]): Parse<string> {
  return (value, where, exchange) => {
    const word = text(value, where);
    const intervals = exchange?.intervals ?? known;
    return intervals.includes(word) ? word : (sameInterval(word, intervals) ?? word);
  };
}

/** Any text that is not empty and has no NUL character. */
export const text: Parse<string> = (value, where) => {
  if (value === '') throw usage(`${where} is empty`, `give ${where} a value or leave it out`);
  if (value.includes('\0')) throw usage(`${where} holds a NUL character`);
  return value;
};

export const asset: Parse<string> = (value, where) => text(value, where).toUpperCase();

export const flag = parser('true or false', ['true'], (value) => {
  const word = value.toLowerCase();
  if (['1', 'true', 'yes', 'on'].includes(word)) return true;
  return ['0', 'false', 'no', 'off'].includes(word) ? false : undefined;
});

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

export const EVERY = ['day', '12h', '8h', '6h', '4h', '3h', '2h', '1h'] as const;

export type Every = { readonly text: string } & (
  | { readonly kind: 'hours'; readonly hours: number }
  | { readonly kind: 'calendar'; readonly period: CalendarPeriod }
);

export const every: Parse<Every> = (value, where) => {
  const word = choice(EVERY)(value, where);
  return { kind: 'hours', text: word, hours: word === 'day' ? 24 : Number.parseInt(word, 10) };
};

/** `08:05`, `8:30` or `08:30Z` → minutes after midnight; undefined for any other text. */
function clockMinutes(value: string): number | undefined {
  const [, hours = '', minutes = ''] = /^(\d{1,2}):(\d{2})Z?$/i.exec(value) ?? [];
  return hours !== '' && Number(hours) < 24 && Number(minutes) < 60
    ? Number(hours) * 60 + Number(minutes)
    : undefined;
}

/** A time of day, UTC → minutes after midnight. */
export const timeOfDay = parser('a time of day (HH:MM, UTC)', ['08:05'], clockMinutes);

/** Epoch milliseconds from 2001 on. */
const EPOCH_MS = /^\d{13}$/;
const INSTANT = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(Z|[+-]\d{2}:\d{2})?)?$/i;

/** An ISO 8601 instant or date, in UTC without another zone, or epoch milliseconds → epoch milliseconds. */
export const instant = parser('an instant in UTC', ['2026-11-21T08:00:00Z'], (value) => {
  const [, date = '', time = '00:00', zone = 'Z'] = INSTANT.exec(value) ?? [];
  if (parseDay(date) !== undefined) return within(DAY_MS, Infinity, Date.parse(`${date}T${time}${zone}`));
  return EPOCH_MS.test(value) ? Number(value) : undefined;
});

/** The end of a wait. A time of day is in UTC. */
export type Until =
  | { readonly kind: 'time'; readonly sinceMidnightMs: number }
  | { readonly kind: 'instant'; readonly epochMs: number }
  | { readonly kind: 'duration'; readonly durationMs: number };

/** A time of day, an instant or a duration. A bare number could be minutes or seconds, so it is refused. */
export const until: Parse<Until> = (value, where) => {
  const minutes = clockMinutes(value);
  if (minutes !== undefined) return { kind: 'time', sinceMidnightMs: minutes * 60_000 };
  const ms = /^[1-9]\d*$/.test(value) ? undefined : parseDurationMs(value);
  if (ms !== undefined) return { kind: 'duration', durationMs: ms };
  if (value.includes('-')) return { kind: 'instant', epochMs: instant(value, where) };
  const what = 'a time of day in UTC, an instant or a duration';
  throw invalid(value, where, what, '08:30', '2026-11-21T08:30:00Z', '90m');
};

/** The maximum of `--concurrency auto`. */
export const MOST_AT_ONCE = 128;

/** `50`, `auto` or `auto:64`. */
export const concurrency = parser<Concurrency>(
  'a number from 1 to 1024, auto or auto:MAX',
  ['50', 'auto:64'],
  (value) => {
    const [, auto, max = String(MOST_AT_ONCE), fixed] = /^(?:(auto)(?::(\d+))?|(\d+))$/.exec(value) ?? [];
    const number = within(1, 1024, Number(fixed ?? max));
    if (number === undefined || (auto ?? fixed) === undefined) return undefined;
    return fixed === undefined ? { kind: 'auto', max: number } : { kind: 'fixed', limit: number };
  },
);

/** A sample of the periods of each series: `--sample 5`, or with the seed of an earlier draw `--sample 5:1f2e3d4c`. */
export interface Sample {
  /** Periods of each series, at most. */
  readonly count: number;
  /** Undefined: the command draws one. */
  readonly seed: string | undefined;
}

export const sample = parser<Sample>(
  'a number of days or months, or N:SEED',
  ['5', '5:1f2e3d4c'],
  (value) => {
    const [, count, seed] = /^([1-9]\d{0,8})(?::(\w{1,64}))?$/.exec(value) ?? [];
    return count === undefined ? undefined : { count: Number(count), seed };
  },
);
