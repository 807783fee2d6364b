/** The klines and aggregate trades that a REST venue has: functions of symbol and time, for the venue and its tests. */
import { decimal, hashText, mix, timeText } from './rest-venue-rows.js';
import type { Host, VenueSymbol } from './rest-venue-types.js';
import { DAY_MS, firstOf, HOUR_MS, endOf } from './rest-venue-types.js';

/** Where the candles of an interval begin. */
export interface Bars {
  /** Of the candle that this instant is in. */
  start(at: number): number;
  /** Of the candle so many further on. */
  move(open: number, candles: number): number;
}

const LENGTHS: Readonly<Record<string, number>> = {
  '1s': 1000,
  '1m': 60_000,
  '3m': 180_000,
  '5m': 300_000,
  '15m': 900_000,
  '30m': 1_800_000,
  '1h': HOUR_MS,
  '2h': 2 * HOUR_MS,
  '4h': 4 * HOUR_MS,
  '6h': 6 * HOUR_MS,
  '8h': 8 * HOUR_MS,
  '12h': 12 * HOUR_MS,
  '1d': DAY_MS,
  '3d': 3 * DAY_MS,
  '1w': 7 * DAY_MS,
};

const MONTHS: Bars = {
  start: (at) => monthStart(at, 0),
  move: (open, candles) => monthStart(open, candles),
};

function monthStart(at: number, further: number): number {
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + further, 1);
}

/** Undefined when there is no such interval; only spot has seconds. */
export function barsOf(interval: string, host: Host): Bars | undefined {
  if (interval === '1M') return MONTHS;
  const length = LENGTHS[interval];
  if (length === undefined || (interval === '1s' && host !== 'spot')) return undefined;
  // Weeks begin on Mondays, and 1970 began on a Thursday.
  const shift = interval === '1w' ? 4 * DAY_MS : 0;
  return {
    start: (at) => Math.floor((at - shift) / length) * length + shift,
    move: (open, candles) => open + candles * length,
  };
}

/** How far the texts of a host go behind what is computed: prices in tenths, amounts in thousandths. */
const PAD: Readonly<Record<Host, string>> = { fapi: '0', dapi: '', spot: '0000000' };

/**
 * The twelve fields of a candle as text. All intervals agree on the price of an instant. A candle that is still open at
 * `nowMs` closes there, and has values that will not last.
 */
export function kline(
  symbol: VenueSymbol,
  interval: string,
  openMs: number,
  nowMs = Number.POSITIVE_INFINITY,
): string[] {
  const bars = barsOf(interval, symbol.host);
  if (bars === undefined) throw new Error(`${symbol.host} has no interval ${interval}`);
  return candle(
    symbol,
    hashText(`${symbol.host}/price/${symbol.symbol}`),
    openMs,
    bars.move(openMs, 1),
    nowMs,
  );
}

/** A row of a page: an array of three numbers and nine strings. */
export function klineWriter(symbol: VenueSymbol, bars: Bars, nowMs: number): (openMs: number) => string {
  const seed = hashText(`${symbol.host}/price/${symbol.symbol}`);
  return (openMs) => {
    const row = candle(symbol, seed, openMs, bars.move(openMs, 1), nowMs);
    const prices = row.slice(1, 6).join('","');
    const taken = row.slice(9).join('","');
    return `[${row[0]},"${prices}",${row[6]},"${row[7]}",${row[8]},"${taken}"]`;
  };
}

function candle(
  { host }: VenueSymbol,
  seed: number,
  openMs: number,
  nextMs: number,
  nowMs: number,
): string[] {
  const until = Math.min(nextMs, nowMs);
  const pad = PAD[host];
  const open = priceAt(seed, openMs);
  const close = priceAt(seed, until);
  const hash = mix(mix(seed, openMs), until);
  const amount = 1 + (hash % 10_000_000);
  const taker = mix(hash, 1) % amount;
  return [
    timeText(openMs),
    `${decimal(open, 1)}${pad}`,
    `${decimal(Math.max(open, close) + (hash % 500), 1)}${pad}`,
    `${decimal(Math.min(open, close) - (mix(hash, 2) % 500), 1)}${pad}`,
    `${decimal(close, 1)}${pad}`,
    amountText(host, amount),
    timeText(nextMs - 1),
    quoteText(host, amount),
    String(1 + (hash % 5000)),
    amountText(host, taker),
    quoteText(host, taker),
    '0',
  ];
}

function amountText(host: Host, amount: number): string {
  if (host === 'dapi') return String(amount);
  return host === 'fapi' ? decimal(amount, 3) : `${decimal(amount, 3)}00000`;
}

/** COIN-M, which counts contracts, has coins where the others have quote currency. */
function quoteText(host: Host, amount: number): string {
  if (host === 'dapi') return decimal(amount * 200_000, 8);
  return host === 'fapi' ? decimal(amount * 5_000_000, 5) : `${decimal(amount * 5_000_000, 5)}000`;
}

function priceAt(seed: number, at: number): number {
  return 500_000 + (mix(seed, at) % 20_000);
}

export interface AggTrade {
  readonly a: number;
  readonly p: string;
  readonly q: string;
  /** Only USD-M. */
  readonly nq?: string;
  readonly f: number;
  readonly l: number;
  readonly T: number;
  readonly m: boolean;
  /** Only spot. */
  readonly M?: boolean;
}

/** By its number, which counts from 1. */
function aggTrade(symbol: VenueSymbol, id: number): AggTrade {
  return JSON.parse(tradeWriter(symbol)(id)) as AggTrade;
}

/** Those with a time from here to there, both inclusive. */
export function* aggTrades(symbol: VenueSymbol, fromMs: number, toMs: number): Generator<AggTrade> {
  for (let id = firstTrade(symbol, fromMs); id < firstTrade(symbol, toMs + 1); id += 1)
    yield aggTrade(symbol, id);
}

/** The number of the first trade at this time or later; trades after the last one have numbers too, and no data. */
export function firstTrade(symbol: VenueSymbol, at: number): number {
  const every = everyOf(symbol);
  const timeOf = tradeClock(symbol);
  let id = Math.max(1, Math.floor((Math.min(at, endOf(symbol)) - firstOf(symbol)) / every) - 1);
  while (timeOf(id) < Math.min(at, endOf(symbol))) id += 1;
  return id;
}

function everyOf({ tradeEveryMs = 5000 }: VenueSymbol): number {
  return tradeEveryMs;
}

/** One trade in each slot, but every fourth pair shares its time, so paging by time alone loses the second trade. */
export function tradeClock(symbol: VenueSymbol): (id: number) => number {
  const every = everyOf(symbol);
  const first = firstOf(symbol);
  const seed = hashText(`${symbol.host}/trades/${symbol.symbol}`);
  return (id) => {
    const slot = mix(seed, id >> 1) % 4 === 0 ? Math.max(1, id & ~1) : id;
    return first + (slot - 1) * every + (mix(seed + 1, slot) % every);
  };
}

export function tradeWriter(symbol: VenueSymbol): (id: number) => string {
  const { host } = symbol;
  const timeOf = tradeClock(symbol);
  const seed = hashText(`${host}/trades/${symbol.symbol}`);
  const pad = PAD[host];
  // The trades of an aggregate, one to three, follow those of the one before it.
  const firstId = (id: number): number => 2 * id - 1 + (mix(seed + 2, id) & 1);
  return (id) => {
    const hash = mix(seed, id);
    const price = `${decimal(500_000 + (hash % 20_000), 1)}${pad}`;
    const amount = amountText(host, 1 + (mix(hash, 1) % 5000));
    const net = host === 'fapi' ? `,"nq":"${amount}"` : '';
    const best = host === 'spot' ? ',"M":true' : '';
    return `{"a":${id},"p":"${price}","q":"${amount}"${net},"f":${firstId(id)},"l":${firstId(id + 1) - 1},"T":${timeText(timeOf(id))},"m":${hash % 2 === 0}${best}}`;
  };
}
