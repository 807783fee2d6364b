import { describe, expect, it } from 'vitest';
import type { Cadence, Series } from '../../../src/model/task.js';
import { cadencesOf, urlPathOf } from '../../../src/exchange/keys.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { period, specOf } from '../../helpers/conversion.js';

const exchange = loadBinance();
const KLINES: Series = { market: 'spot', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const METRICS: Series = { market: 'um', dataset: 'metrics', symbol: 'BTCUSDT' };
const FUNDING: Series = { market: 'cm', dataset: 'fundingRate', symbol: 'BTCUSD_PERP' };
const CHINESE: Series = { market: 'um', dataset: 'klines', interval: '1mo', symbol: '币安人生USDT' };

it.each<[Series, string, string]>([
  [KLINES, '2024-01-15', 'data/spot/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2024-01-15.zip'],
  [KLINES, '2024-01', 'data/spot/monthly/klines/BTCUSDT/1m/BTCUSDT-1m-2024-01.zip'],
  [METRICS, '2024-01-15', 'data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2024-01-15.zip'],
  [FUNDING, '2024-01', 'data/futures/cm/monthly/fundingRate/BTCUSD_PERP/BTCUSD_PERP-fundingRate-2024-01.zip'],
  [CHINESE, '2026-09', 'data/futures/um/monthly/klines/币安人生USDT/1mo/币安人生USDT-1mo-2026-09.zip'],
])('the key of a period is that of the archive, and says the period again: %j %s', (series, label, key) => {
  const of = period(label);
  expect(exchange.archive.objectKey(series, of)).toBe(key);
  expect(exchange.archive.periodOf(series, of.cadence)(key)).toEqual(of);
});

describe('keys that no calendar asks for have no period', () => {
  it.each<[Cadence, string]>([
    ['monthly', 'BTCUSDT-1m-2020-8.zip'],
    ['monthly', 'part-00000-0fae7358-a956-4804-a6d4-1682c07a5127-c000.zip'],
    ['monthly', 'BTCUSDT-1m-2024-01-15.zip'],
    ['daily', 'BTCUSDT-1m-2024-01-15.zip.CHECKSUM'],
    ['daily', 'BTCUSDT-1m-2024-02-30.zip'],
    ['daily', 'BTCUSDT-1h-2024-01-15.zip'],
    ['daily', 'ETHUSDT-1m-2024-01-15.zip'],
    ['daily', 'BTCUSDT-1m-2024-01-15.csv'],
    ['daily', 'sub/BTCUSDT-1m-2024-01-15.zip'],
    ['daily', 'BTCUSDT-1m-.zip'],
  ])('%s %s', (cadence, name) => {
    const prefix = exchange.archive.seriesPrefix(KLINES, cadence);
    expect(exchange.archive.periodOf(KLINES, cadence)(prefix + name)).toBeUndefined();
  });

  it('nor has a key of another folder', () => {
    const key = exchange.archive.objectKey(KLINES, period('2024-01-15'));
    expect(exchange.archive.periodOf({ ...KLINES, market: 'um' }, 'daily')(key)).toBeUndefined();
  });
});

it('a URL path has every segment percent-encoded and its slashes kept', () => {
  const path = urlPathOf('data/spot/币安人生USDT/a b#?%.zip');
  expect(path).toBe('data/spot/%E5%B8%81%E5%AE%89%E4%BA%BA%E7%94%9FUSDT/a%20b%23%3F%25.zip');
  expect(new URL(`http://host/${path}`).pathname).toBe(`/${path}`);
});

it('the member is named like its zip', () => {
  expect(exchange.archive.packing.rowsName(exchange.archive.objectKey(CHINESE, period('2026-09')))).toBe(
    '币安人生USDT-1mo-2026-09.csv',
  );
});

it('a dataset prefix lists symbols', () => {
  expect(exchange.archive.datasetPrefix('cm', 'daily', 'klines')).toBe('data/futures/cm/daily/klines/');
});

it('intervals that exist only by month have no daily objects', () => {
  const spot = specOf('spot', 'klines');
  expect(cadencesOf(spot, '1m')).toEqual(['daily', 'monthly']);
  expect(cadencesOf(spot, '1w')).toEqual(['monthly']);
  expect(cadencesOf(spot, '7m')).toEqual([]);
  expect(cadencesOf(specOf('um', 'metrics'), undefined)).toEqual(['daily']);
});
