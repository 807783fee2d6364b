/** The values of `--from` and `--to`: a day, a month, a year, `yesterday`, `today` or `now`. All days are those of the exchange. */
import { dayText, monthOf, monthStart, parseDay } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { given } from './parsers.js';
import type { Parse } from './parsers.js';

/** A date as given. The clock of the run decides which day a word means. */
export type DateOption = { readonly text: string } & (
  | { readonly kind: 'days'; readonly first: number; readonly last: number }
  | { readonly kind: 'word'; readonly daysAgo: number }
);

const WORDS: Readonly<Record<string, number>> = { yesterday: 1, today: 0, now: 0 };

/** For `--from`: the first day of a month or year. */
export const firstDay: Parse<DateOption> = (value, where) => {
  const date = parseDate(value, where);
  return date.kind === 'days' ? { ...date, text: dayText(date.first) } : date;
};

/** For `--to`: the last day of a month or year. */
export const lastDay: Parse<DateOption> = (value, where) => {
  const date = parseDate(value, where);
  return date.kind === 'days' ? { ...date, text: dayText(date.last) } : date;
};

function parseDate(value: string, where: string): DateOption {
  const word = value.toLowerCase();
  const daysAgo = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
  if (daysAgo !== undefined) return { kind: 'word', text: word, daysAgo };
  const days = daysOf(value);
  if (days !== undefined) return { kind: 'days', text: value, ...days };
  const meant = dateLike(value);
  if (where === '--to' && /[/\\]/.test(value))
    throw usage(`${where}: "${value}" is not a date`, '--to is the last day; export writes into --target', {
      flags: { to: null, target: value },
    });
  throw usage(
    `${where}: "${value}" is not a date`,
    meant === undefined
      ? `${given(where, '2024-01-31')}, 2024-01 (a month), 2024 (a year), yesterday or today`
      : given(where, meant),
    meant === undefined ? undefined : { value: meant },
  );
}

/** `2024-01-31`, `20240131`, `2024-01` and `2024` → first and last day; undefined for any other text. */
function daysOf(value: string): { first: number; last: number } | undefined {
  if (/^\d{4}(-\d{2})?$/.test(value)) {
    const first = parseDay(`${value}${value.length === 4 ? '-01' : ''}-01`);
    if (first === undefined) return undefined;
    return { first, last: monthStart(monthOf(first) + (value.length === 4 ? 12 : 1)) - 1 };
  }
  const day = parseDay(value.replace(/^(\d{4})(\d{2})(\d{2})$/, '$1-$2-$3'));
  return day === undefined ? undefined : { first: day, last: day };
}

/**
 * The date that a text like `2024-1-5`, `2024/01/05`, `31.01.2024`, `2024-01-05T00:00:00Z`, `202401` or `2024-02-30` means. An
 * ambiguous order of day and month is not corrected.
 */
function dateLike(value: string): string | undefined {
  const [, year = '', month = '', date] =
    /^(\d{4})[-/.]?(\d{1,2})(?:[-/.]?(\d{1,2}))?(?:[T ].*)?$/.exec(value) ?? [];
  if (year !== '') return date === undefined ? monthLike(year, month) : dayLike(year, month, date);
  const [, one = '', two = '', yearAfter = ''] = /^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})$/.exec(value) ?? [];
  if (yearAfter === '' || Number(one) > 12 === Number(two) > 12) return undefined;
  return Number(one) > 12 ? dayLike(yearAfter, two, one) : dayLike(yearAfter, one, two);
}

function monthLike(year: string, month: string): string | undefined {
  const text = `${year}-${month.padStart(2, '0')}`;
  return daysOf(text) === undefined ? undefined : text;
}

/** A day after the end of its month, like 2024-02-30, means the last day. */
function dayLike(year: string, month: string, date: string): string | undefined {
  const days = daysOf(`${year}-${month.padStart(2, '0')}`);
  const dateNumber = Number(date);
  if (days === undefined || dateNumber < 1 || dateNumber > 31) return undefined;
  return dayText(Math.min(days.first + dateNumber - 1, days.last));
}
