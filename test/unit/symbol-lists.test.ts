import { expect, it } from 'vitest';
import { readPatterns, symbols } from '../../src/options/symbols.js';

it('takes a list of 200,000 symbols', async () => {
  const names = Array.from({ length: 200_000 }, (_, index) => `S${index}USDT`);
  const read = (): Promise<string> => Promise.resolve(names.join('\n'));
  expect((await readPatterns(symbols('@all.txt', '--symbols'), read)).names).toHaveLength(200_000);
  expect((await readPatterns(symbols('-', '--symbols'), read)).names).toHaveLength(200_000);
});
