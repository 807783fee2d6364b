import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBackoff } from '../../../src/http/retry/backoff.js';
import type { Strategy } from '../../../src/http/retry/backoff.js';
import { STRATEGIES } from '../../../src/exchange/names.js';

function delays(strategy: Strategy, random: number, retries = 6): number[] {
  const options = { retryStrategy: strategy, retryDelayMs: 100, retryFactor: 2, retryMaxDelayMs: 2000 };
  const next = createBackoff(options, { random: () => random });
  return Array.from({ length: retries }, next);
}

describe('the strategies of back-off', () => {
  it.each<[Strategy, number, number[]]>([
    ['fixed', 0.5, [100, 100, 100, 100, 100, 100]],
    ['linear', 0.5, [100, 200, 300, 400, 500, 600]],
    ['exponential', 0.5, [100, 200, 400, 800, 1600, 2000]],
    ['full', 0.5, [50, 100, 200, 400, 800, 1000]],
  ])('%s with a random of %d', (strategy, random, expected) => {
    expect(delays(strategy, random)).toEqual(expected);
  });

  it('no delay is negative or above the cap, for all numbers', () => {
    fc.assert(
      fc.property(
        fc.record({
          retryStrategy: fc.constantFrom(...STRATEGIES),
          retryDelayMs: fc.integer({ min: 0, max: 10_000 }),
          retryFactor: fc.double({ min: 1, max: 10, noNaN: true }),
          retryMaxDelayMs: fc.integer({ min: 1, max: 60_000 }),
        }),
        fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 1, maxLength: 20 }),
        (options, randoms) => {
          let at = 0;
          const next = createBackoff(options, { random: () => randoms[(at += 1) % randoms.length] ?? 0 });
          for (let retry = 0; retry < 30; retry += 1) {
            const delayMs = next();
            expect(delayMs).toBeGreaterThanOrEqual(0);
            expect(delayMs).toBeLessThanOrEqual(options.retryMaxDelayMs);
          }
        },
      ),
    );
  });

  it('full jitter spreads over the whole step', () => {
    expect([delays('full', 0)[2], delays('full', 0.999)[2]]).toEqual([0, 399.6]);
  });
});
