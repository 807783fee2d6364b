/** Base, quote and settle asset of symbols. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { pairOf } from '../../../src/exchange/pairs.js';
import { REST_SAMPLES, restSamplesMissing } from '../../helpers/samples.js';

const RECORDED = ['api__v3', 'fapi__v1', 'dapi__v1'].map(
  (host) => `recorded-cryptofeed/${host}__exchangeInfo.json`,
);
const missing = restSamplesMissing(...RECORDED);
if (missing !== undefined) process.stderr.write(`recorded symbols: ${missing}\n`);

const exchange = loadBinance();

describe('pairOf', () => {
  it.each([
    ['spot', 'BTCUSDT', { base: 'BTC', quote: 'USDT' }],
    ['spot', 'ADAEUR', { base: 'ADA', quote: 'EUR' }],
    ['spot', 'BTCAEUR', { base: 'BTC', quote: 'AEUR' }],
    ['spot', 'TUSDUSDT', { base: 'TUSD', quote: 'USDT' }],
    ['um', '1000SHIBUSDT', { base: '1000SHIB', quote: 'USDT', settle: 'USDT' }],
    ['um', '币安人生USDT', { base: '币安人生', quote: 'USDT', settle: 'USDT' }],
    ['um', 'BTCUSDT_240329', { base: 'BTC', quote: 'USDT', settle: 'USDT', expiry: '240329' }],
    ['cm', 'BTCUSD_PERP', { base: 'BTC', quote: 'USD', settle: 'BTC' }],
    ['cm', 'ADAUSD_200925', { base: 'ADA', quote: 'USD', settle: 'ADA', expiry: '200925' }],
    ['cm', 'AAVEUSD', { base: 'AAVE', quote: 'USD', settle: 'AAVE' }],
  ])('of %s %s', (market, symbol, pair) => {
    expect(pairOf(exchange, market, symbol)).toEqual(pair);
  });

  it.each([
    ['um', 'CVCUSDTSETTLED'],
    ['um', 'ICPUSDT_SETTLED'],
    ['um', 'ICPUSDT_SETTLED1'],
    ['spot', 'USDT'],
    ['spot', 'BTCXYZ'],
    ['option', 'BTC-240329-60000-C'],
    ['toString', 'BTCUSDT'],
  ])('is undefined for %s %s', (market, symbol) => {
    expect(pairOf(exchange, market, symbol)).toBeUndefined();
  });

  it('prefers known assets to the list of quote assets', () => {
    const known = new Map([['BTCUSDT_240329', { base: 'BTCU', quote: 'SDT' }]]);
    expect(pairOf(exchange, 'um', 'BTCUSDT_240329', known)).toEqual({
      base: 'BTCU',
      quote: 'SDT',
      settle: 'SDT',
      expiry: '240329',
    });
  });
});

describe.skipIf(missing !== undefined)('recorded symbols of the exchange', () => {
  it.each([
    ['spot', 1695],
    ['um', 122],
    ['cm', 36],
  ])('have the assets that exchangeInfo names: %s', (market, count) => {
    const at = ['spot', 'um', 'cm'].indexOf(market);
    const symbols = symbolsIn(JSON.parse(readFileSync(join(REST_SAMPLES, RECORDED[at] ?? ''), 'utf8')));
    expect(symbols).toHaveLength(count);
    const wrong = symbols.filter(({ symbol, baseAsset, quoteAsset, marginAsset }) => {
      const pair = pairOf(exchange, market, symbol);
      return pair?.base !== baseAsset || pair.quote !== quoteAsset || pair.settle !== marginAsset;
    });
    expect(wrong).toEqual([]);
  });
});

interface RecordedSymbol {
  readonly symbol: string;
  readonly baseAsset: string;
  readonly quoteAsset: string;
  readonly marginAsset?: string;
}

/** The list of symbols anywhere in a recording. */
function symbolsIn(content: unknown): RecordedSymbol[] {
  if (typeof content !== 'object' || content === null) return [];
  if ('symbols' in content && Array.isArray(content.symbols)) return content.symbols as RecordedSymbol[];
  return (
    Object.values(content)
      .map(symbolsIn)
      .find((symbols) => symbols.length > 0) ?? []
  );
}
