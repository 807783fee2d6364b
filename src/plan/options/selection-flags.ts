/** Flags that select what is downloaded or shown: series and jobs. */
import { ALL, MARKETS, readExchangeWords } from '../../exchange/names.js';
import { LIST, oneOf, section } from './flag-spec.js';
import { asset, dataset, interval, market } from './exchange-values.js';
import * as parse from './parsers.js';
import { shard } from './shard.js';
import { symbols } from './symbols.js';

const exchange = readExchangeWords();

export const SELECTION_FLAGS = section({ group: 'What' })({
  only: {
    ...LIST,
    doc: 'names of the jobs to run, separated by commas',
    parse: parse.text,
  },
  symbols: {
    short: 's',
    value: 'LIST',
    list: 'joined',
    doc: "names or globs like '*USDT', separated by commas; '!BUSD*' excludes, @FILE reads a file, - reads stdin, all selects all; without this flag, the series of the lake, or all symbols (list, universe)",
    parse: symbols,
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
  order: {
    ...LIST,
    value: 'ID',
    doc: 'drop these orders, separated by commas, and keep their data; cryptodl check --json shows the ids',
    parse: parse.text,
  },
  quote: {
    ...LIST,
    doc: 'only symbols with this quote asset, for example USDT; several are separated by commas',
    parse: asset,
  },
  'skip-unknown': 'leave out unknown names of --symbols, with a warning; without this flag, they are refused',
  shard: {
    value: 'I/N',
    doc: 'only the series of shard I of N, counted from 0; N machines with shards 0/N to N-1/N do the whole selection, and no series is in two shards',
    parse: shard,
  },
  join: oneOf('WITH', ['archive'])(
    'archive: prefer objects of the archive to rows of REST; only days and months without an object come from REST',
  ),
  fill: oneOf('FROM', ['rest'])(
    'rest: use REST for the days that the archive lacks; REST has klines, aggTrades, funding rates and metrics',
  ),
});
