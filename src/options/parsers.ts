/** One parser per kind of value: text in, typed value out, or a usage error that names the expected form. */
import { usage } from '../model/errors.js';
import { DAY_MS, parseDay } from '../model/calendar.js';
import { bytesLike, durationLike, parseBytes, parseDurationMs, sameInterval } from '../model/units.js';
import { ALL, MARKET_ALIASES } from '../source/names.js';
import { didYouMean, nearest } from '../text/did-you-mean.js';
import { OTHER_MARKETS } from './words/other-words.js';
import type { OtherWords } from './words/other-words.js';
import type { CalendarPeriod } from '../model/calendar.js';

/** Names of the exchange of the run, where it is not the default one. */
export interface ExchangeNames {
  readonly markets: readonly string[];
  readonly intervals: readonly string[];
}

/** `where` is the name under which the user gave the value: `--days`, `CRYPTODL_DAYS` or a config key. */
export type Parse<T> = (text: string, where: string, exchange?: ExchangeNames) => T;

/** An option with its value in the syntax of its source: `--days 7`, `CRYPTODL_DAYS=7`, `days: 7`. */
export function given(where: string, value: string): string {
  if (where.startsWith('--')) return `${where} ${value}`;
  const key = where.split(': ').at(-1) ?? where;
  return key === where ? `${where}=${value}` : `${key}: ${value}`;
}

/** The number of objects in flight: fixed, or adapted up to a maximum. */
export type Concurrency =
  { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };

export function choice<const T extends string>(
  values: readonly T[],
  others: OtherWords<NoInfer<T>> = {},
): Parse<T> {
  return (text, where) => {
    const found = values.find((value) => value === text);
    if (found !== undefined) return found;
    const word = text.toLowerCase();
    const other = Object.hasOwn(others, word) ? others[word] : undefined;
    const near = other === undefined ? nearest(text, values) : other.value;
    throw usage(
      `${where}: "${text}" is not one of ${values.join(', ')}`,
      other?.note ?? didYouMean(text, values),
      near === undefined ? undefined : { value: near },
    );
  };
}

/** A market of the exchange of the run by its name or by one of other tools (`usdm` is `um`), or `all`, in any case. */
export function market(known: readonly string[]): Parse<string> {
  return (value, where, { markets } = { markets: known, intervals: [] }) => {
    const word = value.toLowerCase();
    const values = [...markets, ALL];
    const meant = [word, MARKET_ALIASES[word] ?? ''].find((name) => values.includes(name));
    return meant ?? choice(values, markets.includes('spot') ? OTHER_MARKETS : {})(value, where);
  };
}

/**
 * An interval in the spelling of the exchange: `60min`, `1hour` and `1H` are `1h`. Other texts stay, because datasets have different
 * intervals. `1M` stays too: it means a month or, mistyped, a minute.
 */
export function interval(known: readonly string[]): Parse<string> {
  return (value, where, { intervals } = { markets: [], intervals: known }) => {
    const word = text(value, where);
    if (intervals.includes(word) || !/^\d+(?!M[Nn]?$|mn$|T$)[A-Za-z]+$/.test(word)) return word;
    const same = sameInterval(word, intervals) ?? word;
    // The bars of a week begin on a Monday, those of seven days on any day.
    return same.endsWith('w') && !/w/i.test(word) ? word : same;
  };
}

/** Any text that is not empty and has no NUL character. */
export const text: Parse<string> = (value, where) => {
  if (value === '') throw usage(`${where} is empty`, `give ${where} a value or leave it out`);
  if (value.includes('\0')) throw usage(`${where} holds a NUL character`);
  return value;
};

/** The value of a switch in the environment or in a file. */
export const flag: Parse<boolean> = (value, where) => {
  if (['1', 'true', 'yes', 'on'].includes(value)) return true;
  if (['0', 'false', 'no', 'off'].includes(value)) return false;
  throw usage(`${where}: "${value}" is neither true nor false`, given(where, 'true'));
};

/** A whole number. With a `unit` like `day`, the error corrects `7days`, `7d` and `-7` to 7. `example`: a usual number, for messages. */
export function integer(least: number, unit?: string, example = 7): Parse<number> {
  const like =
    unit === undefined
      ? /^(\d+)(?:\.0+)?$/
      : new RegExp(`^-?(\\d+)(?:\\.0+)?\\s*(?:${unit}s?|${unit.slice(0, 1)})?$`, 'i');
  return (value, where) => {
    const number = Number(value);
    if (/^\d+$/.test(value) && Number.isSafeInteger(number) && number >= least) return number;
    const meant = like.exec(value.replaceAll(/(?<=\d)[_' ](?=\d{3})/g, ''))?.[1] ?? '';
    const isMeant = Number.isSafeInteger(Number(meant)) && meant !== '' && Number(meant) >= least;
    throw usage(
      `${where}: "${value}" is not a whole number of at least ${least}`,
      given(where, isMeant ? meant : String(Math.max(least, example))),
      isMeant ? { value: meant } : undefined,
    );
  };
}

const SPAN = /^(\d*)\s*(?:(w|wks?|weeks?)|(mo|mons?|months?)|(y|yrs?|years?))$/i;

/** A whole number of days. The error corrects weeks. A month means 30 days or a complete month, so it is not corrected. */
export const days: Parse<number> = (value, where) => {
  const [, number = '', week, month, year] = SPAN.exec(value) ?? [];
  const count = number === '' ? 1 : Number(number);
  if (count < 1 || (week ?? month ?? year) === undefined) return integer(1, 'day')(value, where);
  const [inDays, inMonths] =
    week !== undefined ? [count * 7] : year !== undefined ? [count * 365, count * 12] : [count * 30, count];
  const whereMonths = where.replace(/days$/, 'months').replace(/DAYS$/, 'MONTHS');
  throw usage(
    `${where}: "${value}" is not a whole number of at least 1`,
    given(where, String(inDays)) +
      (inMonths === undefined
        ? ''
        : `, or ${given(whereMonths, String(inMonths))} for ${inMonths === 1 ? 'the last complete month' : 'complete months'}`),
    inMonths === undefined ? { value: String(inDays) } : undefined,
  );
};

/** A port from 0 to 65535. */
export const port: Parse<number> = (value, where) => {
  if (/^\d{1,5}$/.test(value) && Number(value) <= 65_535) return Number(value);
  throw usage(`${where}: "${value}" is not a port from 0 to 65535`, given(where, '8090'));
};

/** A number from 1 to 100, for example `1.5`. */
export const factor: Parse<number> = (value, where) => {
  const number = Number(value);
  if (/^\d+(\.\d+)?$/.test(value) && number >= 1 && number <= 100) return number;
  throw usage(`${where}: "${value}" is not a factor from 1 to 100`, given(where, '2'));
};

/** `99`, `99.9` or `99.9%` → the number. */
export const percent: Parse<number> = (value, where) => {
  const match = /^(\d+(?:\.\d+)?)\s*%?$/.exec(value);
  const number = Number(match?.[1]);
  if (match !== null && number <= 100) return number;
  throw usage(`${where}: "${value}" is not a percentage from 0 to 100`, given(where, '99.9'));
};

/** `500ms`, `30s` or `5m` → milliseconds. */
export const duration: Parse<number> = (value, where) => {
  const ms = parseDurationMs(value);
  if (ms !== undefined) return ms;
  const meant = durationLike(value);
  throw usage(
    `${where}: "${value}" is not a duration`,
    `${given(where, '500ms')}, ${given(where, '30s')} or ${given(where, '5m')}`,
    meant === undefined ? undefined : { value: meant },
  );
};

/** A duration of at least 1ms, because a timeout of 0 would end every attempt at its start. */
export const timeout: Parse<number> = (value, where) => {
  const ms = duration(value, where);
  if (ms >= 1) return ms;
  throw usage(`${where}: "${value}" is below the minimum of 1ms`, given(where, '30s'));
};

/** `500MB` or `2GiB` → bytes. */
export const bytes: Parse<number> = (value, where) => {
  const size = parseBytes(value);
  if (size !== undefined) return size;
  const meant = bytesLike(value);
  throw usage(
    `${where}: "${value}" is not a size`,
    meant === undefined ? `${given(where, '500MB')} or ${given(where, '2GiB')}` : `did you mean ${meant}?`,
    meant === undefined ? undefined : { value: meant },
  );
};

/** Bytes per second, at least 1000, because a run with a lower limit would seem to hang. */
export const byteRate: Parse<number> = (value, where) => {
  const rate = bytes(value, where);
  if (rate >= 1000) return rate;
  throw usage(
    `${where}: "${value}" is below the minimum of 1kB per second`,
    `${given(where, '10MB')}, or leave it out for no limit`,
  );
};

export const EVERY = ['day', '12h', '8h', '6h', '4h', '3h', '2h', '1h'] as const;

/** How often something runs. */
export type Every = { readonly text: string } & (
  | { readonly kind: 'hours'; readonly hours: number }
  | { readonly kind: 'calendar'; readonly period: CalendarPeriod }
);

export const every: Parse<Every> = (value, where) => {
  const hours = (parseDurationMs(durationLike(value) ?? '') ?? 0) / 3_600_000;
  const meant = EVERY.find((each) => each === (hours === 24 ? 'day' : `${hours}h`));
  if (meant !== undefined && meant !== value)
    throw usage(`${where}: "${value}" is not one of ${EVERY.join(', ')}`, `did you mean ${meant}?`, {
      value: meant,
    });
  const word = choice(EVERY, {
    daily: { value: 'day', note: 'did you mean day?' },
    hourly: { value: '1h', note: 'did you mean 1h?' },
  })(value, where);
  return { kind: 'hours', text: word, hours: word === 'day' ? 24 : Number.parseInt(word, 10) };
};

/** `08:05`, UTC → minutes after midnight. */
export const timeOfDay: Parse<number> = (value, where) => {
  const [, hours = '', minutes = ''] = /^(\d{1,2}):?(\d{2})?$/.exec(value) ?? [];
  const [hour, minute] = [Number(hours), Number(minutes)];
  const isTime = hours !== '' && hour < 24 && minute < 60;
  if (isTime && /^\d{2}:\d{2}$/.test(value)) return hour * 60 + minute;
  const meant = isTime ? `${hours.padStart(2, '0')}:${minutes.padStart(2, '0')}` : undefined;
  throw usage(
    `${where}: "${value}" is not a time of day (HH:MM, UTC)`,
    given(where, meant ?? '08:05'),
    meant === undefined ? undefined : { value: meant },
  );
};

const INSTANT = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z)?$/;

/** ISO 8601 instant or date → epoch milliseconds. */
export const instant: Parse<number> = (value, where) => {
  const withZone = INSTANT.test(value);
  const isDate = parseDay(value.slice(0, 10)) !== undefined;
  const epochMs = withZone && isDate ? Date.parse(value) : Number.NaN;
  if (!Number.isNaN(epochMs) && epochMs >= DAY_MS) return epochMs;
  const meant = `${value.replace(' ', 'T')}Z`;
  throw usage(
    `${where}: "${value}" is not an instant in UTC`,
    given(where, '2026-11-21T08:00:00Z'),
    isDate && INSTANT.test(meant) && !Number.isNaN(Date.parse(meant)) ? { value: meant } : undefined,
  );
};

/** The end of a wait. A time of day is in UTC. */
export type Until = { readonly text: string } & (
  | { readonly kind: 'time'; readonly sinceMidnightMs: number }
  | { readonly kind: 'instant'; readonly epochMs: number }
  | { readonly kind: 'duration'; readonly durationMs: number }
);

export const until: Parse<Until> = (value, where) => {
  const ms = parseDurationMs(value);
  if (ms !== undefined) return { kind: 'duration', text: value, durationMs: ms };
  const [, hours = '', minutes = ''] = /^(\d{2}):(\d{2})$/.exec(value) ?? [];
  if (hours !== '' && Number(hours) < 24 && Number(minutes) < 60)
    return { kind: 'time', text: value, sinceMidnightMs: (Number(hours) * 60 + Number(minutes)) * 60_000 };
  if (value.includes('-')) return { kind: 'instant', text: value, epochMs: instant(value, where) };
  const meant = timeLike(value);
  throw usage(
    `${where}: "${value}" is not a time of day in UTC, an instant or a duration`,
    `${given(where, '08:30')}, ${given(where, '2026-11-21T08:30:00Z')} or ${given(where, '90m')}`,
    meant === undefined ? undefined : { value: meant },
  );
};

/** The time that a text like `8:30`, `0830`, `08.30`, `08:30Z`, `08:30:00` or `5min` means. Another bare number means minutes. */
function timeLike(value: string): string | undefined {
  const [, hours = '', minutes = ''] =
    /^(\d{1,2})[:.h]?(\d{2})(?::\d{2})?(?: ?(?:Z|UTC))?$/i.exec(value) ?? [];
  if (hours !== '' && Number(hours) < 24 && Number(minutes) < 60)
    return `${hours.padStart(2, '0')}:${minutes}`;
  return /^\d+$/.test(value) ? `${value}m` : durationLike(value);
}

/** `50`, `auto` or `auto:64`. */
export const concurrency: Parse<Concurrency> = (value, where) => {
  const match = /^(?:auto(?::(\d+))?|(\d+))$/.exec(value);
  const fixed = Number(match?.[2] ?? Number.NaN);
  if (fixed >= 1 && fixed <= 1024) return { kind: 'fixed', limit: fixed };
  const max = Number(match?.[1] ?? 128);
  if (match !== null && match[2] === undefined && max >= 1 && max <= 1024) return { kind: 'auto', max };
  throw usage(
    `${where}: "${value}" is not a number from 1 to 1024, auto or auto:MAX`,
    `${given(where, '50')} or ${given(where, 'auto:64')}`,
    Number(value) > 1024 ? { value: '1024' } : undefined,
  );
};
