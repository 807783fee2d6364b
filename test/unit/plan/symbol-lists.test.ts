import { expect, it } from 'vitest';
import { isExactName, symbolsOption } from '../../../src/plan/options/symbols.js';

it('takes a list of 200,000 symbols', async () => {
  const names = Array.from({ length: 200_000 }, (_, index) => `S${index}USDT`);
  const readList = (): Promise<string> => Promise.resolve(names.join('\n'));
  const patterns = ['@all.txt', '-'].map((text) => symbolsOption(text, '--symbols', { readList }).patterns());
  for (const found of await Promise.all(patterns)) expect(found.names).toHaveLength(200_000);
});

it('a list is read when the patterns are asked for, and once', async () => {
  let reads = 0;
  const option = symbolsOption('A,@more', '--symbols', {
    readList: () => {
      reads += 1;
      return Promise.resolve('B');
    },
  });
  expect(reads).toBe(0);
  expect((await option.patterns()).names).toEqual(['A', 'B']);
  expect((await option.patterns()).names).toEqual(['A', 'B']);
  expect(reads).toBe(1);
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
  const readList = (): Promise<string> => Promise.resolve(content);
  const { names } = await symbolsOption('@universe.csv', '--symbols', { readList }).patterns();
  expect(names).toEqual(['BTCUSDT', 'ETHUSDT']);
});
