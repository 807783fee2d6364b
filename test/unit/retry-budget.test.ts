import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RetryBudget } from '../../src/retry/budget.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const MAX_WAIT_MS = 3_600_000;
const never = new AbortController().signal;

function budgetOf(mostAtOnce = 1000) {
  const clock = new VirtualClock();
  const budget = new RetryBudget({ clock, maxWaitMs: MAX_WAIT_MS, mostAtOnce: () => mostAtOnce });
  const granted: { name: number; at: number; over: () => void }[] = [];
  const start = clock.monotonic();
  const take = async (name: number, signal = never): Promise<void> => {
    const over = await budget.take(signal);
    granted.push({ name, at: clock.monotonic() - start, over });
  };
  return { clock, budget, granted, take };
}

describe('A3 the retry budget of a host', () => {
  it('lets ten retries go at once, then waits instead of failing', async () => {
    const { clock, budget, granted, take } = budgetOf();
    for (let name = 0; name < 15; name += 1) void take(name);
    await clock.advance(0);
    expect([granted.length, budget.waiting]).toEqual([10, 5]);
  });

  it('is filled by successes: ten of them pay for one retry', async () => {
    const { clock, budget, granted, take } = budgetOf();
    for (let name = 0; name < 12; name += 1) void take(name);
    await clock.advance(0);
    for (let success = 0; success < 9; success += 1) budget.onSuccess();
    await clock.advance(0);
    expect(granted).toHaveLength(10);
    budget.onSuccess();
    await clock.advance(0);
    expect(granted.map(({ name }) => name)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('lets five retries go per second when nothing succeeds, in the order of asking', async () => {
    const { clock, granted, take } = budgetOf();
    for (let name = 0; name < 13; name += 1) void take(name);
    await clock.advance(1000);
    expect(granted.slice(10).map(({ name, at }) => [name, at])).toEqual([
      [10, 200],
      [11, 400],
      [12, 600],
    ]);
    expect(clock.waiting).toBe(0);
  });

  it('bounds the retries at once, and lets the next go when one is over', async () => {
    const { clock, granted, take } = budgetOf(3);
    for (let name = 0; name < 5; name += 1) void take(name);
    await clock.advance(60_000);
    expect(granted).toHaveLength(3);
    granted[1]?.over();
    granted[1]?.over();
    await clock.advance(0);
    expect(granted.map(({ name }) => name)).toEqual([0, 1, 2, 3]);
  });

  it('lets those that only had to wait go a few at once, at no cost, past those that wait for the budget', async () => {
    const { clock, budget, granted, take } = budgetOf(12);
    for (let name = 0; name < 11; name += 1) void take(name);
    const free: (() => void)[] = [];
    for (let name = 0; name < 3; name += 1) void budget.take(never, 0).then((over) => free.push(over));
    await clock.advance(0);
    expect([granted.length, free.length]).toEqual([10, 2]);
    free[0]?.();
    await clock.advance(0);
    expect([granted.length, free.length]).toEqual([10, 3]);
  });

  it('is given back what an answered retry cost', async () => {
    const { clock, budget, granted, take } = budgetOf();
    for (let name = 0; name < 11; name += 1) void take(name);
    await clock.advance(0);
    budget.onSuccess(10);
    await clock.advance(0);
    expect(granted).toHaveLength(11);
  });

  it('refuses whoever would wait longer than --max-wait', async () => {
    const { clock, budget, granted, take } = budgetOf(1);
    void take(0);
    const refused = take(1).catch((error: unknown) => error);
    await clock.advance(MAX_WAIT_MS);
    expect(await refused).toMatchObject({ code: 'wait-too-long' });
    expect([granted.length, budget.waiting, clock.waiting]).toEqual([1, 0, 0]);
  });

  it('A5 whoever is cancelled while waiting costs nothing', async () => {
    const { clock, budget, granted, take } = budgetOf();
    for (let name = 0; name < 10; name += 1) void take(name);
    const stop = new AbortController();
    const cancelled = take(10, stop.signal).catch((error: unknown) => error);
    void take(11);
    await clock.advance(0);
    stop.abort(new Error('enough'));
    expect(await cancelled).toMatchObject({ message: 'enough' });
    await clock.advance(5000);
    expect(granted.at(-1)?.name).toBe(11);
    expect([budget.waiting, clock.waiting]).toEqual([0, 0]);
  });

  it('Z14 costs no host more than a tenth of its successes, ten at the start, and the trickle', async () => {
    const events = fc.array(fc.oneof(fc.constant('success'), fc.constant('retry'), fc.nat(3000)), {
      minLength: 1,
      maxLength: 200,
    });
    await fc.assert(
      fc.asyncProperty(events, async (happened) => {
        const { clock, budget, granted, take } = budgetOf();
        let successes = 0;
        let passedMs = 0;
        for (const [name, event] of happened.entries()) {
          if (typeof event === 'number') {
            await clock.advance(event);
            passedMs += event;
          } else if (event === 'success') {
            budget.onSuccess();
            successes += 1;
          } else void take(name);
          for (const { over } of granted) over();
          expect(granted.length).toBeLessThanOrEqual(10 + successes / 10 + passedMs / 200 + 1e-9);
        }
      }),
      { numRuns: 40 },
    );
  });
});
