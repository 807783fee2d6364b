import { expect, it } from 'vitest';
import { camelCase, nameOptions } from '../../src/options/flags.js';

it.each([
  ['run it later, or with a longer --max-wait', 'run it later, or with a longer maxWait'],
  ['--from/--to and --days', 'from/to and days'],
  [
    'run it with cryptodl vision --force, or another --out',
    'run it with cryptodl vision --force, or another out',
  ],
  ['npm install --include=optional', 'npm install --include=optional'],
  ['a--out --outer', 'a--out --outer'],
])('%s', (text, inTheLibrary) => {
  expect(nameOptions(text, camelCase)).toBe(inTheLibrary);
});
