/** Words that only some verbs take: periods of the calendar, columns to rank by, markets to rank, and lists. */
import type { CalendarPeriod } from '../../model/calendar.js';
import { MARKET_ALIASES } from '../../exchange/names.js';
import { choice, type Parse } from './parsers.js';
import type { Every } from './dates.js';
import { usage } from '../../model/errors.js';

/** Periods of a cell of `coverage`. */
export const GRAINS = ['auto', 'day', 'month'] as const;

export const MEASURES = ['quote_volume', 'volume', 'count'] as const;
export type Measure = (typeof MEASURES)[number];

export const rankingMeasure = choice(MEASURES);

export const CALENDAR_PERIODS = [
  'day',
  'week',
  'month',
  'quarter',
  'year',
] as const satisfies readonly CalendarPeriod[];

export const calendarPeriod: Parse<Every> = (value, where) => {
  const text = choice(CALENDAR_PERIODS)(value, where);
  return { kind: 'calendar', text, period: text };
};

/** The markets of Binance with klines. */
export const RANKED_MARKETS = ['spot', 'um', 'cm'] as const;

/** A market by its name or by one of other tools, except for `all`: ranks are those of one market. */
export const rankedMarket: Parse<string> = choice(RANKED_MARKETS, MARKET_ALIASES);

export const LISTS = ['markets', 'datasets', 'symbols', 'periods'] as const;
export type ListName = (typeof LISTS)[number];

/** Throws a usage error for any other word. */
export function listName(word: string | undefined): ListName {
  if (word === undefined) throw usage(`list needs one of ${LISTS.join(', ')}`, 'cryptodl list datasets');
  return choice(LISTS)(word, 'list');
}
