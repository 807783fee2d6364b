/** Days of trades, and what an archive publishes of them: trades, aggTrades and klines, each computed from the same trades with integers. */
import { writeObject } from './published.js';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Price in hundredths, quantity in thousandths. */
export interface Trade {
  readonly id: number;
  readonly price: bigint;
  readonly quantity: bigint;
  readonly timeMs: number;
  readonly isBuyerMaker: boolean;
}

/** A bar as numbers of the lake. */
export interface Bar {
  readonly open_time: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  readonly volume: number;
  readonly close_time: number;
  readonly quote_volume: number;
  readonly count: number;
  readonly taker_buy_volume: number;
  readonly taker_buy_quote_volume: number;
}

/** Trades of a day: the same arguments give the same trades. Most minutes are empty, also at the start of hours. */
export function tradesOf(day: string, count = 900, seed = 1): Trade[] {
  const start = Date.parse(`${day}T00:00:00Z`);
  let state = BigInt(start / 1000 + seed);
  const random = (below: number): number => {
    state = (state * 6364136223846793005n + 1442695040888963407n) % (1n << 64n);
    return Number((state >> 33n) % BigInt(below));
  };
  const times = Array.from({ length: count }, () => start + random(DAY_MS)).sort((a, b) => a - b);
  let price = 1_000_000n;
  return times.map((timeMs, at) => {
    price += BigInt(random(2001) - 1000);
    return {
      id: (start / DAY_MS) * 100_000 + at,
      price,
      quantity: BigInt(1 + random(5000)),
      timeMs,
      isBuyerMaker: random(2) === 0,
    };
  });
}

/** An integer as a decimal number with this number of digits after the point. */
function decimal(value: bigint, digits: number): string {
  const text = String(value).padStart(digits + 1, '0');
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** The bar of these trades, of which there is at least one. */
function barOf(trades: readonly Trade[], openTime: number, closeTime: number): Bar {
  const sum = (of: (trade: Trade) => bigint): bigint => trades.reduce((total, one) => total + of(one), 0n);
  const taken = (value: (trade: Trade) => bigint): bigint =>
    sum((one) => (one.isBuyerMaker ? 0n : value(one)));
  const quantity = ({ quantity: own }: Trade): bigint => own;
  const quote = ({ price, quantity: own }: Trade): bigint => price * own;
  const prices = trades.map(({ price }) => Number(price));
  return {
    open_time: openTime,
    open: Number(prices[0]) / 100,
    high: Math.max(...prices) / 100,
    low: Math.min(...prices) / 100,
    close: Number(prices.at(-1)) / 100,
    volume: Number(decimal(sum(quantity), 3)),
    close_time: closeTime,
    quote_volume: Number(decimal(sum(quote), 5)),
    count: trades.length,
    taker_buy_volume: Number(decimal(taken(quantity), 3)),
    taker_buy_quote_volume: Number(decimal(taken(quote), 5)),
  };
}

/** Bars of equal length, without those that have no trade. */
export function timeBars(trades: readonly Trade[], lengthMs: number, originMs = 0): Bar[] {
  const groups = new Map<number, Trade[]>();
  for (const trade of trades) {
    const start = Math.floor((trade.timeMs - originMs) / lengthMs) * lengthMs + originMs;
    groups.set(start, [...(groups.get(start) ?? []), trade]);
  }
  return [...groups].map(([start, own]) => barOf(own, start, start + lengthMs - 1));
}

/** Writes the trades of a day as the archive publishes them. */
export function writeTrades(archive: string, symbol: string, day: string, trades: readonly Trade[]): void {
  const rows = trades.map(({ id, price, quantity, timeMs, isBuyerMaker }) =>
    [id, decimal(price, 2), decimal(quantity, 3), decimal(price * quantity, 5), timeMs, isBuyerMaker].join(
      ',',
    ),
  );
  writeObject(archive, `data/futures/um/daily/trades/${symbol}/${symbol}-trades-${day}`, [
    'id,price,qty,quote_qty,time,is_buyer_maker',
    ...rows,
  ]);
}

export function writeAggTrades(archive: string, symbol: string, day: string, trades: readonly Trade[]): void {
  const rows = trades.map(({ id, price, quantity, timeMs, isBuyerMaker }) =>
    [id, decimal(price, 2), decimal(quantity, 3), id, id, timeMs, isBuyerMaker].join(','),
  );
  writeObject(archive, `data/futures/um/daily/aggTrades/${symbol}/${symbol}-aggTrades-${day}`, [
    'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker',
    ...rows,
  ]);
}

/** Writes candles of one day; of times without trades, flat ones with the price before, as the archive does. `without`: these are left out. */
export function writeKlines(
  archive: string,
  {
    symbol,
    day,
    interval,
    lengthMs = MINUTE_MS,
  }: { symbol: string; day: string; interval: string; lengthMs?: number },
  trades: readonly Trade[],
  without: (startMs: number) => boolean = () => false,
): void {
  const start = Date.parse(`${day}T00:00:00Z`);
  const bars = new Map(timeBars(trades, lengthMs).map((bar) => [bar.open_time, bar]));
  let before = 9999;
  const rows: string[] = [];
  for (let at = start; at < start + DAY_MS; at += lengthMs) {
    const bar = bars.get(at);
    const prices =
      bar === undefined ? [before, before, before, before] : [bar.open, bar.high, bar.low, bar.close];
    const price = prices.map((one) => one.toFixed(2)).join(',');
    const end = at + lengthMs - 1;
    before = bar?.close ?? before;
    if (without(at)) continue;
    rows.push(
      `${at},${price},${(bar?.volume ?? 0).toFixed(3)},${end},${(bar?.quote_volume ?? 0).toFixed(5)},${bar?.count ?? 0},${(bar?.taker_buy_volume ?? 0).toFixed(3)},${(bar?.taker_buy_quote_volume ?? 0).toFixed(5)},0`,
    );
  }
  writeObject(archive, `data/futures/um/daily/klines/${symbol}/${interval}/${symbol}-${interval}-${day}`, [
    'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore',
    ...rows,
  ]);
}
