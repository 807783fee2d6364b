import { expect, it } from 'vitest';
import { CryptodlError } from '../../src/model/errors.js';
import { camelCase, nameOptions, withOptionNames } from '../../src/options/flags.js';

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

it('an error in other names keeps all its other fields', () => {
  const correction = { flags: { out: 'lake' } };
  const details = { hint: 'pass --out', cause: new Error('first'), correction, retryAfterMs: 5000 };
  const error = Object.assign(new CryptodlError('usage', 'no --out', details), { attempts: 3 });
  const renamed = withOptionNames(error, camelCase);
  expect(renamed).toMatchObject({ code: 'usage', message: 'no out', hint: 'pass out' });
  for (const field of ['cause', 'correction', 'retryAfterMs', 'attempts'] as const)
    expect([field, renamed[field]]).toEqual([field, error[field]]);
});
