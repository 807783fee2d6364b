/**
 * The values of `--from` and `--to`: a day, a month, a year, `yesterday`, `today` or `now`. All days are those of the exchange.
 */
import { monthOf, monthStart, parseDay } from '../../model/calendar.js';
import { parser } from './parsers.js';

/** A date as given. The clock of the run decides which day a word means. */
export type DateOption =
  | { readonly kind: 'days'; readonly first: number; readonly last: number }
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
  const first = parseDay(`${year}-${month ?? '01'}-${day ?? '01'}`);
  if (first === undefined) return undefined;
  const next = monthStart(monthOf(first) + (month === undefined ? 12 : 1));
  return { kind: 'days', first, last: day === undefined ? next - 1 : first };
}
