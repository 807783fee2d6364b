import { describe, expect, it } from 'vitest';
import { readFacts } from '../../../src/exchange/facts.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import {
  archivedColumns,
  datasetsOf,
  findDataset,
  isArchived,
  isMade,
  isMetric,
  rowSeconds,
} from '../../../src/exchange/exchange-spec.js';
import { routesOf } from '../../../src/exchange/routes.js';
import { MARKETS } from '../../../src/exchange/names.js';
import { writtenColumns } from '../../../src/convert/columns.js';
import { period, specOf } from '../../helpers/conversion.js';

const exchange = loadBinance();
const DATASETS = MARKETS.flatMap((market) =>
  datasetsOf(exchange, market).map((spec) => ({ market, name: spec.name, spec })),
);

describe.each(DATASETS)('$market $name', ({ spec }) => {
  const columns = spec.columns.map((column) => column.name);

  it('writes no column that is named like a layer of its path', () => {
    const written = writtenColumns(spec).map((column) => column.name.toLowerCase());
    for (const layer of ['venue', 'market', 'dataset', 'interval', 'symbol'])
      expect(written).not.toContain(layer);
  });

  it('declares each column once, and the columns by which it sorts', () => {
    expect(new Set(columns).size).toBe(columns.length);
    for (const named of [...spec.sort, ...Object.values(spec.values ?? {}).flat(2)])
      expect(columns).toContain(named);
  });

  it('says when each row was, and sorts by columns that are never blank', () => {
    expect(spec.columns.some(({ type }) => ['time', 'datetime', 'date'].includes(type))).toBe(true);
    const sorting = spec.columns.filter((column) => spec.sort.includes(column.name));
    expect(sorting.map((column) => column.nullable)).toEqual(sorting.map(() => false));
  });

  it('is in the archive, by day or by month, or else REST alone has it, for cryptodl metrics, or the program makes it', () => {
    expect(isArchived(spec) || isMetric(spec)).toBe(spec.name !== 'bars');
    expect(isMade(spec)).toBe(spec.name === 'bars');
    const { daily = [], monthly = [] } = spec.intervals ?? {};
    if (spec.intervals !== undefined) expect([daily.length, monthly.length]).not.toContain(0);
  });

  it('has the columns that only REST fills behind those of the archive, and they may be blank', () => {
    const restOnly = spec.columns.slice(archivedColumns(spec).length);
    expect(restOnly.map((column) => [column.restOnly, column.nullable])).toEqual(
      restOnly.map(() => [true, true]),
    );
    if (!isArchived(spec)) expect(restOnly).toEqual([]);
  });
});

it.each(Object.entries(readFacts('binance.json').markets))(
  '%s changes and omits only columns of its datasets',
  (_, market) => {
    for (const [name, { omit, columns }] of Object.entries(market.datasets)) {
      const known = readFacts('binance-datasets.json')[name]?.columns.map((column) => column.name) ?? [];
      for (const column of [...omit, ...Object.keys(columns)]) expect(known).toContain(column);
    }
  },
);

const ofRest = DATASETS.filter(({ spec }) => spec.rest !== undefined);
it.each(ofRest)('$market $name has routes to hosts and buckets of the exchange', ({ market, name }) => {
  for (const { route } of routesOf(exchange, { market, dataset: name, symbol: 'X' })) {
    expect(Object.keys(exchange.hosts)).toContain(route.host);
    expect(Object.keys(exchange.buckets)).toContain(route.bucket);
  }
});

it('halts are of markets of the exchange', () => {
  for (const { market } of exchange.halts()) expect(Object.keys(exchange.markets)).toContain(market);
});

it.each(ofRest)('$market $name names a field of REST for every column', ({ spec }) => {
  const named = spec.columns.filter(({ field, type }) => field !== undefined || type === 'symbol');
  expect(named).toEqual(spec.columns);
});

const archived = DATASETS.filter(({ spec }) => isArchived(spec));
it.each(archived)('$market $name has keys below the folder of its market', ({ market, name, spec }) => {
  const interval = spec.intervals?.monthly[0];
  const series = { market, dataset: name, symbol: 'X', ...(interval === undefined ? {} : { interval }) };
  expect(exchange.archive.objectKey(series, period('2024-01'))).toMatch(
    new RegExp(`^data/${exchange.markets[market]?.path}/monthly/${name}/X/`),
  );
});

function names(market: 'spot' | 'um' | 'cm'): string {
  return specOf(market, 'klines')
    .columns.map((column) => column.name)
    .join(',');
}

it('klines have the columns of the um header in every market', () => {
  const header =
    'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore';
  expect([names('spot'), names('um'), names('cm')]).toEqual([header, header, header]);
});

describe('the number of rows of a period', () => {
  it.each([
    ['1s', 1],
    ['1m', 60],
    ['15m', 900],
    ['8h', 28_800],
    ['1d', 86_400],
  ])('is fixed for %s bars', (interval, seconds) => {
    expect(rowSeconds(specOf('spot', 'klines'), interval)).toBe(seconds);
  });

  it.each(['3d', '1w', '1mo', undefined])('is not for %s', (interval) => {
    expect(rowSeconds(specOf('spot', 'klines'), interval)).toBeUndefined();
  });

  it('is fixed for metrics and open for funding rates', () => {
    expect(rowSeconds(specOf('um', 'metrics'), undefined)).toBe(300);
    expect(rowSeconds(specOf('um', 'fundingRate'), undefined)).toBeUndefined();
  });
});

it('a name that is no dataset of a market is not found', () => {
  expect(findDataset(exchange, 'spot', 'metrics')).toBeUndefined();
  expect(findDataset(exchange, 'um', 'toString')).toBeUndefined();
  expect(findDataset(exchange, 'um', '__proto__')).toBeUndefined();
});

it('hosts and retry presets are usable', () => {
  for (const host of Object.values(exchange.hosts)) expect(new URL(host).protocol).toBe('https:');
  const { vision } = readFacts('retry-presets.json');
  expect(vision.retries).toBeGreaterThanOrEqual(1);
  expect(vision.maxDelayMs).toBeGreaterThanOrEqual(vision.baseDelayMs);
});
