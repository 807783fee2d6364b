import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Priority } from '../../../src/model/fetch.js';
import { ProcessCount } from '../../../src/http/throttle/window-count.js';
import { WindowMeter } from '../../../src/http/throttle/server-buckets.js';
import { QuotaBucket } from '../../../src/http/throttle/quota-bucket.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const never = new AbortController().signal;
const MINUTE_MS = 60_000;

/** `widthMs`: how far the time of the server is not known. */
function meterOf(permits: number, widthMs = 0, offsetMs = 0): WindowMeter {
  const time = (nowMs: number) => ({ fromMs: nowMs + offsetMs, toMs: nowMs + offsetMs + widthMs });
  return new WindowMeter({ permits, windowMs: MINUTE_MS }, time, new ProcessCount());
}

/** A bucket of so many permits in each minute of a server whose clock differs from ours. */
function bucketOf(permits: number, offsetMs = 0) {
  const clock = new VirtualClock();
  const serverNow = (nowMs: number): number => nowMs + offsetMs;
  const meter = meterOf(permits, 0, offsetMs);
  const bucket = new QuotaBucket({ clock, name: 'weight', meter, maxWaitMs: 86_400_000 });
  const granted: { name: number; weight: number; at: number }[] = [];
  const take = async (name: number, weight = 1, priority: Priority = 'normal'): Promise<void> => {
    await bucket.take({ weight, priority }, never);
    granted.push({ name, weight, at: serverNow(clock.monotonic()) });
  };
  /** To the start of a window of the server. */
  const toWindow = async (): Promise<void> => {
    const at = serverNow(clock.monotonic());
    await clock.advance(MINUTE_MS - (at % MINUTE_MS));
  };
  return { clock, meter, bucket, granted, take, toWindow };
}

function usedPerWindow(granted: readonly { weight: number; at: number }[]): number[] {
  const used = new Map<number, number>();
  for (const { weight, at } of granted) {
    const window = Math.floor(at / MINUTE_MS);
    used.set(window, (used.get(window) ?? 0) + weight);
  }
  return [...used.values()];
}

describe('a bucket with a budget per window', () => {
  it('gives no more than the budget in any window of the server, and serves all requests in order', async () => {
    const requests = fc.array(fc.tuple(fc.nat(20_000), fc.integer({ min: 1, max: 10 })), {
      minLength: 1,
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(
        requests,
        fc.integer({ min: 10, max: 60 }),
        fc.integer({ min: -90_000, max: 90_000 }),
        async (arrivals, permits, offsetMs) => {
          const { clock, granted, take } = bucketOf(permits, offsetMs);
          for (const [name, [gap, weight]] of arrivals.entries()) {
            await clock.advance(gap);
            void take(name, weight);
          }
          await clock.advance(61 * MINUTE_MS);
          expect(granted.map(({ name }) => name)).toEqual([...arrivals.keys()]);
          for (const used of usedPerWindow(granted)) expect(used).toBeLessThanOrEqual(permits);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('takes the count of the server, and never a smaller one', async () => {
    const { clock, meter, granted, take, toWindow } = bucketOf(100);
    await toWindow();
    meter.onUsed(78, Number.NaN, clock.monotonic());
    meter.onUsed(3, Number.NaN, clock.monotonic());
    for (let name = 0; name < 10; name += 1) void take(name);
    await clock.advance(0);
    expect(granted).toHaveLength(2);
  });

  it('gives nothing while it may be either of two windows there, so that neither is overdrawn', async () => {
    const burst = fc.record({
      /** Where in the uncertain time before the end of a window it comes; or anywhere. */
      share: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
      gapMs: fc.nat(20_000),
      weights: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 30 }),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(burst, { minLength: 1, maxLength: 10 }),
        fc.integer({ min: 1, max: 5000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (bursts, widthMs, truth) => {
          const clock = new VirtualClock();
          const permits = 50;
          const meter = meterOf(permits, widthMs);
          const bucket = new QuotaBucket({ clock, name: 'weight', meter, maxWaitMs: 86_400_000 });
          const granted: { weight: number; at: number }[] = [];
          let asked = 0;
          for (const { share, gapMs, weights } of bursts) {
            const leftMs = MINUTE_MS - (clock.monotonic() % MINUTE_MS);
            await clock.advance(share === undefined ? gapMs : Math.max(0, leftMs - share * widthMs));
            for (const weight of weights) {
              asked += 1;
              void bucket.take({ weight, priority: 'normal' }, never).then(() => {
                granted.push({ weight, at: clock.monotonic() + truth * widthMs });
              });
            }
          }
          await clock.advance(60 * MINUTE_MS);
          expect(granted).toHaveLength(asked);
          for (const used of usedPerWindow(granted)) expect(used).toBeLessThanOrEqual(permits);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('is asked again when the next window has begun there for sure', () => {
    expect(meterOf(50, 1000).take(1, MINUTE_MS - 500)).toBe(500);
    expect(meterOf(50, 499).take(1, MINUTE_MS - 500)).toBe(0);
  });

  it.each<[string, readonly (readonly [atMs: number, weight: number, delayMs: number])[]]>([
    [
      'begins with the first permit that is in it',
      [
        [0, 79, 0],
        [10_000, 1, 0],
        [40_000, 1, 1000],
      ],
    ],
    [
      'does not begin with a request that no longer fits into the window',
      [
        [0, 60, 0],
        [10_000, 50, 50_000],
        [40_000, 20, 0],
        [40_000, 1, 1000],
      ],
    ],
    [
      'begins anew in the next window',
      [
        [0, 80, 0],
        [40_000, 1, 1000],
        [60_000, 80, 0],
        [70_000, 1, 2500],
      ],
    ],
    [
      'does not hold a request that comes first and is heavier than the rest',
      [
        [10_000, 90, 0],
        [10_000, 11, 50_000],
      ],
    ],
  ])('spreads the last fifth, which %s', (_, takes) => {
    const meter = meterOf(100);
    expect(takes.map(([atMs, weight]) => meter.take(weight, atMs))).toEqual(
      takes.map(([, , delayMs]) => delayMs),
    );
  });

  it('gives nothing of a window back to the one after', () => {
    const count = new ProcessCount();
    count.take(1, 5, { permits: 10, windowMs: MINUTE_MS });
    count.take(2, 5, { permits: 10, windowMs: MINUTE_MS });
    count.giveBack(1, 5);
    expect(count.used(2)).toBe(5);
  });

  it('refuses a request that is heavier than the whole budget instead of waiting for ever', async () => {
    const { bucket } = bucketOf(50);
    await expect(bucket.take({ weight: 51, priority: 'high' }, never)).rejects.toThrow('never fits');
  });
});

describe('priorities', () => {
  it('high comes before normal, normal before low, first come first served within each', async () => {
    const { clock, granted, take, toWindow } = bucketOf(5);
    await toWindow();
    for (let name = 0; name < 5; name += 1) void take(name);
    void take(10, 1, 'low');
    void take(11, 1, 'normal');
    void take(12, 1, 'high');
    void take(13, 1, 'high');
    void take(14, 1, 'normal');
    await clock.advance(3 * MINUTE_MS);
    expect(granted.slice(5).map(({ name }) => name)).toEqual([12, 13, 11, 14, 10]);
  });
});
