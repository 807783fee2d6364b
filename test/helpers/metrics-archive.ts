/** What the archive publishes of the rows that a REST venue has: the same content in the archive's own shapes. */
import { publish } from './published.js';
import { kline } from './rest-venue-market.js';
import { fundingEvents, statistic } from './rest-venue-rows.js';
import { DAY_MS } from './rest-venue-types.js';
import type { VenueSymbol } from './rest-venue-types.js';

const HEADER =
  'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio';

/** Columns of the archive's metrics, by the statistic that each is. */
const FIELDS: readonly (readonly [dataset: string, field: string])[] = [
  ['openInterestHist', 'sumOpenInterest'],
  ['openInterestHist', 'sumOpenInterestValue'],
  ['topLongShortAccountRatio', 'longShortRatio'],
  ['topLongShortPositionRatio', 'longShortRatio'],
  ['globalLongShortAccountRatio', 'longShortRatio'],
  ['takerlongshortRatio', 'buySellRatio'],
];

/** Each day is made once: many tests of a file publish the same days. */
const made = new Map<string, string>();

/** The numbers of a row of metrics, in column order. */
export function metricsAt(symbol: VenueSymbol, at: number): number[] {
  return FIELDS.map(([dataset, field]) => Number(statistic(dataset, symbol, at)[field]));
}

export interface MetricsOptions {
  /** Added to every label. */
  readonly shiftMs?: number;
  /** Open interest of the first so many rows is another one. */
  readonly differing?: number;
}

/** The archive prints more digits of the ratios than REST does. */
export function publishMetrics(
  folder: string,
  symbol: VenueSymbol,
  day: number,
  options: MetricsOptions = {},
): void {
  const id = JSON.stringify([symbol, day, options]);
  const text = made.get(id) ?? metricsText(symbol, day, options);
  made.set(id, text);
  const name = `${symbol.symbol}-metrics-${dayText(day)}.zip`;
  publish(folder, `data/futures/um/daily/metrics/${symbol.symbol}/${name}`, text);
}

function metricsText(
  symbol: VenueSymbol,
  day: number,
  { shiftMs = 0, differing = 0 }: MetricsOptions,
): string {
  const lines = Array.from({ length: 288 }, (_, index) => {
    const at = day + index * 300_000;
    const [interest = 0, ...others] = metricsAt(symbol, at);
    const label = new Date(at + shiftMs).toISOString().slice(0, 19).replace('T', ' ');
    const told = [index < differing ? interest * 2 : interest, ...others.map((value) => value + 0.00001)];
    return [label, symbol.symbol, ...told.map((value) => value.toFixed(8))].join(',');
  });
  return `${[HEADER, ...lines].join('\n')}\n`;
}

/** `month`: its first day. */
export function publishFunding(folder: string, symbol: VenueSymbol, month: number): void {
  const start = new Date(month);
  const end = Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1);
  const lines = fundingEvents(symbol, month, end - 1).map(
    ({ fundingTime, fundingRate }) => `${fundingTime},${symbol.fundingHours ?? 8},${fundingRate}`,
  );
  const key = `data/futures/um/monthly/fundingRate/${symbol.symbol}/${symbol.symbol}-fundingRate-${dayText(month).slice(0, 7)}.zip`;
  publish(folder, key, `${['calc_time,funding_interval_hours,last_funding_rate', ...lines].join('\n')}\n`);
}

export interface KlinesOptions {
  /** Of the month; without it one day. */
  readonly days?: number;
  /** Which bars are not in it. */
  readonly lacks?: readonly number[];
}

/** Spot since 2025 has microseconds and no header; futures have milliseconds and one. */
export function publishKlines(
  folder: string,
  symbol: VenueSymbol,
  interval: string,
  stepMs: number,
  day: number,
  { days, lacks }: KlinesOptions = {},
): void {
  const isSpot = symbol.host === 'spot';
  const length = ((days ?? 1) * DAY_MS) / stepMs;
  const lines = Array.from({ length }, (_, index) => {
    const cells = [...kline(symbol, interval, day + index * stepMs)];
    if (isSpot) {
      cells[0] = `${cells[0] ?? ''}000`;
      cells[6] = `${cells[6] ?? ''}999`;
    }
    return cells.join(',');
  }).filter((_, index) => lacks?.includes(index) !== true);
  const header = isSpot
    ? []
    : [
        'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore',
      ];
  const place = isSpot ? 'spot' : 'futures/um';
  const [cadence, period] =
    days === undefined ? ['daily', dayText(day)] : ['monthly', dayText(day).slice(0, 7)];
  const key = `data/${place}/${cadence}/klines/${symbol.symbol}/${interval}/${symbol.symbol}-${interval}-${period}.zip`;
  publish(folder, key, `${[...header, ...lines].join('\n')}\n`);
}

function dayText(day: number): string {
  return new Date(day).toISOString().slice(0, 10);
}
