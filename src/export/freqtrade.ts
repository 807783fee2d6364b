/**
 * Files of freqtrade in its Parquet form (freqtrade/data/history/datahandlers): names of pairs, candles with the columns date, open, high,
 * low, close and volume, funding rates, and trades.
 */
import { quoteName } from '../convert/sql.js';
import type { Series } from '../model/task.js';
import { isSettled, pairOf } from '../source/pairs.js';
import type { Pair } from '../source/pairs.js';
import { intervalMs } from '../source/venue.js';
import { fileOf } from './export-file.js';
import type { Engine, ExportFile, Refused, RowSource } from './export-file.js';
import { epochUs } from './value-text.js';

/** The candle type of a file name, by dataset. Spot candles have none. */
const CANDLES: Readonly<Record<string, string>> = {
  klines: 'futures',
  bars: 'futures',
  markPriceKlines: 'mark',
  indexPriceKlines: 'index',
  premiumIndexKlines: 'premiumIndex',
};
const TRADES = ['aggTrades', 'trades'];

export const FREQTRADE: Engine = {
  name: 'freqtrade',
  datasets: [...Object.keys(CANDLES), 'fundingRate', ...TRADES],
  onlyNamed: TRADES,
  anyInterval: ['markPriceKlines', 'fundingRate'],
  groupBy: 'pair',
  files: ({ sources, venue, settings }) =>
    sources
      .toSorted((a, b) => lengthOf(b) - lengthOf(a))
      .flatMap((source): (ExportFile | Refused)[] => {
        const { series } = source;
        const pair = pairOf(venue, series.market, series.symbol, settings.assets);
        if (pair === undefined) return [{ series, reason: noPair(series) }];
        const reason = noFile(series);
        if (reason !== undefined) return [{ series, reason }];
        return filesOf(source, placeOf(pair, series), settings.markInterval);
      }),
  notes: [
    'freqtrade reads these files with --data-format-ohlcv parquet, and trades with --data-format-trades parquet; in its configuration: dataformat_ohlcv and dataformat_trades',
  ],
};

/** The length of mark candles in milliseconds: candles as published come before candles that are made here, and these from the longest shorter ones. */
function lengthOf({ series: { dataset, interval = '' } }: RowSource): number {
  return dataset === 'markPriceKlines' ? intervalMs(interval) : 0;
}

function noPair({ symbol }: Series): string {
  return isSettled(symbol)
    ? 'a settled contract has no pair'
    : 'base and quote asset are not known; --exchange-info names them';
}

function noFile({ market, dataset, interval = '' }: Series): string | undefined {
  if (dataset === 'bars' && !/^\d+[a-z]$/.test(interval)) return 'freqtrade has no bars by trades';
  return market === 'cm' && TRADES.includes(dataset)
    ? 'freqtrade has no trades of coin-margined contracts'
    : undefined;
}

const PARQUET = { copy: 'FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1' } as const;

function filesOf(source: RowSource, place: string, markIntervals: readonly string[]): ExportFile[] {
  const { market, dataset, interval: own = '' } = source.series;
  if (TRADES.includes(dataset))
    return [fileOf(`${place}-trades.parquet`, source, PARQUET, (rows) => tradesQuery(dataset, rows))];
  const dated = (interval: string, suffix: string, select: (rows: string) => string): ExportFile =>
    fileOf(
      `${place}-${fileInterval(interval)}${suffix}.parquet`,
      source,
      { ...PARQUET, utc: 'date' },
      select,
    );
  if (dataset === 'fundingRate')
    return markIntervals.map((each) => dated(each, '-funding_rate', fundingQuery));
  const suffix = market === 'spot' ? '' : `-${CANDLES[dataset] ?? ''}`;
  const candles = (rows: string): string => candlesQuery(market, rows);
  const longer = dataset === 'markPriceKlines' ? markIntervals.filter((each) => isLonger(each, own)) : [];
  return [
    dated(own, suffix, candles),
    ...longer.map((each) =>
      dated(each, suffix, (rows) => longerCandles(candles(rows), intervalMs(own), intervalMs(each))),
    ),
  ];
}

/** `futures/BTC_USDT_USDT`. Of the characters that freqtrade replaces in names, only `/` and `:` occur. */
function placeOf({ base, quote, settle, expiry }: Pair, { market }: Series): string {
  const name = [base, quote, ...(settle === undefined ? [] : [settle])].join('_');
  const ends = expiry === undefined ? '' : `-${expiry}`;
  return `${market === 'spot' ? '' : 'futures/'}${name.replaceAll(/[/ .@$+:]/g, '_')}${ends}`;
}

/** A month is `1Mo`, because `1M` and `1m` are one name for some file systems. */
function fileInterval(interval: string): string {
  return interval.replace(/mo$/i, 'Mo').replace(/M$/, 'Mo');
}

function isLonger(interval: string, than: string): boolean {
  const [long, short] = [intervalMs(interval), intervalMs(than)];
  return long > short && long % short === 0;
}

/** With microseconds, pandas keeps `datetime64[us]`, and two places of freqtrade take its integers for nanoseconds. */
const DATE = (column: string): string => `make_timestamp_ns(${epochUs(column)} * 1000) AS date`;
/** Settlements are up to 30 ms late. freqtrade cuts their times to seconds when it downloads, and joins them with mark candles by equal times. */
const SECOND = (column: string): string =>
  `make_timestamp_ns(${epochUs(column)} // 1000000 * 1000000000) AS date`;
const ZEROS = ['high', 'low', 'close', 'volume'].map((name) => `CAST(0 AS DOUBLE) AS ${name}`).join(', ');

function double(column: string): string {
  return `CAST(${quoteName(column)} AS DOUBLE)`;
}

function fundingQuery(rows: string): string {
  return `SELECT ${SECOND('calc_time')}, ${double('last_funding_rate')} AS open, ${ZEROS} FROM (${rows}) ORDER BY date`;
}

function candlesQuery(market: Series['market'], rows: string): string {
  // The volume of coin-margined contracts counts contracts; ccxt takes the volume in the base asset, which is their quote_volume.
  const volume = market === 'cm' ? 'quote_volume' : 'volume';
  const prices = ['open', 'high', 'low', 'close'].map((name) => `${double(name)} AS ${name}`);
  return `SELECT ${DATE('open_time')}, ${prices.join(', ')}, ${double(volume)} AS volume FROM (${rows}) ORDER BY date`;
}

/** A candle is left out if the candles that it is made from begin after its start, or end before its end. */
function longerCandles(candles: string, ownMs: number, longMs: number): string {
  const start = `epoch_ns(date) // ${longMs * 1e6} * ${longMs * 1e6}`;
  return `SELECT make_timestamp_ns(start) AS date, arg_min(open, date) AS open, max(high) AS high, min(low) AS low,
      arg_max(close, date) AS close, sum(volume ORDER BY date) AS volume
    FROM (SELECT *, ${start} AS start, min(epoch_ns(date)) OVER () AS begun, max(epoch_ns(date)) OVER () + ${ownMs * 1e6} AS reached
      FROM (${candles}))
    GROUP BY start, begun, reached HAVING start >= begun AND start + ${longMs * 1e6} <= reached ORDER BY start`;
}

/** `timestamp` in milliseconds, `side` of the taker, as the archive reader of freqtrade writes them. */
function tradesQuery(dataset: string, rows: string): string {
  const isAggregated = dataset === 'aggTrades';
  const [id, amount, time] = isAggregated
    ? ['agg_trade_id', 'quantity', 'transact_time']
    : ['id', 'qty', 'time'];
  return `SELECT ${epochUs(time)} // 1000 AS timestamp, CAST(${id} AS VARCHAR) AS id, CAST(NULL AS VARCHAR) AS type,
      CASE WHEN is_buyer_maker THEN 'sell' ELSE 'buy' END AS side, ${double('price')} AS price, ${double(amount)} AS amount,
      ${double('price')} * ${double(amount)} AS cost FROM (${rows}) ORDER BY timestamp, CAST(${id} AS BIGINT)`;
}
