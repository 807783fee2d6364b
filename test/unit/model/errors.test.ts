/** Errors are facts: a copy has other facts, and an error comes back from a spool as it went in. */
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';

const CAUSE = new CryptodlError('connection-lost', 'the connection was lost', { hint: 'check the network' });
const ERROR = new CryptodlError('wait-too-long', 'too long', { cause: CAUSE, retryAfterMs: 5000 });

describe('an error', () => {
  it('does not change when a copy gets other facts', () => {
    const copy = ERROR.with({ attempts: 3, message: 'longer' });
    expect(copy).toMatchObject({ code: 'wait-too-long', attempts: 3, message: 'longer', retryAfterMs: 5000 });
    expect(copy.cause).toBe(CAUSE);
    expect(copy.stack).toBe(ERROR.stack);
    expect(ERROR).toMatchObject({ attempts: 1, message: 'too long' });
  });

  it('is its own copy when nothing changes', () => {
    expect(ERROR.with({ attempts: 1 })).toBe(ERROR);
  });

  it('keeps code, message, attempts, hint and cause in a spool', () => {
    const facts: unknown = JSON.parse(JSON.stringify(ERROR.with({ attempts: 4, hint: 'wait' }).facts));
    const restored = CryptodlError.of(facts as CryptodlError['facts']);
    expect(restored).toMatchObject({
      code: 'wait-too-long',
      message: 'too long',
      attempts: 4,
      hint: 'wait',
    });
    expect(restored.cause).toMatchObject({ code: 'connection-lost', hint: 'check the network' });
  });
});
