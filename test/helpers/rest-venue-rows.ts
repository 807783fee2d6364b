/** The statistics and fundings that a REST venue has: functions of symbol and time, for the venue and for its tests. */
import type { VenueSymbol } from './rest-venue-types.js';
import { contractOf, deliveryOf, endOf, firstOf, HOUR_MS, pairOf } from './rest-venue-types.js';

export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** Uniform in 32 bits; `value` may have 53. */
export function mix(seed: number, value: number): number {
  let hash = Math.imul(seed ^ value, 0x9e3779b1) ^ Math.imul(value / 2 ** 32, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** `0000` to `9999`: numbers above 31 bits are slow to print, so that all long ones are put together of these. */
const FOUR = Array.from({ length: 10_000 }, (_, value) => String(value).padStart(4, '0'));

function lastDigits(value: number, digits: number): string {
  if (digits <= 4) return (FOUR[value] ?? '').slice(4 - digits);
  const above = Math.floor(value / 10_000);
  return `${lastDigits(above, digits - 4)}${FOUR[value - above * 10_000]}`;
}

/** `decimal(-5, 4)` is `-0.0005`. */
export function decimal(units: number, digits: number): string {
  if (units < 0) return `-${decimal(-units, digits)}`;
  const unit = 10 ** digits;
  const whole = Math.floor(units / unit);
  return `${whole}.${lastDigits(units - whole * unit, digits)}`;
}

/** Epoch milliseconds. */
export function timeText(ms: number): string {
  const above = Math.floor(ms / 100_000_000);
  return above < 1 ? String(ms) : `${above}${lastDigits(ms - above * 100_000_000, 8)}`;
}

interface Statistic {
  /** What it is of, hence what it is asked by and what its rows name: the taker ratio names nothing. */
  readonly of: 'symbol' | 'unnamed' | 'pair' | 'contract';
  readonly fields: readonly string[];
  readonly values: (hash: number, contract: string) => readonly string[];
}

const accounts: Statistic['values'] = (hash) => {
  const long = 2000 + (hash % 6000);
  return [decimal(long, 4), decimal(10_000 - long, 4), ratio(long, 10_000 - long)];
};

const basis: Statistic = {
  of: 'contract',
  fields: ['indexPrice', 'futuresPrice', 'basis', 'basisRate', 'annualizedBasisRate'],
  values: (hash, contract) => {
    const index = 8_000_000_000_000 + (hash % 900_000_000) * 1000;
    const futures = Math.round(index / 1e6) + (mix(hash, 1) % 2001) - 1000;
    const gap = futures * 1e6 - index;
    const rate = Math.round((gap / index) * 10_000);
    const annualized = contract === 'PERPETUAL' ? '' : decimal(rate * 4, 4);
    return [decimal(index, 8), decimal(futures, 2), decimal(gap, 8), decimal(rate, 4), annualized];
  },
};

/** The fields differ between the hosts, and so does what they are of. */
const STATISTICS: Readonly<Record<'fapi' | 'dapi', Readonly<Record<string, Statistic>>>> = {
  fapi: {
    openInterestHist: {
      of: 'symbol',
      fields: ['sumOpenInterest', 'sumOpenInterestValue', 'CMCCirculatingSupply'],
      values: (hash) => [
        `${decimal(90_000_000 + (hash % 10_000_000), 3)}00000`,
        `${decimal(10_000_000_000_000 + mix(hash, 1) * 1000, 4)}0000`,
        '20094037.00000000',
      ],
    },
    topLongShortAccountRatio: ratioOf('symbol', 'longAccount', 'shortAccount'),
    topLongShortPositionRatio: ratioOf('symbol', 'longAccount', 'shortAccount'),
    globalLongShortAccountRatio: ratioOf('symbol', 'longAccount', 'shortAccount'),
    takerlongshortRatio: {
      of: 'unnamed',
      fields: ['buyVol', 'sellVol', 'buySellRatio'],
      values: (hash) => {
        const buy = 1_000_000 + (hash % 1_000_000);
        const sell = 1_000_000 + (mix(hash, 1) % 1_000_000);
        return [decimal(buy, 4), decimal(sell, 4), ratio(buy, sell)];
      },
    },
    basis,
  },
  dapi: {
    openInterestHist: {
      of: 'contract',
      fields: ['sumOpenInterest', 'sumOpenInterestValue'],
      values: (hash) => [
        `${2_000_000 + (hash % 1_000_000)}.00000000`,
        decimal(300_000_000_000 + mix(hash, 1), 8),
      ],
    },
    topLongShortAccountRatio: ratioOf('pair', 'longAccount', 'shortAccount'),
    topLongShortPositionRatio: ratioOf('pair', 'longPosition', 'shortPosition'),
    globalLongShortAccountRatio: ratioOf('pair', 'longAccount', 'shortAccount'),
    takerBuySellVol: {
      of: 'contract',
      fields: ['takerBuyVol', 'takerSellVol', 'takerBuyVolValue', 'takerSellVolValue'],
      values: (hash) => {
        const buy = 10_000 + (hash % 90_000);
        const sell = 10_000 + (mix(hash, 1) % 90_000);
        return [`${buy}`, `${sell}`, decimal(buy >> 3, 4), decimal(sell >> 3, 4)];
      },
    },
    basis,
  },
};

function ratioOf(of: 'symbol' | 'pair', long: string, short: string): Statistic {
  return { of, fields: [long, short, 'longShortRatio'], values: accounts };
}

function ratio(above: number, below: number): string {
  return decimal(Math.round((above / below) * 10_000), 4);
}

/** Undefined when the host has no such statistic. */
export function statisticOf(dataset: string, host: string): Statistic | undefined {
  return host === 'spot' ? undefined : STATISTICS[host as 'fapi' | 'dapi'][dataset];
}

interface Series {
  readonly kind: Statistic;
  readonly seed: number;
  readonly contract: string;
  readonly named: readonly (readonly [string, string])[];
}

function seriesOf(dataset: string, symbol: VenueSymbol): Series {
  const kind = statisticOf(dataset, symbol.host);
  if (kind === undefined) throw new Error(`${symbol.host} has no ${dataset}`);
  const pair = pairOf(symbol);
  const contract = contractOf(symbol);
  const names = {
    symbol: [['symbol', symbol.symbol]],
    unnamed: [],
    pair: [['pair', pair]],
    contract: [
      ['pair', pair],
      ['contractType', contract],
    ],
  } as const;
  const subject = { symbol: symbol.symbol, unnamed: symbol.symbol, pair, contract: `${pair}/${contract}` };
  const seed = hashText(`${symbol.host}/${dataset}/${subject[kind.of]}`);
  return { kind, seed, contract, named: names[kind.of] };
}

/**
 * A row of `/futures/data` by its JSON names, all as text. The same for every period. What COIN-M has of all contracts
 * of a pair together is asked for by a symbol with the contract type `ALL`.
 */
export function statistic(dataset: string, symbol: VenueSymbol, timestampMs: number): Record<string, string> {
  const series = seriesOf(dataset, symbol);
  const { fields, values } = series.kind;
  const texts = values(mix(series.seed, timestampMs), series.contract);
  return {
    ...Object.fromEntries(series.named),
    ...Object.fromEntries(fields.map((name, at) => [name, texts[at] ?? ''])),
    timestamp: String(timestampMs),
  };
}

/** The same as JSON. The order of its keys changes from row to row, and some timestamps are strings. */
export function statisticWriter(dataset: string, symbol: VenueSymbol): (timestampMs: number) => string {
  const { kind, seed, contract, named } = seriesOf(dataset, symbol);
  const fixed = named.map(([name, value]) => `"${name}":"${value}"`);
  const keys = kind.fields.map((name) => `"${name}":"`);
  const orders = ordersOf(fixed.length + keys.length + 1);
  return (timestampMs) => {
    const hash = mix(seed, timestampMs);
    const values = kind.values(hash, contract);
    const parts = [...fixed];
    for (let at = 0; at < keys.length; at += 1) parts.push(`${keys[at]}${values[at]}"`);
    const time = timeText(timestampMs);
    parts.push(hash % 16 === 3 ? `"timestamp":"${time}"` : `"timestamp":${time}`);
    const order = orders[(hash >>> 4) % orders.length] ?? [];
    let row = '';
    for (const at of order) row += `,${parts[at]}`;
    return `{${row.slice(1)}}`;
  };
}

/** Some of the ways to order so many things. */
function ordersOf(length: number): number[][] {
  return Array.from({ length: 16 }, (_, seed) =>
    Array.from({ length }, (_unused, at) => at).sort((a, b) => mix(seed, a) - mix(seed, b)),
  );
}

export interface FundingEvent {
  readonly fundingTime: number;
  readonly fundingRate: string;
  /** Blank before 2023-10-31T08:00Z. */
  readonly markPrice: string;
  readonly rateType: string;
}

const LATEST_MS = 47;
const MARK_PRICES_FROM = Date.UTC(2023, 9, 31, 8);

/** In ascending order, both ends inclusive, up to `most` of them. What has a day of delivery has none. */
export function fundingEvents(
  symbol: VenueSymbol,
  fromMs: number,
  toMs: number,
  most = Number.POSITIVE_INFINITY,
): FundingEvent[] {
  const events: FundingEvent[] = [];
  if (deliveryOf(symbol) !== undefined) return events;
  const stepMs = (symbol.fundingHours ?? 8) * HOUR_MS;
  const seed = hashText(`${symbol.host}/funding/${symbol.symbol}`);
  const first = Math.max(fromMs - LATEST_MS, firstOf(symbol));
  for (let at = Math.ceil(first / stepMs) * stepMs; at <= toMs && at < endOf(symbol); at += stepMs) {
    if (events.length >= most) break;
    const hash = mix(seed, at);
    // Every other one is exact.
    const fundingTime = at + (hash % 2) * ((hash >>> 1) % (LATEST_MS + 1));
    if (fundingTime < fromMs || fundingTime > toMs) continue;
    events.push({
      fundingTime,
      fundingRate: hash % 3 === 0 ? '0.00010000' : decimal((mix(hash, 1) % 60_000) - 20_000, 8),
      markPrice: at < MARK_PRICES_FROM ? '' : decimal(8_000_000_000_000 + mix(hash, 2) * 100, 8),
      rateType: hash % 64 === 9 ? 'Special' : 'Regular',
    });
  }
  return events;
}
