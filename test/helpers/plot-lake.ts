/** Lakes with candles that a test names, for exact pictures. */
import { writeObject } from './published.js';

/** open, high, low, close, volume */
export type Candle = readonly [number, number, number, number, number];

const HOUR_MS = 3_600_000;

/** Writes an object of the archive: candles of an hour from the start of the day on; undefined leaves an hour out. */
export function writeHours(
  archive: string,
  symbol: string,
  day: string,
  candles: readonly (Candle | undefined)[],
): void {
  const start = Date.parse(`${day}T00:00:00Z`);
  const lines = candles.flatMap((candle, hour) => {
    if (candle === undefined) return [];
    const open = start + hour * HOUR_MS;
    return [`${open},${candle.join(',')},${open + HOUR_MS - 1},1000,10,5,500,0`];
  });
  writeObject(archive, `data/futures/um/daily/klines/${symbol}/1h/${symbol}-1h-${day}`, [
    'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore',
    ...lines,
  ]);
}

/** Writes a month of funding rates, one every eight hours. */
export function writeFunding(archive: string, symbol: string, month: string, rates: readonly number[]): void {
  const start = Date.parse(`${month}-01T00:00:00Z`);
  writeObject(archive, `data/futures/um/monthly/fundingRate/${symbol}/${symbol}-fundingRate-${month}`, [
    'calc_time,funding_interval_hours,last_funding_rate',
    ...rates.map((rate, at) => `${start + at * 8 * HOUR_MS},8,${rate}`),
  ]);
}
