/** Requests of different priority that wait for one limit. */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Priority } from '../../../src/model/fetch.js';
import { PriorityQueue } from '../../../src/http/throttle/priority-queue.js';

interface Waiting {
  readonly priority: Priority;
  readonly weight: number;
}

/** The shares of the permits if each of these requests waits again at once. */
function sharesOf(waiting: readonly Waiting[], rounds = 10_000): number[] {
  const queue = new PriorityQueue<Waiting>();
  const removals = new Map(waiting.map((request) => [request, queue.add(request)]));
  const given = new Map<Waiting | undefined, number>();
  for (let round = 0; round < rounds; round += 1) {
    const { next } = queue;
    if (next === undefined) break;
    queue.onGiven(next);
    removals.get(next)?.();
    removals.set(next, queue.add(next));
    given.set(next, (given.get(next) ?? 0) + next.weight);
  }
  const all = [...given.values()].reduce((sum, weight) => sum + weight, 0);
  return waiting.map((request) => (given.get(request) ?? 0) / all);
}

const of = (priority: Priority, weight = 1): Waiting => ({ priority, weight });
const weight = fc.integer({ min: 1, max: 40 });

it('the highest of two gets four fifths of the permits, at any weights', () => {
  fc.assert(
    fc.property(weight, weight, fc.constantFrom<Priority>('normal', 'low'), (heavy, light, lower) => {
      const [high = 0] = sharesOf([of('high', heavy), of(lower, light)]);
      // The turn of the other comes when so many permits are given, not in the middle of a request.
      expect(high).toBeGreaterThan(0.79);
      expect(high).toBeLessThanOrEqual((4 * light + heavy) / (5 * light + heavy) + 0.01);
    }),
  );
});

it('each of three gets a share, and those of one priority take turns', () => {
  const shares = sharesOf([of('low'), of('normal'), of('high'), of('high'), of('normal')]);
  const [low = 0, normal = 0, high = 0, other = 0, last = 0] = shares;
  expect(high + other).toBeGreaterThan(0.7);
  expect(normal + last).toBeGreaterThan(0.19);
  expect(low).toBeGreaterThan(0.05);
  expect([high, normal]).toEqual([expect.closeTo(other, 3), expect.closeTo(last, 3)]);
  expect(sharesOf([of('low')])).toEqual([1]);
});
