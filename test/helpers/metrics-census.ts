/** The statistics of a lake as counts and sums, and its fundings row by row, beside those that the venue has of the same days. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { fundingEvents, statisticWriter } from './rest-venue-rows.js';
import { endOf, firstOf } from './rest-venue-types.js';
import type { VenueSymbol } from './rest-venue-types.js';
import { sql } from './sql.js';

interface StatisticColumns {
  readonly dataset: string;
  /** The name of the dataset in the path of the exchange. */
  readonly route: string;
  /** Fields of the exchange, and their columns in the lake. */
  readonly columns: readonly (readonly [string, string])[];
}

const ACCOUNTS = [
  ['longAccount', 'long_account'],
  ['shortAccount', 'short_account'],
  ['longShortRatio', 'long_short_ratio'],
] as const;

export const OPEN_INTEREST: StatisticColumns = {
  dataset: 'openInterestHist',
  route: 'openInterestHist',
  columns: [
    ['sumOpenInterest', 'sum_open_interest'],
    ['sumOpenInterestValue', 'sum_open_interest_value'],
    ['CMCCirculatingSupply', 'cmc_circulating_supply'],
  ],
};

/** The statistics of USD-M that `cryptodl metrics` downloads by default. */
export const STATISTICS: readonly StatisticColumns[] = [
  OPEN_INTEREST,
  { dataset: 'topLongShortAccountRatio', route: 'topLongShortAccountRatio', columns: ACCOUNTS },
  { dataset: 'topLongShortPositionRatio', route: 'topLongShortPositionRatio', columns: ACCOUNTS },
  { dataset: 'globalLongShortAccountRatio', route: 'globalLongShortAccountRatio', columns: ACCOUNTS },
  {
    dataset: 'takerLongShortRatio',
    route: 'takerlongshortRatio',
    columns: [
      ['buyVol', 'buy_volume'],
      ['sellVol', 'sell_volume'],
      ['buySellRatio', 'buy_sell_ratio'],
    ],
  },
];

/** Counts and a weighted sum of one series: other rows have another census, almost always. Times are epoch milliseconds. */
export interface Census {
  readonly symbol: string;
  readonly rows: number;
  /** Different times. */
  readonly times: number;
  readonly first: number;
  readonly last: number;
  /** Of every value of every row, weighted with its column and its time. */
  readonly sum: number;
}

/** Epoch milliseconds `[from, to)`. */
export interface Days {
  readonly from: number;
  readonly to: number;
}

const STEP_MS = 300_000;
/** Values have at most four decimals. Each is multiplied by UNITS; its remainder after a division by DIVISOR is summed up. */
const UNITS = 10_000;
const DIVISOR = 1_000_003;
const TIME_WEIGHTS = 997;

/** What the lake has of a statistic at 5 minutes, symbol by symbol. */
export async function censusOfLake(lake: string, { dataset, columns }: StatisticColumns): Promise<Census[]> {
  const files = filesOf(lake, dataset, 'interval=5m/symbol=*');
  const values = columns.map(
    ([, column], at) => `(round(${column} * ${UNITS})::BIGINT % ${DIVISOR}) * ${at + 1}`,
  );
  const slot = `(epoch_ms(timestamp) // ${STEP_MS} % ${TIME_WEIGHTS} + 1)`;
  const rows = await sql(
    `SELECT symbol, count(*) AS rows, count(DISTINCT timestamp) AS times, min(epoch_ms(timestamp)) AS first,
            max(epoch_ms(timestamp)) AS last, sum((${values.join(' + ')}) * ${slot}) AS sum
     FROM read_parquet('${files}', hive_partitioning = true) GROUP BY symbol ORDER BY symbol`,
  );
  return rows.map(({ symbol, ...numbers }) => ({
    symbol: String(symbol),
    rows: Number(numbers['rows']),
    times: Number(numbers['times']),
    first: Number(numbers['first']),
    last: Number(numbers['last']),
    sum: Number(numbers['sum']),
  }));
}

/** What the venue has of a statistic in these days. A symbol without rows has a census of 0 rows; the lake has none for it. */
export function censusOfVenue(
  { route, columns }: StatisticColumns,
  symbols: readonly VenueSymbol[],
  days: Days,
): Census[] {
  return symbols
    .map((symbol) => {
      const write = statisticWriter(route, symbol);
      const first = Math.ceil(Math.max(days.from, firstOf(symbol)) / STEP_MS) * STEP_MS;
      const end = Math.min(days.to, endOf(symbol));
      let rows = 0;
      let sum = 0;
      for (let at = first; at < end; at += STEP_MS) {
        const row = JSON.parse(write(at)) as Readonly<Record<string, string>>;
        let value = 0;
        columns.forEach(([field], index) => {
          value += (Math.round(Number(row[field]) * UNITS) % DIVISOR) * (index + 1);
        });
        sum += value * (((at / STEP_MS) % TIME_WEIGHTS) + 1);
        rows += 1;
      }
      return { symbol: symbol.symbol, rows, times: rows, first, last: first + (rows - 1) * STEP_MS, sum };
    })
    .sort((a, b) => (a.symbol < b.symbol ? -1 : 1));
}

/** Time, rate and mark price. */
export type FundingRow = readonly [number, number, number | null];

/** All fundings of the lake by symbol, in order of time. */
export async function fundingsOfLake(lake: string): Promise<Map<string, FundingRow[]>> {
  const files = filesOf(lake, 'fundingRate', 'symbol=*');
  const rows = await sql(
    `SELECT symbol, epoch_ms(calc_time) AS at, last_funding_rate AS rate, mark_price AS price
     FROM read_parquet('${files}', hive_partitioning = true) ORDER BY symbol, calc_time`,
  );
  const bySymbol = new Map<string, FundingRow[]>();
  for (const { symbol, at, rate, price } of rows) {
    const row: FundingRow = [Number(at), Number(rate), price === null ? null : Number(price)];
    const known = bySymbol.get(String(symbol));
    if (known === undefined) bySymbol.set(String(symbol), [row]);
    else known.push(row);
  }
  return bySymbol;
}

/** The fundings that the venue has of these days by symbol, in order of time. A symbol without fundings has an empty list. */
export function fundingsOfVenue(
  symbols: readonly VenueSymbol[],
  { from, to }: Days,
): Map<string, FundingRow[]> {
  return new Map(
    symbols.map((symbol) => [
      symbol.symbol,
      fundingEvents(symbol, from, to - 1).map(({ fundingTime, fundingRate, markPrice }): FundingRow => {
        return [fundingTime, Number(fundingRate), markPrice === '' ? null : Number(markPrice)];
      }),
    ]),
  );
}

/** Expects every row of the days in the lake, once, and no other. */
export async function expectWhole(lake: string, symbols: readonly VenueSymbol[], days: Days): Promise<void> {
  for (const statistic of STATISTICS)
    expect(await censusOfLake(lake, statistic)).toEqual(censusOfVenue(statistic, symbols, days));
  expect(await fundingsOfLake(lake)).toEqual(fundingsOfVenue(symbols, days));
}

function filesOf(lake: string, dataset: string, below: string): string {
  const folder = join(lake, 'binance', 'um', dataset);
  if (!existsSync(folder)) throw new Error(`${lake} has no ${dataset}`);
  return join(folder, below, '*.parquet');
}
