import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryAfterMs } from '../../../src/http/transport/error-map.js';

const NOW = Date.UTC(2024, 0, 15, 12);
const dateOf = (ms: number): string => new Date(ms).toUTCString();
const asked = (value: string, date = dateOf(NOW)): number | undefined =>
  retryAfterMs({ 'retry-after': value, date });

describe('retryAfterMs', () => {
  it('reads whole seconds, however many', () => {
    fc.assert(
      fc.property(fc.nat(), (seconds) => {
        expect(asked(String(seconds))).toBe(Math.max(1, seconds) * 1000);
      }),
    );
    expect(asked('1000000000')).toBe(1e12);
    expect(asked('9'.repeat(400))).toBe(Infinity);
  });

  it('takes zero as one second, because a request at once was refused', () => {
    expect(asked('0')).toBe(1000);
    expect(asked(' 00 ')).toBe(1000);
  });

  it("counts a date from the server's own clock, and never wakes up early", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: -1e6, max: 1e6 }), (seconds, skew) => {
        const serverNow = NOW + skew * 1000;
        const value = dateOf(serverNow + seconds * 1000);
        expect(asked(value, dateOf(serverNow))).toBe(seconds * 1000 + 1000);
      }),
    );
  });

  it.each([
    ['a date in the past', dateOf(NOW - 60_000)],
    ['the present', dateOf(NOW)],
    ['nothing', ''],
    ['blanks', '  '],
    ['a word', 'soon'],
    ['a negative number', '-5'],
    ['a fraction', '1.5'],
    ['a unit', '60s'],
    ['a list', '60, 60'],
    ['a word with a number that looks like a year', 'wait 35'],
  ])('does not obey %s', (_, value) => {
    expect(asked(value)).toBeUndefined();
  });

  it("does not obey a date without the server's own", () => {
    const value = dateOf(NOW + 60_000);
    expect(retryAfterMs({ 'retry-after': value })).toBeUndefined();
    expect(asked(value, 'yesterday')).toBeUndefined();
  });

  it('asks for nothing when there is no such header', () => {
    expect(retryAfterMs({ date: dateOf(NOW) })).toBeUndefined();
  });
});
