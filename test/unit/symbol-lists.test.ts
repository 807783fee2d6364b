import { expect, it } from 'vitest';
import { isExactName, readPatterns, symbols } from '../../src/options/symbols.js';

it('takes a list of 200,000 symbols', async () => {
  const names = Array.from({ length: 200_000 }, (_, index) => `S${index}USDT`);
  const read = (): Promise<string> => Promise.resolve(names.join('\n'));
  expect((await readPatterns(symbols('@all.txt', '--symbols'), read)).names).toHaveLength(200_000);
  expect((await readPatterns(symbols('-', '--symbols'), read)).names).toHaveLength(200_000);
});

it.each(['BTCUSDT', '币安人生USDT', 'ETH-250328-3000-C', 'USDC_240628'])('%s is an exact name', (name) => {
  expect(isExactName(name)).toBe(true);
});

it.each(['', '*', 'BTC*', 'all', '-', '@secret', '!BTCUSDT', 'A,B', ' BTCUSDT', '../BTCUSDT', 'A\nB'])(
  '%j is no exact name, because --symbols reads it in another way',
  (name) => {
    expect(isExactName(name)).toBe(false);
  },
);
