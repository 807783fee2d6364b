/**
 * Files of freqtrade in its Parquet form (freqtrade/data/history/datahandlers): names of pairs, candles with the columns date, open, high,
 * low, close and volume, funding rates, and trades.
 */
import type { Series } from '../../model/task.js';
import { isSettled, pairName, pairOf } from '../../exchange/pairs.js';
import { intervalMs } from '../../exchange/exchange-spec.js';
import type { ExportProgram, ProgramInput, ExportFile, Refused, SeriesRows } from './export-file.js';

/** The candle type of a file name, by dataset. Spot candles have none. */
const CANDLES: Readonly<Record<string, string>> = {
  klines: 'futures',
  bars: 'futures',
  markPriceKlines: 'mark',
  indexPriceKlines: 'index',
  premiumIndexKlines: 'premiumIndex',
};

const TRADE = `NULL::VARCHAR AS type, side(is_buyer_maker) AS side, price::DOUBLE AS price`;
/** `timestamp` in milliseconds, `side` of the taker, as the archive reader of freqtrade writes them. */
const TRADES: Readonly<Record<string, string>> = {
  aggTrades: `SELECT epoch_us(transact_time) // 1000 AS timestamp, agg_trade_id::VARCHAR AS id, ${TRADE}, quantity::DOUBLE AS amount,
    price::DOUBLE * quantity::DOUBLE AS cost FROM r0 ORDER BY timestamp, agg_trade_id::BIGINT`,
  trades: `SELECT epoch_us(time) // 1000 AS timestamp, id::VARCHAR AS id, ${TRADE}, qty::DOUBLE AS amount,
    price::DOUBLE * qty::DOUBLE AS cost FROM r0 ORDER BY timestamp, r0.id::BIGINT`,
};

/** Settlements are up to 30 ms late. freqtrade cuts their times to seconds when it downloads, and joins them with mark candles by equal times. */
const FUNDING = `SELECT make_timestamp_ns(epoch_us(calc_time) // 1000000 * 1000000000) AS date, last_funding_rate::DOUBLE AS open,
    0::DOUBLE AS high, 0::DOUBLE AS low, 0::DOUBLE AS close, 0::DOUBLE AS volume FROM r0 ORDER BY date`;

export const FREQTRADE: ExportProgram = {
  name: 'freqtrade',
  datasets: [...Object.keys(CANDLES), 'fundingRate', ...Object.keys(TRADES)],
  onlyNamed: Object.keys(TRADES),
  anyInterval: ['markPriceKlines', 'fundingRate'],
  flags: ['mark-interval', 'exchange-info'],
  groupBy: 'pair',
  files: (input) =>
    input.sources
      .toSorted((a, b) => lengthOf(b) - lengthOf(a))
      .flatMap((source) => exportFilesOf(source, input)),
  notes: [
    'freqtrade reads these files with --data-format-ohlcv parquet, and trades with --data-format-trades parquet; in its configuration: dataformat_ohlcv and dataformat_trades',
  ],
};

/** The length of mark candles in milliseconds: candles as published come before candles that are made here, and these from the longest shorter ones. */
function lengthOf({ series: { dataset, interval = '' } }: SeriesRows): number {
  return dataset === 'markPriceKlines' ? intervalMs(interval) : 0;
}

function exportFilesOf(
  source: SeriesRows,
  { exchange, options, assets }: ProgramInput,
): (ExportFile | Refused)[] {
  const { series } = source;
  const { market, dataset, interval: own = '', symbol } = series;
  const refuse = (reason: string): Refused[] => [{ series, reason }];
  const pair = pairOf(exchange, market, symbol, assets);
  if (isSettled(symbol)) return refuse('a settled contract has no pair');
  if (pair === undefined) return refuse('base and quote asset are not known; --exchange-info names them');
  const tradesQuery = TRADES[dataset];
  if (tradesQuery !== undefined && market === 'cm')
    return refuse('freqtrade has no trades of coin-margined contracts');
  // `futures/BTC_USDT_USDT-240329`. Of the characters that freqtrade replaces in names, only `/` and `:` occur.
  const place = `${market === 'spot' ? '' : 'futures/'}${pairName(pair).replaceAll(/[/ .@$+:]/g, '_')}`;
  const copy = 'FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1';
  if (tradesQuery !== undefined)
    return [{ path: `${place}-trades.parquet`, sources: [source], form: { copy }, select: tradesQuery }];
  const dated = (interval: string, type: string, select: string): ExportFile => ({
    // A month is `1Mo`, because `1M` and `1m` are one name for some file systems.
    path: `${place}-${interval.replace(/(?:mo|M)$/, 'Mo')}${type}.parquet`,
    sources: [source],
    form: { copy, utc: 'date' },
    select,
  });
  if (dataset === 'fundingRate')
    return options.markInterval.map((each) => dated(each, '-funding_rate', FUNDING));
  const type = market === 'spot' ? '' : `-${CANDLES[dataset] ?? ''}`;
  const candles = candlesQuery(market);
  const length = intervalMs(own);
  const longer = dataset === 'markPriceKlines' ? options.markInterval : [];
  return [
    dated(own, type, candles),
    ...longer
      .filter((each) => intervalMs(each) > length && intervalMs(each) % length === 0)
      .map((each) => dated(each, type, longerCandles(candles, length * 1e6, intervalMs(each) * 1e6))),
  ];
}

/**
 * With microseconds, pandas keeps `datetime64[us]`, and two places of freqtrade take its integers for nanoseconds. The volume of coin-margined
 * contracts counts contracts; ccxt takes the volume in the base asset, which is their quote_volume.
 */
function candlesQuery(market: Series['market']): string {
  return `SELECT make_timestamp_ns(epoch_us(open_time) * 1000) AS date, open::DOUBLE AS open, high::DOUBLE AS high, low::DOUBLE AS low,
    close::DOUBLE AS close, ${market === 'cm' ? 'quote_volume' : 'volume'}::DOUBLE AS volume FROM r0 ORDER BY date`;
}

/** A candle is left out if the candles that it is made from begin after its start, or end before its end. Lengths are in nanoseconds. */
function longerCandles(candles: string, own: number, long: number): string {
  const start = `epoch_ns(date) // ${long} * ${long}`;
  return `SELECT make_timestamp_ns(start) AS date, arg_min(open, date) AS open, max(high) AS high, min(low) AS low,
      arg_max(close, date) AS close, sum(volume ORDER BY date) AS volume
    FROM (SELECT *, ${start} AS start, min(epoch_ns(date)) OVER () AS begun, max(epoch_ns(date)) OVER () + ${own} AS reached
      FROM (${candles}))
    GROUP BY start, begun, reached HAVING start >= begun AND start + ${long} <= reached ORDER BY start`;
}
