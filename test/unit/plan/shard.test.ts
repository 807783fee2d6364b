import { describe, expect, it } from 'vitest';
import type { Series } from '../../../src/model/task.js';
import { fnv1a, isInShard, shard } from '../../../src/plan/options/shard.js';
import { randoms } from '../../helpers/randoms.js';

const VENUE = { name: 'binance' };

function series(symbol: string, dataset = 'klines', interval: string | undefined = '1m'): Series {
  return { market: 'um', dataset, ...(interval === undefined ? {} : { interval }), symbol };
}

function shardOf(one: Series, count: number): number[] {
  const all = Array.from({ length: count }, (_, index) => index);
  return all.filter((index) => isInShard({ index, count, text: `${index}/${count}` }, VENUE, one));
}

describe('the shard of a series', () => {
  it('hashes with the published values of FNV-1a', () => {
    expect(['', 'a', 'foobar'].map(fnv1a)).toEqual([0x811c9dc5, 0xe40c292c, 0xbf9cf968]);
  });

  // A change of these numbers would let shards of two versions of the program write the same series, and leave others out.
  it.each<[Series, number]>([
    [series('BTCUSDT'), 8],
    [series('BTCUSDT', 'klines', '1h'), 7],
    [series('币安人生USDT'), 7],
    [{ market: 'spot', dataset: 'trades', symbol: 'ETHBTC' }, 11],
    [{ market: 'option', dataset: 'BVOLIndex', symbol: 'BTCBVOLUSDT' }, 6],
    [{ market: 'cm', dataset: 'klines', interval: '1d', symbol: 'BTCUSD_PERP' }, 9],
  ])('of 12 never changes: %j is in %i', (one, expected) => {
    expect(shardOf(one, 12)).toEqual([expected]);
  });

  it.each([1, 2, 3, 4, 7, 8, 12, 16, 30])('is one of %i, and 700 symbols are spread evenly', (count) => {
    const random = randoms(7);
    const letters = (length: number): string =>
      Array.from({ length }, () => String.fromCharCode(65 + Math.floor(random() * 26))).join('');
    const symbols = new Set<string>();
    while (symbols.size < 700) symbols.add(`${letters(2 + Math.floor(random() * 4))}USDT`);
    const sizes = new Map<number, number>();
    for (const symbol of symbols) {
      const found = shardOf(series(symbol), count);
      expect(found).toHaveLength(1);
      const [index = -1] = found;
      sizes.set(index, (sizes.get(index) ?? 0) + 1);
    }
    const mean = 700 / count;
    // Four standard deviations of a binomial distribution.
    const margin = 4 * Math.sqrt(mean * (1 - 1 / count));
    for (let index = 0; index < count; index += 1)
      expect(Math.abs((sizes.get(index) ?? 0) - mean)).toBeLessThanOrEqual(margin);
  });

  it('is every shard without the flag', () => {
    expect(isInShard(undefined, VENUE, series('BTCUSDT'))).toBe(true);
  });
});

describe('--shard', () => {
  it.each([
    ['0/1', { index: 0, count: 1, text: '0/1' }],
    ['3/12', { index: 3, count: 12, text: '3/12' }],
    ['03/12', { index: 3, count: 12, text: '3/12' }],
    ['9999/10000', { index: 9999, count: 10_000, text: '9999/10000' }],
  ])('takes %s', (text, expected) => {
    expect(shard(text, '--shard')).toEqual(expected);
  });
});
