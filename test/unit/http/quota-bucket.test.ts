import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Priority } from '../../../src/model/fetch.js';
import { RateMeter } from '../../../src/http/throttle/meter.js';
import { WindowMeter } from '../../../src/http/throttle/server-buckets.js';
import { QuotaBucket } from '../../../src/http/throttle/quota-bucket.js';
import { refusal } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const never = new AbortController().signal;
const HOUR_MS = 3_600_000;

/** A bucket that writes down when each permit was given. */
function bucketOf(permitsPerSecond: number, burst: number, maxWaitMs = HOUR_MS) {
  const clock = new VirtualClock();
  const started = clock.monotonic();
  const meter = new RateMeter({ permitsPerSecond, burst }, started);
  const quota = new QuotaBucket({ clock, name: 'archive', meter, maxWaitMs });
  const granted: { name: number; at: number }[] = [];
  const take = async (name: number, signal = never): Promise<void> => {
    await quota.take({ weight: 1, priority: 'normal' }, signal);
    granted.push({ name, at: clock.monotonic() - started });
  };
  return { clock, quota, granted, take };
}

describe('a bucket with a rate', () => {
  it('gives at most rate × t + burst permits in any span, in order, and serves each waiter', async () => {
    const arrivals = fc.array(fc.oneof(fc.constant(0), fc.nat(50), fc.nat(2000)), {
      minLength: 1,
      maxLength: 40,
    });
    const rates = fc.oneof(fc.integer({ min: 1, max: 200 }), fc.double({ min: 0.5, max: 50, noNaN: true }));
    await fc.assert(
      fc.asyncProperty(arrivals, rates, fc.integer({ min: 1, max: 8 }), async (gaps, rate, burst) => {
        const { clock, granted, take } = bucketOf(rate, burst);
        for (const [name, gap] of gaps.entries()) {
          await clock.advance(gap);
          void take(name);
        }
        await clock.advance((gaps.length / rate) * 1000 + gaps.length);
        expect(granted.map(({ name }) => name)).toEqual([...gaps.keys()]);
        for (const [first, { at: from }] of granted.entries()) {
          for (const [last, { at: to }] of granted.entries()) {
            if (last < first) continue;
            expect(last - first + 1).toBeLessThanOrEqual((rate * (to - from)) / 1000 + burst + 1e-6);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  it('wakes up at the moment of the next permit, with one timer for each and none to poll', async () => {
    const { clock, granted, take } = bucketOf(4, 2);
    for (let name = 0; name < 6; name += 1) void take(name);
    await clock.advance(60_000);
    expect(granted.map(({ at }) => at)).toEqual([0, 0, 250, 500, 750, 1000]);
    expect(clock.timersSet).toBe(4);
    expect(clock.waiting).toBe(0);
  });

  it('does not let a new request overtake waiting ones', async () => {
    const { clock, granted, take } = bucketOf(1, 1);
    // At the very moment of the next permit, but before the wake-up of who waits for it.
    clock.timer(1000, () => void take(2));
    void take(0);
    void take(1);
    await clock.advance(5000);
    expect(granted.map(({ name }) => name)).toEqual([0, 1, 2]);
  });

  it('gives the place of a cancelled waiter to the next, at the time the cancelled one would have had it', async () => {
    const { clock, granted, take } = bucketOf(1, 1);
    const canceller = new AbortController();
    void take(0);
    const cancelled = refusal(take(1, canceller.signal));
    void take(2);
    await clock.advance(500);
    canceller.abort(new CryptodlError('interrupted', 'no longer wanted'));
    expect((await cancelled).code).toBe('interrupted');
    await clock.advance(5000);
    expect(granted).toEqual([
      { name: 0, at: 0 },
      { name: 2, at: 1000 },
    ]);
  });

  it('leaves no timer behind when the last waiter is cancelled: it would keep the process alive', async () => {
    const { clock, quota, granted, take } = bucketOf(10, 1);
    quota.pause(HOUR_MS / 2);
    const canceller = new AbortController();
    const cancelled = refusal(take(0, canceller.signal));
    await clock.advance(100);
    canceller.abort(new CryptodlError('interrupted', 'ended by SIGINT'));
    await cancelled;
    expect(clock.waiting).toBe(0);
    expect(quota.state).toMatchObject({ waiting: 0, nextMs: 0 });
    void take(1);
    await clock.advance(HOUR_MS / 2);
    expect(granted.map(({ name }) => name)).toEqual([1]);
  });

  it('refuses a signal that is aborted already, and keeps the permit', async () => {
    const { clock, granted, take } = bucketOf(1, 1);
    const aborted = AbortSignal.abort(new CryptodlError('interrupted', 'over'));
    expect((await refusal(take(0, aborted))).code).toBe('interrupted');
    void take(1);
    await clock.advance(0);
    expect(granted.map(({ name }) => name)).toEqual([1]);
  });

  it('gives no permits during a pause, not to earlier waiters either, and a shorter one does not end it', async () => {
    const { clock, quota, granted, take } = bucketOf(10, 2);
    await quota.take({ weight: 2, priority: 'normal' }, never);
    void take(0);
    quota.pause(5000);
    void take(1);
    await clock.advance(1000);
    quota.pause(10);
    await clock.advance(3999);
    expect(granted).toEqual([]);
    await clock.advance(1);
    expect(granted.map(({ name }) => name)).toEqual([0, 1]);
  });

  it('gives a permit at the very end of a pause without a wait', async () => {
    const { clock, quota, granted, take } = bucketOf(10, 1);
    quota.pause(1000);
    await clock.advance(1000);
    await take(0);
    expect(granted).toEqual([{ name: 0, at: 1000 }]);
    expect(quota.waits).toBe(0);
  });

  it('counts the waits and their time, those that were cancelled too', async () => {
    const { clock, quota, take } = bucketOf(1, 1);
    const canceller = new AbortController();
    await take(0);
    void take(1);
    const cancelled = refusal(take(2, canceller.signal));
    await clock.advance(400);
    canceller.abort(new CryptodlError('interrupted', 'no longer wanted'));
    await cancelled;
    await clock.advance(600);
    expect([quota.waits, quota.waitedMs]).toEqual([2, 1400]);
  });

  it.each([
    [-1, 2000],
    [0, 2000],
    [1, 1000],
  ])(
    'pauses after a request that was taken, and was sent %i ms after the last refusal, for %i ms',
    async (sentAfterMs, pauseMs) => {
      const { clock, quota, granted, take } = bucketOf(10, 1);
      const refusedAt = clock.monotonic();
      quota.onRefused(refusedAt, undefined);
      await clock.advance(1000);
      quota.onTaken(refusedAt + sentAfterMs);
      quota.onRefused(clock.monotonic(), undefined);
      void take(0);
      await clock.advance(5000);
      expect(granted).toEqual([{ name: 0, at: 1000 + pauseMs }]);
    },
  );

  it('is not paused longer by late refusals of requests that were sent before the first refusal', async () => {
    const { clock, quota, granted, take } = bucketOf(10, 1);
    const sentAtMs = clock.monotonic();
    quota.onRefused(sentAtMs, undefined);
    await clock.advance(500);
    quota.onRefused(sentAtMs, undefined);
    void take(0);
    await clock.advance(5000);
    expect(granted).toEqual([{ name: 0, at: 1000 }]);
    expect(quota.refusals).toBe(1);
  });

  it('gives back a permit that was never sent, and never more than the burst', async () => {
    const { clock, quota, granted, take } = bucketOf(1, 5);
    await quota.take({ weight: 5, priority: 'normal' }, never);
    quota.giveBack(1);
    for (let name = 0; name < 2; name += 1) void take(name);
    await clock.advance(0);
    expect(granted).toHaveLength(1);
    await clock.advance(HOUR_MS);
    quota.giveBack(3);
    for (let name = 2; name < 9; name += 1) void take(name);
    await clock.advance(0);
    expect(granted).toHaveLength(2 + 5);
  });

  it.each<[Priority, Priority]>([
    ['high', 'high'],
    ['high', 'normal'],
    ['high', 'low'],
    ['normal', 'low'],
    ['low', 'low'],
  ])(
    'does not let light requests overtake heavy ones that wait, of priority %s and %s',
    async (first, second) => {
      const { clock, quota } = bucketOf(1, 4);
      await quota.take({ weight: 4, priority: 'normal' }, never);
      const order: string[] = [];
      const ask = (name: string, weight: number, priority: Priority): void => {
        void quota.take({ weight, priority }, never).then(() => order.push(name));
      };
      ask('first', 3, first);
      ask('second', 4, second);
      await clock.advance(2000);
      ask('light', 1, 'low');
      await clock.advance(0);
      expect(order).toEqual([]);
      await clock.advance(20_000);
      expect(order).toEqual(['first', 'second', 'light']);
    },
  );

  it('gives a light request of higher priority a permit before a waiting heavy one', async () => {
    const { clock, quota } = bucketOf(1, 5);
    await quota.take({ weight: 5, priority: 'normal' }, never);
    void quota.take({ weight: 5, priority: 'low' }, never);
    await clock.advance(3000);
    await quota.take({ weight: 1, priority: 'high' }, never);
    expect(quota.waits).toBe(2);
    await clock.advance(3000);
    expect(quota.state.waiting).toBe(0);
  });

  it('sets no timer for a permit that another request must give back first', () => {
    const clock = new VirtualClock();
    const meter = { most: 10, take: () => Infinity, giveBack: () => undefined };
    const quota = new QuotaBucket({ clock, name: 'archive', meter, maxWaitMs: HOUR_MS });
    void quota.take({ weight: 10, priority: 'high' }, never);
    expect([quota.state.waiting, clock.waiting]).toEqual([1, 0]);
  });

  it('waits for a pause of --max-wait, and refuses a longer one and all requests during it, with the next step', async () => {
    const { clock, quota, take } = bucketOf(10, 1, 60_000);
    quota.pause(60_000);
    const waiting = refusal(take(0));
    expect(quota.state.waiting).toBe(1);
    expect(() => {
      quota.pause(1e12);
    }).toThrow('longer than --max-wait 60s');
    const error = await refusal(take(1));
    expect(error.code).toBe('wait-too-long');
    expect(error.hint).toContain('--max-wait');
    await clock.advance(0);
    expect((await waiting).code).toBe('wait-too-long');
    expect(clock.waiting).toBe(0);
  });

  it('tells a request why it waits, again when the reason changes', async () => {
    const { clock, quota } = bucketOf(1, 1);
    await quota.take({ weight: 1, priority: 'normal' }, never);
    const reasons: string[] = [];
    const onWait = (reason: string) => {
      reasons.push(reason);
      return () => reasons.push('end');
    };
    for (let request = 0; request < 2; request += 1)
      void quota.take({ weight: 1, priority: 'normal', onWait }, never);
    await clock.advance(1000);
    expect(reasons).toEqual(['permit', 'permit', 'end']);
    quota.pause(5000);
    await clock.advance(6000);
    expect(reasons.slice(3)).toEqual(['end', 'pause', 'end', 'permit', 'end']);
    expect(quota.state).toEqual({ waiting: 0, nextMs: 0, pausedMs: 0 });
  });

  it('takes from the pace of the user only what the meter allows', async () => {
    const clock = new VirtualClock();
    const meter = new RateMeter({ permitsPerSecond: 1, burst: 1 }, clock.monotonic());
    const paces = [{ requests: 2, spanMs: 10_000 }];
    const quota = new QuotaBucket({ clock, name: 'archive', meter, paces, maxWaitMs: HOUR_MS });
    await quota.take({ weight: 1, priority: 'normal' }, never);
    const second = quota.take({ weight: 1, priority: 'normal' }, never);
    await clock.advance(1000);
    await expect(second).resolves.toBeUndefined();
  });

  it.each([
    [99, true, 0],
    [100, true, 1],
    [99, false, 1],
  ])(
    'does not count %d ms for the answer of another program (%s) as a wait for the limit: %d',
    async (ms, isOfOther, waits) => {
      const clock = new VirtualClock();
      let isOver = false;
      const count = {
        used: () => 0,
        raise: () => undefined,
        giveBack: () => undefined,
        get isAsking(): boolean {
          return isOfOther && !isOver;
        },
        take: () => (isOver ? 0 : ms),
      };
      const time = (nowMs: number) => ({ fromMs: nowMs, toMs: nowMs });
      const meter = new WindowMeter({ permits: 10, windowMs: HOUR_MS }, time, count);
      const quota = new QuotaBucket({ clock, name: 'futures', meter, maxWaitMs: HOUR_MS });
      const taken = quota.take({ weight: 1, priority: 'normal' }, never);
      isOver = true;
      await clock.advance(ms);
      await taken;
      expect([quota.waits, quota.waitedMs]).toEqual([waits, ms]);
    },
  );
});

describe('a bucket whose waits another source may save', () => {
  it('refuses a longer pause while that is so, and waits for it after', async () => {
    const clock = new VirtualClock();
    let longestWaitMs = 10_000;
    const meter = new RateMeter({ permitsPerSecond: 100, burst: 1 }, clock.monotonic());
    const bucket = new QuotaBucket({ clock, name: 'archive', meter, maxWaitMs: HOUR_MS });
    const longest = (): number => longestWaitMs;
    const take = (): Promise<void> =>
      bucket.take({ weight: 1, priority: 'normal', longestWaitMs: longest }, never);
    bucket.pause(10_000);
    const other = bucket.take({ weight: 1, priority: 'normal' }, never);
    const waiting = take();
    expect(bucket.state.waiting).toBe(2);
    expect(() => {
      bucket.pause(10_001, longest);
    }).toThrow('the host asks for a wait');
    await expect(waiting).rejects.toMatchObject({ code: 'rate-limited', isGivenUp: true });
    await expect(take()).rejects.toMatchObject({ code: 'rate-limited', isGivenUp: true });
    longestWaitMs = Number.POSITIVE_INFINITY;
    const patient = take();
    await clock.advance(10_011);
    await expect(patient).resolves.toBeUndefined();
    await expect(other).resolves.toBeUndefined();
  });
});
