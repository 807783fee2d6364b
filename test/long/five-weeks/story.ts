/** The events of the archive in five weeks: scripted ones, and seeded ones on the days without a scripted event. */
import { randoms } from '../../helpers/randoms.js';
import { dayOf, nameOf, textOf } from './rows.js';
import type { Dataset, Series } from './rows.js';

/** Cron runs at 08:05 UTC of each of these days, but for the missed ones. */
export const FIRST_CRON = dayOf('2026-09-15');
export const LAST_CRON = FIRST_CRON + 34;
export const MISSED: ReadonlySet<number> = new Set(
  ['2026-09-24', '2026-09-25', '2026-10-06', '2026-10-07'].map(dayOf),
);
/** The archive is older than the lake. */
export const FIRST_PUBLISHED = dayOf('2026-09-01');

export const HEADER_FROM = dayOf('2026-09-22');
export const MICROS_FROM = dayOf('2026-10-08');
/** All symbols lack these hours of this day. */
export const HALT = { day: dayOf('2026-10-02'), hours: [3, 4, 5] };
export const MONTHLY = { month: '2026-09', on: dayOf('2026-10-05'), differing: 'BCHUSDT' };
export const DELISTED = { symbol: 'OLDUSDT', last: dayOf('2026-09-23') };
const LISTED = { symbol: 'NEWUSDT', first: dayOf('2026-09-22') };

const SYMBOLS = ['ADA', 'BCH', 'DOT', 'EOS', 'FIL', 'GMT', 'LTC', 'NEW', 'OLD', 'XRP'].map(
  (base) => `${base}USDT`,
);

export const SERIES: readonly Series[] = [
  ...SYMBOLS.map((symbol): Series => ({ dataset: 'klines', symbol })),
  { dataset: 'aggTrades', symbol: 'ADAUSDT' },
  { dataset: 'metrics', symbol: 'BCHUSDT' },
];

export function isTraded({ symbol }: Series, day: number): boolean {
  if (day < FIRST_PUBLISHED) return false;
  if (symbol === LISTED.symbol) return day >= LISTED.first;
  return symbol !== DELISTED.symbol || day <= DELISTED.last;
}

export type Happening =
  /** Published on this day instead of the next one. */
  | 'late'
  | 'never'
  /** Other values, and nothing wrong with them. */
  | 'revised'
  | 'stale-sidecar'
  | 'broken-zip'
  | 'malformed-row'
  /** A fifth of the rows. */
  | 'shrunk'
  /** The sidecar becomes the one of its zip. */
  | 'sidecar-right'
  | 'sidecar-missing'
  | 'withdrawn'
  /** The same bytes with a new date. */
  | 'touched';

export interface Event {
  readonly on: number;
  readonly series: Series;
  readonly day: number;
  readonly what: Happening;
}

function event(on: string, dataset: Dataset, symbol: string, day: string, what: Happening): Event {
  return {
    on: dayOf(`2026-${on}`),
    series: { dataset, symbol: `${symbol}USDT` },
    day: dayOf(`2026-${day}`),
    what,
  };
}

const SCRIPT: readonly Event[] = [
  event('09-18', 'klines', 'ADA', '09-15', 'revised'),
  // A revision whose sidecar is the old one for three days.
  event('09-19', 'klines', 'BCH', '09-16', 'stale-sidecar'),
  event('09-22', 'klines', 'BCH', '09-16', 'sidecar-right'),
  // A revision that is no zip for three days.
  event('09-20', 'klines', 'DOT', '09-17', 'broken-zip'),
  event('09-23', 'klines', 'DOT', '09-17', 'revised'),
  // A revision that stays malformed, and a later revision of its month, when the malformed day is not rechecked any more.
  event('09-21', 'klines', 'EOS', '09-18', 'malformed-row'),
  event('09-27', 'klines', 'EOS', '09-24', 'revised'),
  // Withdrawn before and after a revision of another day of its month.
  event('09-22', 'klines', 'FIL', '09-19', 'withdrawn'),
  event('09-23', 'klines', 'FIL', '09-20', 'revised'),
  event('09-22', 'klines', 'GMT', '09-20', 'revised'),
  event('09-23', 'klines', 'GMT', '09-19', 'withdrawn'),
  event('09-27', 'klines', 'GMT', '09-22', 'revised'),
  // Withdrawn and back with other values.
  event('10-12', 'klines', 'GMT', '10-08', 'withdrawn'),
  event('10-14', 'klines', 'GMT', '10-08', 'revised'),
  event('09-28', 'klines', 'LTC', '09-26', 'shrunk'),
  event('10-01', 'klines', 'LTC', '09-26', 'revised'),
  event('10-05', 'klines', 'LTC', '10-03', 'shrunk'),
  event('10-08', 'klines', 'LTC', '10-02', 'revised'),
  event('10-01', 'klines', 'XRP', '09-28', 'late'),
  event('10-09', 'klines', 'DOT', '10-06', 'late'),
  event('10-09', 'klines', 'DOT', '10-07', 'late'),
  event('09-26', 'klines', 'XRP', '09-25', 'never'),
  event('10-04', 'klines', 'ADA', '10-03', 'sidecar-missing'),
  event('10-06', 'klines', 'ADA', '10-03', 'sidecar-right'),
  event('10-05', 'klines', 'XRP', '10-04', 'sidecar-missing'),
  event('10-04', 'klines', 'DOT', '10-01', 'touched'),
  // Two months are made anew in one run.
  event('10-03', 'klines', 'EOS', '09-30', 'revised'),
  event('10-03', 'klines', 'EOS', '10-01', 'revised'),
  // Two revisions between two runs.
  event('10-06', 'klines', 'ADA', '10-04', 'revised'),
  event('10-07', 'klines', 'ADA', '10-04', 'revised'),
  // New days that fail at first.
  event('10-09', 'klines', 'FIL', '10-08', 'malformed-row'),
  event('10-12', 'klines', 'FIL', '10-08', 'revised'),
  event('10-11', 'klines', 'GMT', '10-10', 'stale-sidecar'),
  event('10-13', 'klines', 'GMT', '10-10', 'sidecar-right'),
  event('10-13', 'klines', 'DOT', '10-12', 'broken-zip'),
  event('10-15', 'klines', 'DOT', '10-12', 'revised'),
  // Files of one day.
  event('09-30', 'aggTrades', 'ADA', '09-28', 'revised'),
  event('10-04', 'aggTrades', 'ADA', '10-01', 'withdrawn'),
  event('10-12', 'aggTrades', 'ADA', '10-09', 'malformed-row'),
  // Rows out of time order.
  event('10-04', 'metrics', 'BCH', '10-01', 'revised'),
  event('10-11', 'metrics', 'BCH', '10-08', 'shrunk'),
  event('10-14', 'metrics', 'BCH', '10-08', 'revised'),
  event('10-15', 'metrics', 'BCH', '10-12', 'stale-sidecar'),
  event('10-17', 'metrics', 'BCH', '10-12', 'sidecar-right'),
];

/** All events, those of one day in their order. Every day is settled while runs still look at it. */
export function eventsOf(seed: number): Event[] {
  const random = randoms(seed);
  const scripted = new Set(SCRIPT.map(({ series, day }) => `${nameOf(series)} ${textOf(day)}`));
  const events = [...SCRIPT];
  for (const series of SERIES) {
    for (let day = FIRST_CRON; day < LAST_CRON - 6; day += 1) {
      const chance = random();
      const delay = 1 + Math.floor(random() * 3);
      if (scripted.has(`${nameOf(series)} ${textOf(day)}`) || !isTraded(series, day)) continue;
      const on = day + 1 + delay;
      // The first and the last days of a series come in time.
      const isOfWholeLife = series.symbol !== DELISTED.symbol && series.symbol !== LISTED.symbol;
      if (chance < 0.06 && isOfWholeLife) events.push({ on, series, day, what: 'late' });
      else if (chance < 0.1) events.push({ on, series, day, what: 'revised' });
      else if (chance < 0.14) {
        events.push({ on: day + 1, series, day, what: 'sidecar-missing' });
        events.push({ on, series, day, what: 'sidecar-right' });
      }
    }
  }
  return events;
}
