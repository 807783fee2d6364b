import { expect, it } from 'vitest';
import { isExactName, readPatterns, symbols } from '../../../src/plan/options/symbols.js';

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

it.each([
  ['a column', 'period,symbol,rank\n2024-01-01,BTCUSDT,1\n2024-01-01,ETHUSDT,2\n2024-02-01,BTCUSDT,1\n'],
  ['one column', 'symbol\nBTCUSDT\n\nETHUSDT\n'],
  ['quotes and CRLF', '\uFEFF"symbol","rank"\r\n"BTCUSDT",1\r\n"ETHUSDT",2\r\n'],
  ['a comment', '# the members\nrank,symbol\n1,BTCUSDT # largest\n2,ETHUSDT\n'],
  ['no header', 'BTCUSDT, ETHUSDT\nBTCUSDT\n'],
])('takes the symbols of a CSV file with %s', async (_, content) => {
  const { names } = await readPatterns(symbols('@universe.csv', '--symbols'), () => Promise.resolve(content));
  expect(names).toEqual(['BTCUSDT', 'ETHUSDT']);
});
