import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Concurrency } from '../../src/queue/concurrency.js';
import type { ConcurrencyChoice } from '../../src/queue/concurrency.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

function concurrencyOf(choice: ConcurrencyChoice) {
  const clock = new VirtualClock();
  const told: number[] = [];
  const concurrency = new Concurrency(choice, clock, (limit) => told.push(limit));
  const succeed = (times: number): void => {
    for (let time = 0; time < times; time += 1) concurrency.onSuccess();
  };
  return { clock, told, concurrency, succeed };
}

describe('Concurrency', () => {
  it('stays where the user fixed it', () => {
    const { told, concurrency, succeed } = concurrencyOf({ kind: 'fixed', limit: 7 });
    succeed(1000);
    concurrency.onOverload();
    expect(concurrency.limit).toBe(7);
    expect(told).toEqual([]);
  });

  it('starts with 30, or with the most that is allowed', () => {
    expect(concurrencyOf({ kind: 'auto', max: 200 }).concurrency.limit).toBe(30);
    expect(concurrencyOf({ kind: 'auto', max: 12 }).concurrency.limit).toBe(12);
  });

  it('doubles in a round trip as long as nothing is refused, and stays below the most', () => {
    const { told, concurrency, succeed } = concurrencyOf({ kind: 'auto', max: 62 });
    succeed(30);
    expect(concurrency.limit).toBe(60);
    succeed(1000);
    expect(told.at(-1)).toBe(62);
  });

  it('grows by one after as many good answers as are in flight, once something was refused', () => {
    const { told, concurrency, succeed } = concurrencyOf({ kind: 'auto', max: 100 });
    concurrency.onOverload();
    succeed(20);
    expect(told).toEqual([21]);
    succeed(1);
    expect(told).toEqual([21, 22]);
    succeed(22);
    expect(told).toEqual([21, 22, 23]);
  });

  it('retreats to seven tenths, once a second: a burst of refusals is one message', async () => {
    const { clock, told, concurrency } = concurrencyOf({ kind: 'auto', max: 100 });
    for (let refusal = 0; refusal < 30; refusal += 1) concurrency.onOverload();
    expect(told).toEqual([21]);
    await clock.advance(999);
    concurrency.onOverload();
    expect(concurrency.limit).toBe(21);
    await clock.advance(1);
    concurrency.onOverload();
    expect(concurrency.limit).toBe(14);
  });

  it('counts good answers anew after a retreat', async () => {
    const { clock, concurrency, succeed } = concurrencyOf({ kind: 'auto', max: 100 });
    concurrency.onOverload();
    succeed(20);
    await clock.advance(1000);
    concurrency.onOverload();
    succeed(13);
    expect(concurrency.limit).toBe(14);
    succeed(1);
    expect(concurrency.limit).toBe(15);
  });

  it('stays between four (or the most, when that is less) and the most, and says so', async () => {
    const events = fc.array(fc.constantFrom('success', 'overload', 'second'), { maxLength: 400 });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), events, async (max, happenings) => {
        const { clock, told, concurrency, succeed } = concurrencyOf({ kind: 'auto', max });
        for (const event of happenings) {
          if (event === 'success') succeed(10);
          else if (event === 'overload') concurrency.onOverload();
          else await clock.advance(1000);
          expect(concurrency.limit).toBeLessThanOrEqual(max);
          expect(concurrency.limit).toBeGreaterThanOrEqual(Math.min(4, max));
          expect(told.at(-1) ?? concurrency.limit).toBe(concurrency.limit);
        }
      }),
      { numRuns: 20 },
    );
  });
});
