import { expect, it } from 'vitest';
import { CryptodlError, libraryError } from '../../src/library/items.js';
import { CryptodlError as ProgramError } from '../../src/model/errors.js';
import { camelCase, nameOptions } from '../../src/plan/options/flags.js';

it.each([
  ['run it later, or with a longer --max-wait', 'run it later, or with a longer maxWait'],
  ['--from/--to and --days', 'from/to and days'],
  [
    'run it with cryptodl vision --force, or another --out',
    'run it with cryptodl vision --force, or another out',
  ],
  ['npm install --include=optional', 'npm install --include=optional'],
  ['a--out --outer', 'a--out --outer'],
])('%s', (text, renamed) => {
  expect(nameOptions(text, camelCase)).toBe(renamed);
});

it('an error of the library has the code, the exit code, the cause and the next step', () => {
  const cause = new Error('first');
  const error = libraryError(new ProgramError('wait-too-long', 'no --out', { hint: 'pass --out', cause }));
  expect(error).toBeInstanceOf(CryptodlError);
  expect(error).toMatchObject({ code: 'wait-too-long', message: 'no out', hint: 'pass out', cause });
  expect(error).toMatchObject({ name: 'CryptodlError', exitCode: 7, retryable: true });
});

it('an error that is not of the program stays as it is', () => {
  const error = new RangeError('mine');
  expect(libraryError(error)).toBe(error);
});
