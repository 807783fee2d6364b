import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mapOrdered } from '../../../src/model/in-order.js';

/** Resolves after so many turns of the event loop. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

it('results come in the order of the input, and never more than the limit are under way', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(5)), fc.integer({ min: 1, max: 6 }), async (delays, limit) => {
      let running = 0;
      let most = 0;
      const results = mapOrdered(delays.entries(), limit, async ([index, delay]) => {
        running += 1;
        most = Math.max(most, running);
        await turns(delay);
        running -= 1;
        return index;
      });
      expect(await all(results)).toEqual(delays.map((_, index) => index));
      expect(most).toBeLessThanOrEqual(limit);
    }),
    { numRuns: 50 },
  );
});

it('as many as the limit are under way at once', async () => {
  let running = 0;
  let most = 0;
  const results = mapOrdered([1, 2, 3, 4, 5], 3, async () => {
    running += 1;
    most = Math.max(most, running);
    await turns(5);
    running -= 1;
  });
  await all(results);
  expect(most).toBe(3);
});

it('an endless input is pulled only as results are taken', async () => {
  let pulled = 0;
  function* endless(): Generator<number> {
    for (;;) yield (pulled += 1);
  }
  for await (const result of mapOrdered(endless(), 4, (value) => Promise.resolve(value))) {
    expect(pulled).toBeLessThanOrEqual(result + 4);
    if (result === 20) break;
  }
  expect(pulled).toBeLessThan(30);
});

describe('a failure', () => {
  it('comes in its turn, after the results before it', async () => {
    const seen: number[] = [];
    const taking = async (): Promise<void> => {
      const results = mapOrdered([1, 2, 3, 4], 4, (value) =>
        value === 3 ? Promise.reject(new Error('three')) : turns(5 - value).then(() => value),
      );
      for await (const value of results) seen.push(value);
    };
    await expect(taking()).rejects.toThrow('three');
    expect(seen).toEqual([1, 2]);
  });

  it('without a waiting reader is not left unhandled', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    const results = mapOrdered([1, 2, 3], 3, (value) =>
      value === 1 ? turns(1) : Promise.reject(new Error(`late ${value}`)),
    );
    for await (const _ of results) break;
    await turns(5);
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});
