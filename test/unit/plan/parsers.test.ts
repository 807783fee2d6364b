import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { proxy, redis, url } from '../../../src/plan/options/addresses.js';
import * as dates from '../../../src/plan/options/dates.js';
import * as exchangeValues from '../../../src/plan/options/exchange-values.js';
import { limit } from '../../../src/plan/options/parsers.js';
import { endpoint } from '../../../src/plan/options/message-flags.js';
import * as numbers from '../../../src/plan/options/parsers.js';
import * as parse from '../../../src/plan/options/parsers.js';
import { concurrency } from '../../../src/plan/options/network-flags.js';
import { shard } from '../../../src/plan/options/shard.js';
import { calendarPeriod, rankingMeasure, listName } from '../../../src/plan/options/periods.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';

const EXCHANGE = loadBinance();
const BUCKETS = {
  archive: { permits: 100, windowMs: 1000, isWindow: false },
  futuresData: { permits: 1000, windowMs: 300_000, isWindow: true },
};

const PARSERS: Readonly<Record<string, parse.Parse<unknown>>> = {
  choice: parse.choice(['parquet', 'csv', 'zip'], { parquet: ['pq'] }),
  text: parse.text,
  flag: parse.flag,
  'integer from 0': numbers.integer(0),
  'integer from 1': numbers.integer(1),
  days: numbers.integer(1, 'day'),
  months: numbers.integer(1, 'month'),
  duration: numbers.duration,
  bytes: numbers.bytes,
  byteRate: numbers.byteRate,
  timeout: numbers.timeout,
  instant: dates.instant,
  timeOfDay: dates.timeOfDay,
  until: dates.until,
  every: dates.every,
  concurrency,
  asset: exchangeValues.asset,
  market: exchangeValues.market(['spot', 'um', 'cm', 'option']),
  'dataset of the archive': exchangeValues.dataset('archive'),
  'dataset of REST': exchangeValues.dataset('rest'),
  'dataset of a lake': exchangeValues.dataset('any'),
  interval: exchangeValues.interval([]),
  date: dates.date,
  url,
  proxy,
  redis,
  endpoint,
  limit: limit(BUCKETS),
  shard,
  period: calendarPeriod,
  rankingMeasure,
  list: (text) => listName(text),
};

function parserOf(name: string): parse.Parse<unknown> {
  const parser = PARSERS[name];
  if (parser === undefined) throw new RangeError(name);
  return parser;
}

/** Each value with the texts that mean it. */
const ACCEPTED: readonly (readonly [name: string, value: unknown, ...texts: string[]])[] = [
  ['choice', 'csv', 'csv', 'CSV', 'Csv'],
  ['choice', 'parquet', 'pq', 'PARQUET'],
  ['text', ' as it is ', ' as it is '],
  ['flag', true, 'true', '1', 'TRUE', 'Yes', 'on'],
  ['flag', false, 'no', 'off', 'False', '0'],
  ['integer from 0', 0, '0'],
  ['integer from 1', 7, '7', '007', '7.0'],
  ['days', 7, '7', '7d', '7 days', '7day'],
  ['months', 6, '6', '6m', '6mo', '6 months'],
  ['duration', 1500, '1.5s', '1500ms', '1.5 sec'],
  ['duration', 90_000, '90', '90s', '1.5min', '1.5 minutes'],
  ['duration', 604_800_000, '7d', '1w', '1 week', '168h'],
  ['timeout', 1, '1ms'],
  ['bytes', 2e6, '2MB', '2 MB', '2mb', '2MB/s', '2000000'],
  ['bytes', 2 ** 21, '2MiB', '2M', '2m'],
  ['byteRate', 1000, '1kB', '1kB/s'],
  ['instant', Date.UTC(2026, 10, 21), '2026-11-21', '2026-11-21T00:00Z', String(Date.UTC(2026, 10, 21))],
  [
    'instant',
    Date.UTC(2026, 10, 21, 8),
    '2026-11-21T08:00Z',
    '2026-11-21T08:00',
    '2026-11-21 08:00:00',
    '2026-11-21T09:00:00+01:00',
  ],
  ['timeOfDay', 510, '08:30', '8:30', '08:30Z'],
  [
    'until',
    expect.objectContaining({ kind: 'time', sinceMidnightMs: 510 * 60_000 }),
    '08:30',
    '8:30',
    '08:30Z',
  ],
  ['until', expect.objectContaining({ kind: 'duration', durationMs: 5_400_000 }), '90m', '90 min', '1.5h'],
  ['until', expect.objectContaining({ kind: 'instant' }), '2026-11-21T08:30:00Z', '2026-11-21 08:30'],
  ['every', { kind: 'hours', text: 'day', hours: 24 }, 'day'],
  ['every', { kind: 'hours', text: '1h', hours: 1 }, '1h'],
  ['concurrency', { kind: 'fixed', limit: 50 }, '50'],
  ['concurrency', { kind: 'auto', max: 128 }, 'auto'],
  ['concurrency', { kind: 'auto', max: 64 }, 'auto:64'],
  ['asset', 'USDT', 'USDT', 'usdt'],
  [
    'market',
    'um',
    'um',
    'UM',
    'usdm',
    'USD-M',
    'USDⓢ-M',
    'futures',
    'um-futures',
    'UM_FUTURES',
    'perp',
    'linear',
  ],
  ['market', 'cm', 'cm', 'coinm', 'COIN-M', 'inverse', 'cm-futures', 'dapi'],
  ['market', 'spot', 'SPOT'],
  ['market', 'option', 'options'],
  ['market', 'all', 'All'],
  ['dataset of the archive', 'klines', 'klines', 'Klines', 'kline', 'candles', 'ohlcv', 'OHLCV'],
  ['dataset of the archive', 'aggTrades', 'agg_trades', 'AGGTRADES', 'agg-trades', 'aggTrade'],
  ['dataset of the archive', 'metrics', 'open_interest', 'oi', 'openInterest'],
  ['dataset of the archive', 'fundingRate', 'funding', 'funding_rate', 'fundingRates'],
  ['dataset of the archive', 'markPriceKlines', 'mark-price', 'markPriceKlines', 'mark_price_klines'],
  ['dataset of the archive', 'openInterestHist', 'openInterestHist', 'open_interest_hist'],
  ['dataset of REST', 'openInterestHist', 'open_interest', 'oi', 'OpenInterestHist'],
  ['dataset of REST', 'metrics', 'metrics'],
  ['dataset of the archive', 'bars', 'bars'],
  ['dataset of a lake', 'nosuch', 'nosuch'],
  ['interval', '1h', '1h', '1H', '60m', '60min', '1hour', '1Hr', '3600s', 'h1', '1 h', 'hour'],
  ['interval', '1m', '1min', '60s', 'm1'],
  ['interval', '5m', '5MIN', '5 minutes'],
  ['interval', '1d', '24h', '1day', '1D'],
  ['interval', '1w', '1week', '1W'],
  ['interval', '1mo', '1month', '1M', '1mo'],
  ['interval', 'all', 'all'],
  // The datasets refuse these.
  ...['5M', '7d', '7m', 'M5', 'M1', '60', 'constructor'].map((text) => ['interval', text, text] as const),
  ['url', 'http://127.0.0.1:8090', 'http://127.0.0.1:8090/', '127.0.0.1:8090'],
  ['url', 'https://s3.example/data', 'https://s3.example/data//', 's3.example/data'],
  ['proxy', 'http://10.0.0.1:3128', 'http://10.0.0.1:3128', '10.0.0.1:3128'],
  ['redis', 'redis://queue:6379', 'redis://queue:6379', 'queue:6379'],
  ['endpoint', { host: '127.0.0.1', port: 9464 }, '9464', 'http://127.0.0.1:9464/metrics'],
  ['endpoint', { host: '0.0.0.0', port: 9464 }, '0.0.0.0:9464', ':9464'],
  ['endpoint', { host: '::1', port: 65_535 }, '[::1]:65535'],
  ['limit', { bucket: 'archive', permits: 50, windowMs: 1000 }, 'archive=50/s', 'archive: 50/sec'],
  [
    'limit',
    { bucket: 'futuresData', permits: 500, windowMs: 300_000 },
    'futuresData=500/5m',
    'futuresdata=100/m',
  ],
  ['shard', { index: 3, count: 12, text: '3/12' }, '3/12'],
  ['period', { kind: 'calendar', text: 'month', period: 'month' }, 'month', 'Month'],
  ['rankingMeasure', 'quote_volume', 'quote_volume', 'quoteVolume'],
  ['list', 'symbols', 'symbols', 'Symbols'],
];

it.each(ACCEPTED.flatMap(([name, value, ...texts]) => texts.map((text) => ({ name, text, value }))))(
  '$name takes $text',
  ({ name, text, value }) => {
    expect(parserOf(name)(text, '--x', { exchange: EXCHANGE })).toEqual(value);
  },
);

function refusal(name: string, text: string): CryptodlError {
  try {
    parserOf(name)(text, 'CRYPTODL_X', { exchange: EXCHANGE });
  } catch (error) {
    if (error instanceof CryptodlError && error.code === 'usage') return error;
    throw error;
  }
  throw new Error(`${name} took ${text}`);
}

/** The hint for each of the texts. */
const REFUSED: readonly (readonly [name: string, hint: string, ...texts: string[]])[] = [
  ['choice', 'for example parquet or csv', '', 'parquet,csv', 'feather'],
  ['choice', 'did you mean parquet?', 'parqet'],
  ['flag', 'for example true', 'maybe', '', '2'],
  ['integer from 0', 'for example 7', '-1', '1.5', '1e3', '', ' 1', '0x10', '9007199254740993', '7d'],
  ['integer from 1', 'for example 7', '0', '-0', 'x'],
  ['days', 'for example 7', '0', '-7', '7h', 'x', '1month', '2y', '2 months'],
  ['duration', 'for example 500ms or 30s or 5m', '-1s', '', 'x', '5M', '1s2', 'Infinitys', '1e3s'],
  ['timeout', 'for example 30s', '0', '0s', '0.9ms'],
  ['bytes', 'for example 500MB or 2GiB', '1XB', '', '-1', '100Mbps', '1,5MB', '1e3'],
  ['byteRate', 'for example 10MB', '0', '999', '0.9kB'],
  ['instant', 'for example 2026-11-21T08:00:00Z', '2026-02-30', '1970-01-01', 'now', '', '21.11.2026'],
  ['timeOfDay', 'for example 08:05', '24:00', '8:60', '', 'noon'],
  ['until', 'for example 08:30 or 2026-11-21T08:30:00Z or 90m', '90', '24:00', ''],
  ['every', 'for example day or 12h', '5h', '7m', ''],
  ['concurrency', 'for example 50 or auto:64', '0', '1025', 'auto:0', 'auto:1025', 'auto:', '-1', 'all', ''],
  ['market', 'for example spot or um', 'nasdaq', 'delivery', 'constructor', ''],
  ['endpoint', 'for example 9464 or 0.0.0.0:9464', '0', 'x', '65536', 'localhost', '::1:9464'],
  ['limit', 'for example archive=100/s', 'archive', 'archive=0/s', 'archive=5'],
  ['shard', 'for example 0/3 or 2/3', '3', '12/12', '0/0', '1/10001', '-1/3'],
];

it.each(REFUSED.flatMap(([name, hint, ...texts]) => texts.map((text) => ({ name, text, hint }))))(
  '$name refuses $text',
  ({ name, text, hint }) => {
    const error = refusal(name, text);
    expect(error.message).toContain('CRYPTODL_X');
    expect(error.message).toContain(`"${text}"`);
    expect(error.hint).toBe(hint);
  },
);

it.each([
  ['choice', 'x', 'CRYPTODL_X: "x" is not one of parquet, csv, zip'],
  [
    'url',
    'ftp://x',
    'CRYPTODL_X (not shown; host x) is not an http(s) address without user name, password and query',
  ],
  ['url', 'x', 'CRYPTODL_X (not shown) is not an http(s) address without user name, password and query'],
  ['url', '', 'CRYPTODL_X (not shown) is not an http(s) address without user name, password and query'],
  [
    'url',
    'file:///etc/passwd',
    'CRYPTODL_X (not shown) is not an http(s) address without user name, password and query',
  ],
  ['text', '', 'CRYPTODL_X is empty'],
  ['text', 'a\0b', 'CRYPTODL_X holds a NUL character'],
  ['limit', 'nosuch=1/s', 'CRYPTODL_X: "nosuch" is not one of archive, futuresData'],
  ['limit', 'archive=101/s', 'CRYPTODL_X: archive=101/s is above the limit of archive'],
  ['limit', 'futuresData=4/s', 'CRYPTODL_X: futuresData=4/s is above the limit of futuresData'],
])('%s refuses %j: %s', (name, text, message) => {
  expect(refusal(name, text).message).toBe(message);
});

it.each([
  ['url', 'http://x/?X-Amz-Signature=secret'],
  ['url', 'http://x/#secret'],
  ['url', 'x/?secret'],
  ['url', 'http://user:secret@x'],
  ['url', 'user:secret@x'],
  ['proxy', 'user:secret@x'],
  ['redis', 'http://user:secret@x'],
])('%s refuses an address, and does not show its secret: %s', (name, text) => {
  const error = refusal(name, text);
  expect(error.message).toContain('CRYPTODL_X');
  expect(inspect(error)).not.toContain('secret');
});
