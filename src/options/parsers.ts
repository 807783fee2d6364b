/** One parser per kind of value: text in, typed value out, or a usage error that names the expected form. */
import { usage } from '../model/errors.js';
import { DAY_MS, parseDay } from '../model/calendar.js';
import { parseBytes, parseDurationMs } from '../model/units.js';
import { ALL, MARKET_ALIASES } from '../source/names.js';
import { isProxy } from './environment.js';
import { didYouMean, nearest } from '../text/did-you-mean.js';

/**
 * `where` is the name under which the user gave the value: `--days`, `CRYPTODL_DAYS` or a config key. `markets`: those of the
 * exchange of the run, where it is not the default one.
 */
export type Parse<T> = (text: string, where: string, markets?: readonly string[]) => T;

/** An option with its value in the syntax of its source: `--days 7`, `CRYPTODL_DAYS=7`, `days: 7`. */
export function given(where: string, value: string): string {
  if (where.startsWith('--')) return `${where} ${value}`;
  const key = where.split(': ').at(-1) ?? where;
  return key === where ? `${where}=${value}` : `${key}: ${value}`;
}

/** The number of objects in flight: fixed, or adapted up to a maximum. */
export type Concurrency =
  { readonly kind: 'fixed'; readonly limit: number } | { readonly kind: 'auto'; readonly max: number };

export function choice<const T extends string>(values: readonly T[]): Parse<T> {
  return (text, where) => {
    const found = values.find((value) => value === text);
    if (found !== undefined) return found;
    const near = nearest(text, values);
    throw usage(`${where}: "${text}" is not one of ${values.join(', ')}`, didYouMean(text, values), {
      value: near ?? values[0] ?? '',
    });
  };
}

/** A market of the exchange of the run, or `all`. */
export function market(known: readonly string[]): Parse<string> {
  return (value, where, markets = known) => {
    const values = [...markets, ALL];
    const meant = MARKET_ALIASES[value.toLowerCase()];
    if (values.includes(value) || meant === undefined || !values.includes(meant))
      return choice(values)(value, where);
    throw usage(`${where}: "${value}" is not one of ${values.join(', ')}`, `did you mean ${meant}?`, {
      value: meant,
    });
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

export function integer(least: number): Parse<number> {
  return (value, where) => {
    const number = Number(value);
    if (/^\d+$/.test(value) && Number.isSafeInteger(number) && number >= least) return number;
    throw usage(
      `${where}: "${value}" is not a whole number of at least ${least}`,
      given(where, String(Math.max(least, 7))),
      { value: String(Math.max(least, 7)) },
    );
  };
}

/** A port from 0 to 65535. */
export const port: Parse<number> = (value, where) => {
  if (/^\d{1,5}$/.test(value) && Number(value) <= 65_535) return Number(value);
  throw usage(`${where}: "${value}" is not a port from 0 to 65535`, given(where, '8090'), { value: '8090' });
};

/** A number from 1 to 100, for example `1.5`. */
export const factor: Parse<number> = (value, where) => {
  const number = Number(value);
  if (/^\d+(\.\d+)?$/.test(value) && number >= 1 && number <= 100) return number;
  throw usage(`${where}: "${value}" is not a factor from 1 to 100`, given(where, '2'), { value: '2' });
};

/** `99`, `99.9` or `99.9%` → the number. */
export const percent: Parse<number> = (value, where) => {
  const match = /^(\d+(?:\.\d+)?)\s*%?$/.exec(value);
  const number = Number(match?.[1]);
  if (match !== null && number <= 100) return number;
  throw usage(`${where}: "${value}" is not a percentage from 0 to 100`, given(where, '99.9'), {
    value: '99.9',
  });
};

/** `500ms`, `30s` or `5m` → milliseconds. */
export const duration: Parse<number> = (value, where) => {
  const ms = parseDurationMs(value);
  if (ms !== undefined) return ms;
  throw usage(
    `${where}: "${value}" is not a duration`,
    `${given(where, '500ms')}, ${given(where, '30s')} or ${given(where, '5m')}`,
    {
      value: /^\d+$/.test(value) ? `${value}s` : '30s',
    },
  );
};

/** A duration of at least 1ms, because a timeout of 0 would end every attempt at its start. */
export const timeout: Parse<number> = (value, where) => {
  const ms = duration(value, where);
  if (ms >= 1) return ms;
  throw usage(`${where}: "${value}" is below the minimum of 1ms`, given(where, '30s'), { value: '30s' });
};

/** `500MB` or `2GiB` → bytes. */
export const bytes: Parse<number> = (value, where) => {
  const size = parseBytes(value);
  if (size !== undefined) return size;
  throw usage(`${where}: "${value}" is not a size`, `${given(where, '500MB')} or ${given(where, '2GiB')}`, {
    value: '2GiB',
  });
};

/** Bytes per second, at least 1000, because a run with a lower limit would seem to hang. */
export const byteRate: Parse<number> = (value, where) => {
  const rate = bytes(value, where);
  if (rate >= 1000) return rate;
  throw usage(
    `${where}: "${value}" is below the minimum of 1kB per second`,
    `${given(where, '10MB')}, or leave it out for no limit`,
    { value: '10MB' },
  );
};

/** A bare UTC date → day number. */
export const day: Parse<number> = (value, where) => {
  const number = parseDay(value);
  if (number !== undefined) return number;
  const meant = dateLike(value);
  throw usage(`${where}: "${value}" is not a date`, given(where, meant ?? '2024-01-31'), {
    value: meant ?? '2024-01-31',
  });
};

/** The date that a text like `2024-1-5`, `2024/01/05`, `20240105`, `2024-01-05T00:00:00Z` or `2024-01` means. An ambiguous order of day and month is not corrected. */
function dateLike(value: string): string | undefined {
  const match = /^(\d{4})[-/.]?(\d{1,2})(?:[-/.]?(\d{1,2}))?(?:[T ].*)?$/.exec(value);
  if (match === null) return undefined;
  const [, year = '', month = '', date = '1'] = match;
  const inMonth = `${year}-${month.padStart(2, '0')}-`;
  const written = `${inMonth}${date.padStart(2, '0')}`;
  if (parseDay(written) !== undefined) return written;
  // A day after the end of its month, like 2024-02-30, means the last day.
  return Number(date) > 31
    ? undefined
    : [30, 29, 28].map((last) => `${inMonth}${last}`).find((end) => parseDay(end));
}

export const EVERY = ['day', '12h', '8h', '6h', '4h', '3h', '2h', '1h'] as const;

/** `day` or `6h` → hours. */
export const everyHours: Parse<number> = (value, where) => {
  const every = choice(EVERY)(value, where);
  return every === 'day' ? 24 : Number.parseInt(every, 10);
};

/** `08:05`, UTC → minutes after midnight. */
export const timeOfDay: Parse<number> = (value, where) => {
  const [, hours = '', minutes = ''] = /^(\d{1,2}):?(\d{2})?$/.exec(value) ?? [];
  const [hour, minute] = [Number(hours), Number(minutes)];
  const isTime = hours !== '' && hour < 24 && minute < 60;
  if (isTime && /^\d{2}:\d{2}$/.test(value)) return hour * 60 + minute;
  const meant = isTime ? `${hours.padStart(2, '0')}:${minutes.padStart(2, '0')}` : '08:05';
  throw usage(`${where}: "${value}" is not a time of day (HH:MM, UTC)`, given(where, meant), {
    value: meant,
  });
};

/** ISO 8601 instant or date → epoch milliseconds. */
export const instant: Parse<number> = (value, where) => {
  const withZone = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z)?$/.test(value);
  const isDate = parseDay(value.slice(0, 10)) !== undefined;
  const epochMs = withZone && isDate ? Date.parse(value) : Number.NaN;
  if (!Number.isNaN(epochMs) && epochMs >= DAY_MS) return epochMs;
  throw usage(`${where}: "${value}" is not an instant in UTC`, given(where, '2026-11-21T08:00:00Z'), {
    value: '2026-11-21T08:00:00Z',
  });
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
  throw usage(
    `${where}: "${value}" is not a time of day in UTC, an instant or a duration`,
    `${given(where, '08:30')}, ${given(where, '2026-11-21T08:30:00Z')} or ${given(where, '90m')}`,
    { value: timeLike(value) },
  );
};

/** The time that a text like `8:30`, `0830`, `08.30`, `08:30Z` or `08:30:00` means. Another bare number means minutes. */
function timeLike(value: string): string {
  const [, hours = '', minutes = ''] =
    /^(\d{1,2})[:.h]?(\d{2})(?::\d{2})?(?: ?(?:Z|UTC))?$/i.exec(value) ?? [];
  if (hours !== '' && Number(hours) < 24 && Number(minutes) < 60)
    return `${hours.padStart(2, '0')}:${minutes}`;
  return /^\d+$/.test(value) ? `${value}m` : '08:30';
}

/** An http(s) address that may have a query. */
export const pingUrl: Parse<string> = (value, where) => {
  refuseUserInfo(value, where);
  const isAddress = URL.canParse(value) && ['http:', 'https:'].includes(new URL(value).protocol);
  if (isAddress && new URL(value).hash === '') return value;
  const meant = `https://${value}`;
  throw usage(
    `${where}: "${value}" is not an http(s) address`,
    given(where, 'https://hc-ping.com/your-uuid'),
    !value.includes('://') && URL.canParse(meant) ? { value: meant } : undefined,
  );
};

/** An http(s) address without query → the address without a slash at its end. */
export const url: Parse<string> = (value, where) => {
  refuseUserInfo(value, where);
  if (URL.canParse(value)) {
    const parsed = new URL(value);
    if (['http:', 'https:'].includes(parsed.protocol) && parsed.search === '' && parsed.hash === '') {
      return value.replace(/\/+$/, '');
    }
  }
  throw usage(`${where}: "${value}" is not an http(s) address`, given(where, 'http://127.0.0.1:8090'), {
    value:
      URL.canParse(`https://${value}`) && !value.includes('://')
        ? `https://${value}`
        : 'http://127.0.0.1:8090',
  });
};

/** Throws a usage error for an address with user name or password, which only --proxy can have. The message does not contain them. */
function refuseUserInfo(value: string, where: string): void {
  const address = URL.canParse(value) ? new URL(value) : undefined;
  const isHttp = address !== undefined && ['http:', 'https:'].includes(address.protocol);
  if (!value.includes('@') || (isHttp && address.username + address.password === '')) return;
  const host = isHttp ? address.host + address.pathname.replace(/\/+$/, '') : value.replace(/^.*@/s, '');
  const meant = `${isHttp ? address.protocol : 'https:'}//${host}`;
  throw usage(`${where} holds a user name or a password; only --proxy may have them`, given(where, meant), {
    value: meant,
  });
}

/** An address, possibly with user and password, or `none`. The error does not contain the value, because of the password. */
export const proxy: Parse<string> = (value, where) => {
  if (value === 'none' || isProxy(value)) return value;
  throw usage(`${where} is not the address of a proxy`, given(where, 'http://127.0.0.1:3128'), {
    value: 'http://127.0.0.1:3128',
  });
};

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
    { value: Number(value) > 1024 ? '1024' : 'auto' },
  );
};
