/** The command object of `universe`: flags, help and what it does. */
import { IN_SYSTEM_FOLDER, RANKING_FLAGS, READER_FLAGS } from '../../plan/options/flag-sets.js';
import {
  CALENDAR_PERIODS,
  MEASURES,
  RANKED_MARKETS,
  calendarPeriod,
  rankingMeasure,
  rankedMarket,
} from '../../plan/options/periods.js';
import { BASE_EXITS } from '../../plan/options/verb-spec.js';
import { defineReader } from '../../run/verb/verb.js';

export const universeVerb = defineReader({
  name: 'universe',
  doc: 'print the most traded symbols of each period; it ranks them by the klines of the lake, and a period has only what was known before it began',
  exits: { ...BASE_EXITS, 2: 'usage; for example a lake without klines' },
  examples: [
    'cryptodl universe --quote USDT --top 50 --from 2023-01 > universe.csv',
    'cryptodl universe -m spot --quote USDT --every week --window 7d --as list',
    'cryptodl universe --top 9 --from 2023-01 --as freqtrade --target lists',
  ],
  aka: ['constituents', 'members', 'pairlist', 'pairlists'],
  flags: RANKING_FLAGS,
  moreFlags: [...READER_FLAGS, 'skip-unknown', 'now'],
  meanings: {
    ...IN_SYSTEM_FOLDER,
    market: { doc: 'spot, um or cm; one market', parse: rankedMarket, choices: RANKED_MARKETS },
    from: {
      doc: 'the first period is that of this date; for example 2023-01-01 or 2023-01; without this flag, it is the first one with a full window before it',
    },
    to: {
      doc: 'the last period is that of this date; without this flag, it is the last one of which the lake has all days before it',
    },
    target: { doc: 'the folder of the files of --as freqtrade' },
    by: {
      doc: 'rank by quote_volume, volume or count; their sums over the window; quote_volume is in the quote asset, volume in the base asset, and count is the number of trades',
      parse: rankingMeasure,
      choices: MEASURES,
      default: 'quote_volume',
    },
    every: {
      doc: 'day, week, month, quarter or year; the length of a period; in UTC, a week begins on Monday',
      parse: calendarPeriod,
      choices: CALENDAR_PERIODS,
      default: 'month',
    },
  },
  isReader: true,
  lakePart: 'klines of the markets',
  act: async (command) => (await import('./universe.js')).universe(command),
});
