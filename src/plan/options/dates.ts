/**
 * The values of `--from` and `--to`: a day, a month, a year, an instant, `yesterday`, `today` or `now`. All days are those of the exchange,
 * except for the day of an instant, which is that of UTC.
 */
import { dayOf, dayText, monthOf, monthStart, parseDay, UTC } from '../../model/calendar.js';
import { EPOCH_MS, invalid } from './parsers.js';
import type { Parse } from './parsers.js';

/** A date as given. The clock of the run decides which day a word means. */
export type DateOption = { readonly text: string } & (
  | { readonly kind: 'days'; readonly first: number; readonly last: number }
  | { readonly kind: 'word'; readonly daysAgo: number }
);

const WORDS: Readonly<Record<string, number>> = { yesterday: 1, today: 0, now: 0 };

/** For `--from`: the first day of a month or year. */
export const firstDay = dateOf('first');

/** For `--to`: the last day of a month or year. */
export const lastDay = dateOf('last');

function dateOf(end: 'first' | 'last'): Parse<DateOption> {
  return (value, where) => {
    const word = value.toLowerCase();
    const daysAgo = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (daysAgo !== undefined) return { kind: 'word', text: word, daysAgo };
    const days = EPOCH_MS.test(value) ? wholeDay(dayOf(Number(value), UTC)) : daysOf(value);
    if (days !== undefined) return { kind: 'days', text: dayText(days[end]), ...days };
    throw invalid(value, where, 'a date', '2024-01-31', '2024-01', '2024', 'yesterday');
  };
}

/** Year, month and day; a time of day in UTC may follow. */
const YEAR_FIRST = /^(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2})(?:[T ][\d:.]+(?:Z|[+-]00:?00)?)?)?)?$/i;
const DIGITS = /^(\d{4})(\d{2})(\d{2})?$/;
const YEAR_LAST = /^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})$/;

/** First and last day of a day, month or year. Undefined for other texts, and for a date that can be a day of two months: `05/01/2024`. */
function daysOf(value: string): { first: number; last: number } | undefined {
  const [, year = '', month = '', date = ''] = YEAR_FIRST.exec(value) ?? DIGITS.exec(value) ?? [];
  if (year !== '') return partsOf(year, month, date);
  const [, one = '', two = '', last = ''] = YEAR_LAST.exec(value) ?? [];
  if (last === '' || Number(one) > 12 === Number(two) > 12) return undefined;
  return Number(one) > 12 ? partsOf(last, two, one) : partsOf(last, one, two);
}

/** Without a day or month, the text is empty. */
function partsOf(year: string, month: string, date: string): { first: number; last: number } | undefined {
  const first = parseDay([year, month || '1', date || '1'].map((part) => part.padStart(2, '0')).join('-'));
  if (first === undefined || date !== '') return first === undefined ? undefined : wholeDay(first);
  return { first, last: monthStart(monthOf(first) + (month === '' ? 12 : 1)) - 1 };
}

function wholeDay(day: number): { first: number; last: number } {
  return { first: day, last: day };
}
