import { expect, it } from 'vitest';
import { loadSignOf } from '../../../src/http/load-sign.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { REQUEST } from '../../helpers/requests.js';

it.each([
  ['good', undefined],
  ['other', Object.assign(new Error('of this machine'), { code: 'banned' })],
  ['other', new CryptodlError('disk', 'full')],
  ['troubled', new CryptodlError('connection-lost', 'x')],
  ['refused', new CryptodlError('connect-timeout', 'x')],
  ['refused', new CryptodlError('rate-limited', 'x')],
] as const)('an attempt is a sign of load: %s, %o', (result, error) => {
  const times = { begunAtMs: 1, sentAtMs: 2, endedAtMs: 3 };
  const ended = { request: REQUEST, attemptId: '', firstByteMs: 1, status: 200, error, ...times };
  expect(loadSignOf(ended, true)).toEqual({ ...times, result, isObject: false, isLate: true });
  expect(loadSignOf({ ...ended, request: { ...REQUEST, expect: {} } }, false).isObject).toBe(true);
});
