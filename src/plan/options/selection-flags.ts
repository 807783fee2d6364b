/** Flags that select what is downloaded or shown: series, jobs and days, and times of a run. */
import { ALL, MARKETS, readExchangeWords } from '../../exchange/names.js';
import { takesDuration, LIST, oneOf, section, takes, words } from './flag-spec.js';
import { asset, dataset, interval, market } from './exchange-values.js';
import * as parse from './parsers.js';
import { shard } from './shard.js';
import { symbolsOption } from './symbols.js';
import { date, instant, timeOfDay, until } from './dates.js';

const exchange = readExchangeWords();

export const SELECTION_FLAGS = section({ group: 'What' })({
  only: words('names of the jobs to run, separated by commas'),
  symbols: {
    short: 's',
    value: 'LIST',
    list: 'joined',
    doc: "names or globs like '*USDT', separated by commas; '!BUSD*' excludes, @FILE reads a file, - reads stdin, all selects all; without this flag, the series of the lake, or all symbols (list, universe)",
    parse: symbolsOption,
    aka: ['symbol', 'p', 'pair', 'pairs', 'ticker', 'tickers', 'coin', 'coins', 'instrument'],
  },
  market: {
    short: 'm',
    ...LIST,
    doc: 'spot, um (USD-margined futures), cm (coin-margined futures), option, or all; several are separated by commas; usdm, futures, perp and linear are um, coinm and inverse are cm',
    parse: market(MARKETS),
    choices: [...MARKETS, ALL],
    default: exchange.defaultMarket,
    aka: ['markets', 'type', 'asset-class'],
  },
  dataset: {
    ...LIST,
    doc: 'datasets, separated by commas, or all; cryptodl list datasets shows them',
    parse: dataset('any'),
    default: 'klines',
    choices: [...exchange.datasets, ALL],
    aka: ['datasets', 'data', 'data-type', 'kind'],
  },
  interval: {
    short: 'i',
    ...LIST,
    doc: 'intervals, separated by commas, or all; only for klines and statistics: other datasets ignore them',
    parse: interval(exchange.intervals),
    default: '1m',
    choices: [...exchange.intervals, ALL],
    aka: ['intervals', 'timeframe', 'timeframes', 't', 'granularity', 'freq', 'resolution'],
  },
  order: words(
    'drop these orders, separated by commas, and keep their data; cryptodl check --json shows the ids',
    { value: 'ID' },
  ),
  quote: words('only symbols with this quote asset, for example USDT; several are separated by commas', {
    parse: asset,
    derive: (): readonly string[] => [],
  }),
  'skip-unknown': 'leave out unknown names of --symbols, with a warning; without this flag, they are refused',
  shard: takes(
    'I/N',
    shard,
  )(
    'only the series of shard I of N, counted from 0; N machines with shards 0/N to N-1/N do the whole selection, and no series is in two shards',
  ),
  join: oneOf('WITH', ['archive'])(
    'archive: prefer objects of the archive to rows of REST; only days and months without an object come from REST',
  ),
  fill: oneOf('FROM', ['rest'])(
    'rest: use REST for the days that the archive lacks; REST has klines, aggTrades, funding rates and metrics',
  ),
});

export const TIME_FLAGS = section({ group: 'When' })({
  at: takes('HH:MM', timeOfDay)(
    'time of day, UTC; the archive publishes the objects of a day from about 07:30 of the next day',
    { unit: 'Minutes', default: '08:05' },
  ),
  days: takes('N', parse.integer(1, 'day'))(
    'the last N complete UTC days; a download with --symbols and without a range selects the last day',
    { short: 'd', aka: ['last'] },
  ),
  months: takes('N', parse.integer(1, 'month'))('the last N complete months'),
  from: takes('DATE', date)(
    'first day, for example 2024-01-31, 2024-01 or yesterday; a month (2024-01) or a year (2024) begins with its first day; --to without --from begins at the first day of each series',
    { aka: ['since', 'start', 'start-date', 'startdate', 'begin', 'from-date', 'date-from', 'start-time'] },
  ),
  to: takes('DATE', date)(
    'last day, inclusive; a month (2024-01) or a year (2024) ends with its last day; yesterday and today are the last complete day; --from without --to ends yesterday',
    { aka: ['until', 'end', 'end-date', 'enddate', 'to-date', 'date-to', 'end-time'] },
  ),
  'include-today': 'also request the rows of today so far; the next run requests today again',
  'wait-for-publication': takes(
    'UNTIL',
    until,
  )(
    'wait until the archive has published the newest period; this applies to each selected series that has not ended; the run waits at most until a time of day (08:30, UTC) or an instant (2026-11-21T08:30:00Z), or for a duration (90m)',
  ),
  jitter: takesDuration('wait for a random time before the run starts; TIME is the maximum'),
  'max-duration': takesDuration(
    'start no new download after this time; downloads in progress are finished and committed, the others are listed in the failure report; a run that is still planning ends without a report (exit code 3)',
  ),
  exact:
    'fetch only the selected days; without this flag, a run without --to also fetches what its order lacks since the earliest day that was ever asked for',
  all: { group: 'How', doc: 'show each gap; without this flag, the ten worst' },
  summary: {
    group: 'How',
    doc: 'print in one line whether anything is missing; with --json only the summary',
  },
  now: takes('ISO', instant)('use this instant as the current time; for replays and tests', { unit: 'Ms' }),
});
