/** Parsers for days and times. The days of `--from` and `--to` are those of the exchange, all times are UTC. */
import { monthOf, monthStart, parseDay, type CalendarPeriod } from '../../model/calendar.js';
import { within, choice, invalid, parser, type Parse } from './parsers.js';
import { DAY_MS, MINUTE_MS, parseDurationMs } from '../../model/units.js';

/** A date as given. The clock of the run decides which day a word means. */
export type DateOption =
  | { readonly kind: 'days'; readonly firstDay: number; readonly lastDay: number }
  | { readonly kind: 'word'; readonly daysAgo: number };

const WORDS: Readonly<Record<string, number>> = { yesterday: 1, today: 0, now: 0 };

export const date = parser('a date', ['2024-01-31', '2024-01', '2024', 'yesterday'], (value) => {
  const word = value.toLowerCase();
  const daysAgo = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
  return daysAgo === undefined ? daysOf(value) : ({ kind: 'word', daysAgo } as const);
});

/** First and last day of a day, month or year: `2024-01-31`, `2024/01/31`, `20240131`, `2024-01`, `2024`. */
function daysOf(value: string): DateOption | undefined {
  const [, year = '', month, day] = /^(\d{4})(?:[-/.]?(\d{2})(?:[-/.]?(\d{2}))?)?$/.exec(value) ?? [];
  const firstDay = parseDay(`${year}-${month ?? '01'}-${day ?? '01'}`);
  if (firstDay === undefined) return undefined;
  const next = monthStart(monthOf(firstDay) + (month === undefined ? 12 : 1));
  return { kind: 'days', firstDay, lastDay: day === undefined ? next - 1 : firstDay };
}

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
  const [, day = '', time = '00:00', zone = 'Z'] = INSTANT.exec(value) ?? [];
  if (parseDay(day) !== undefined) return within(DAY_MS, Infinity, Date.parse(`${day}T${time}${zone}`));
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
  if (minutes !== undefined) return { kind: 'time', sinceMidnightMs: minutes * MINUTE_MS };
  const ms = /^[1-9]\d*$/.test(value) ? undefined : parseDurationMs(value);
  if (ms !== undefined) return { kind: 'duration', durationMs: ms };
  if (value.includes('-')) return { kind: 'instant', epochMs: instant(value, where) };
  const what = 'a time of day in UTC, an instant or a duration';
  throw invalid(value, where, what, '08:30', '2026-11-21T08:30:00Z', '90m');
};
