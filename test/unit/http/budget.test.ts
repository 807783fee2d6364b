import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Fetch, FetchContext } from '../../../src/model/fetch.js';
import { RetryBudget, budgetLayer } from '../../../src/http/retry/budget.js';
import { answer, context, REQUEST } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const MAX_WAIT_MS = 3_600_000;
const never = new AbortController().signal;

function budgetOf(mostAtOnce = 1000) {
  const clock = new VirtualClock();
  const bound = { mostAtOnce };
  const told: number[] = [];
  const budget = new RetryBudget({
    clock,
    maxWaitMs: MAX_WAIT_MS,
    mostAtOnce: () => bound.mostAtOnce,
    onWaiting: (change) => told.push(change),
  });
  const granted: { name: number; at: number; over: () => void }[] = [];
  const start = clock.monotonic();
  const take = async (name: number, signal = never): Promise<void> => {
    const over = await budget.take(signal);
    granted.push({ name, at: clock.monotonic() - start, over });
  };
  return { clock, bound, told, budget, granted, take };
}

describe('the retry budget of a host', () => {
  it('lets ten retries go at once, then five per second when nothing succeeds, in the order of asking', async () => {
    const { clock, granted, take } = budgetOf();
    for (let name = 0; name < 13; name += 1) void take(name);
    await clock.advance(0);
    expect(granted).toHaveLength(10);
    await clock.advance(1000);
    expect(granted.slice(10).map(({ name, at }) => [name, at])).toEqual([
      [10, 200],
      [11, 400],
      [12, 600],
    ]);
    expect(clock.waiting).toBe(0);
  });

  it('lets a retry go as soon as the trickle has brought enough for it', async () => {
    const { clock, granted, take } = budgetOf();
    for (let name = 0; name < 10; name += 1) void take(name);
    await clock.advance(150);
    void take(10);
    await clock.advance(1000);
    expect(granted.at(-1)).toMatchObject({ name: 10, at: 200 });
  });

  it('has a state: the retries that are left, that run and that wait', async () => {
    const { clock, bound, budget, granted, take } = budgetOf();
    for (let name = 0; name < 10; name += 1) void take(name);
    await clock.advance(400);
    for (const { over } of granted.slice(0, 3)) over();
    const running = { runningRetries: 7, mostRunningRetries: 1000 };
    expect(budget.state).toEqual({ retriesLeft: 2, ...running, waitingRetries: 0 });
    bound.mostAtOnce = 7;
    for (let name = 0; name < 4; name += 1) void take(name);
    expect(budget.state).toMatchObject({ runningRetries: 7, mostRunningRetries: 7, waitingRetries: 4 });
  });

  it('bounds the retries at once, and lets the next go when one is over', async () => {
    const { clock, granted, take } = budgetOf(3);
    for (let name = 0; name < 5; name += 1) void take(name);
    await clock.advance(60_000);
    expect(granted).toHaveLength(3);
    granted[1]?.over();
    await clock.advance(0);
    expect(granted.map(({ name }) => name)).toEqual([0, 1, 2, 3]);
  });

  it('keeps the order of asking when more may go at once meanwhile', async () => {
    const { clock, bound, granted, take } = budgetOf(1);
    void take(0);
    void take(1);
    await clock.advance(0);
    bound.mostAtOnce = 2;
    void take(2);
    await clock.advance(0);
    expect(granted.map(({ name }) => name)).toEqual([0, 1]);
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

  it('gets the cost of an answered retry back', async () => {
    const { clock, budget, granted, take } = budgetOf();
    for (let name = 0; name < 11; name += 1) void take(name);
    await clock.advance(0);
    budget.onSuccess(10);
    await clock.advance(0);
    expect(granted).toHaveLength(11);
  });

  it('refuses requests that would wait longer than --max-wait', async () => {
    const { clock, budget, granted, take } = budgetOf(1);
    void take(0);
    const refused = take(1).catch((error: unknown) => error);
    await clock.advance(MAX_WAIT_MS);
    expect(await refused).toMatchObject({ code: 'wait-too-long' });
    expect([granted.length, budget.state.waitingRetries, clock.waiting]).toEqual([1, 0, 0]);
  });

  it('a request that is cancelled during its wait costs nothing', async () => {
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
    expect([budget.state.waitingRetries, clock.waiting]).toEqual([0, 0]);
  });

  it('tells when one more retry waits and one less, and nothing of a retry that need not wait', async () => {
    const { clock, bound, told, take } = budgetOf();
    for (let name = 0; name < 10; name += 1) void take(name);
    await clock.advance(0);
    expect(told).toEqual([]);
    void take(10);
    expect(told).toEqual([1]);
    await clock.advance(200);
    expect(told).toEqual([1, -1]);
    const stop = new AbortController();
    const cancelled = take(11, stop.signal).catch(() => undefined);
    stop.abort(new Error('enough'));
    await cancelled;
    expect(told.slice(2)).toEqual([1, -1]);
    bound.mostAtOnce = 0;
    const refused = take(12).catch(() => undefined);
    await clock.advance(MAX_WAIT_MS);
    await refused;
    expect(told.slice(4)).toEqual([1, -1]);
  });

  it('costs no host more than a tenth of its successes, ten at the start, and the trickle', async () => {
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

describe('the cost of an attempt', () => {
  /** The layer in front of a host that answers first attempts at once and the others never. */
  function budgeted(most = 1000) {
    const clock = new VirtualClock();
    const left = { retry: 0, pause: 0, breaker: 0 };
    const told: string[] = [];
    const onWait = (reason: string) => {
      told.push(reason);
      return () => undefined;
    };
    const next: Fetch = (_, { again }) => {
      if (again === undefined) return Promise.resolve(answer());
      left[again] += 1;
      return new Promise(() => undefined);
    };
    const fetch = budgetLayer({ clock, maxWaitMs: MAX_WAIT_MS, mostAtOnce: () => most })(next);
    const ask = async (times: number, again?: FetchContext['again']): Promise<void> => {
      for (let time = 0; time < times; time += 1) void fetch(REQUEST, { ...context(), again, onWait });
      await clock.advance(0);
    };
    return { left, told, ask };
  }

  it('a retry takes from the budget, an attempt after a wait takes nothing', async () => {
    const { left, ask } = budgeted();
    await ask(30, 'pause');
    await ask(30, 'retry');
    await ask(30, 'breaker');
    expect(left).toEqual({ retry: 10, pause: 30, breaker: 30 });
  });

  it('has the reason of a wait for its turn: the budget, or the earlier wait for a refusal or a breaker', async () => {
    const { told, ask } = budgeted(1);
    for (const again of ['retry', 'retry', 'pause', 'breaker'] as const) await ask(1, again);
    expect(told).toEqual(['retry-budget', 'pause', 'breaker']);
  });

  it('ten first attempts that are answered pay for one retry', async () => {
    const { left, ask } = budgeted();
    await ask(12, 'retry');
    await ask(9);
    expect(left.retry).toBe(10);
    await ask(1);
    expect(left.retry).toBe(11);
  });
});
