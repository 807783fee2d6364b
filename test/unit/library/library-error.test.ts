import { expect, it } from 'vitest';
import { CryptodlError, libraryError } from '../../../src/library/items.js';
import { CryptodlError as ProgramError } from '../../../src/model/errors.js';

it('an error of the library has the code, the exit code, the cause and the next step', () => {
  const cause = new Error('first');
  const error = libraryError(new ProgramError('wait-too-long', 'no --out', { hint: 'pass --out', cause }));
  expect(error).toBeInstanceOf(CryptodlError);
  expect(error).toMatchObject({ code: 'wait-too-long', message: 'no --out', hint: 'pass --out', cause });
  expect(error).toMatchObject({ name: 'CryptodlError', exitCode: 7, retryable: true });
});

it('an error that is not of the program stays as it is', () => {
  const error = new RangeError('mine');
  expect(libraryError(error)).toBe(error);
});
