import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Fetch } from '../../../src/model/fetch.js';
import { ServerClock } from '../../../src/http/throttle/server-buckets.js';
import { REQUEST, answer, context } from '../../helpers/requests.js';
import { throttleOf } from '../../helpers/throttles.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

/** A `Date` header: the second in which it was written. */
const dateOf = (serverMs: number): number => Math.floor(serverMs / 1000) * 1000;

interface Exchange {
  readonly gapMs: number;
  readonly toMs: number;
  readonly backMs: number;
}

const latency = fc.oneof(
  fc.nat(50),
  fc.nat(1000),
  fc.nat(60_000),
  fc.double({ min: 0, max: 300, noNaN: true }),
);
const exchange: fc.Arbitrary<Exchange> = fc.record({
  gapMs: fc.oneof(fc.nat(50), fc.nat(100_000)),
  toMs: latency,
  backMs: latency,
});
const offset = fc.oneof(fc.integer({ min: -90_000, max: 90_000 }), fc.integer({ min: -1e12, max: 1e12 }));

describe('the time of the server', () => {
  it('is always within the bounds, at all latencies and differences of the clocks', () => {
    fc.assert(
      fc.property(
        offset,
        fc.array(exchange, { minLength: 1, maxLength: 50 }),
        fc.nat(1e7),
        (offsetMs, all, laterMs) => {
          const serverClock = new ServerClock(() => 1_700_000_000_000);
          let now = 1000;
          let isKnown = false;
          for (const { gapMs, toMs, backMs } of all) {
            const sentAtMs = now + gapMs;
            const dateMs = dateOf(sentAtMs + toMs + offsetMs);
            now = sentAtMs + toMs + backMs;
            serverClock.onAnswer(dateMs, sentAtMs, now);
            isKnown ||= toMs + backMs <= 10_000;
            if (!isKnown) continue;
            for (const at of [now, now + laterMs]) {
              const { fromMs: from, toMs: to } = serverClock.at(at);
              // Numbers of 13 digits are exact to a quarter of a microsecond.
              expect(from).toBeLessThanOrEqual(at + offsetMs + 1e-3);
              expect(to).toBeGreaterThanOrEqual(at + offsetMs - 1e-3);
            }
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('is known to a second and the quickest round trip at worst, and better the more is heard', () => {
    fc.assert(
      fc.property(offset, fc.array(exchange, { minLength: 1, maxLength: 50 }), (offsetMs, all) => {
        const serverClock = new ServerClock(() => 0);
        let now = 0;
        let quickest = Number.POSITIVE_INFINITY;
        let before = Number.POSITIVE_INFINITY;
        for (const { gapMs, toMs, backMs } of all) {
          const sentAtMs = now + gapMs;
          now = sentAtMs + toMs + backMs;
          serverClock.onAnswer(dateOf(sentAtMs + toMs + offsetMs), sentAtMs, now);
          quickest = Math.min(quickest, toMs + backMs);
          if (quickest > 10_000) continue;
          const { fromMs: from, toMs: to } = serverClock.at(now);
          expect(to - from).toBeLessThanOrEqual(Math.min(before, quickest + 1000) + 1e-3);
          before = to - from;
        }
      }),
      { numRuns: 200 },
    );
  });

  it('is that of our own clock before the first answer, and after one that took too long to tell', () => {
    const serverClock = new ServerClock(() => 5_000_000);
    expect(serverClock.at(7)).toEqual({ fromMs: 5_000_007, toMs: 5_000_007 });
    serverClock.onAnswer(9_000_000, 0, 10_001);
    expect(serverClock.at(20_000)).toEqual({ fromMs: 5_020_000, toMs: 5_020_000 });
  });

  it('is right again with the next answer after the clock of the server was set', () => {
    fc.assert(
      fc.property(fc.integer({ min: 5000, max: 1e9 }), fc.boolean(), (stepMs, isBack) => {
        const serverClock = new ServerClock(() => 0);
        for (let now = 0; now < 10_000; now += 700) serverClock.onAnswer(dateOf(now + 90), now, now + 180);
        const offsetMs = isBack ? -stepMs : stepMs;
        serverClock.onAnswer(dateOf(20_090 + offsetMs), 20_000, 20_180);
        const { fromMs: from, toMs: to } = serverClock.at(20_180);
        expect(from).toBeLessThanOrEqual(20_180 + offsetMs);
        expect(to).toBeGreaterThanOrEqual(20_180 + offsetMs);
      }),
      { numRuns: 100 },
    );
  });
});

describe('a budget in windows of a clock that is only known by its dates', () => {
  it('is never exceeded in any window of the server, also together with the use of others', async () => {
    const PERMITS = 60;
    const WINDOW_MS = 60_000;
    const request = fc.record({
      gapMs: fc.oneof(fc.constant(0), fc.nat(300), fc.nat(20_000)),
      weight: fc.integer({ min: 1, max: 10 }),
      toMs: fc.oneof(fc.nat(300), fc.nat(5000)),
      backMs: fc.oneof(fc.nat(300), fc.nat(4900)),
      /** Used by other clients of the same address just before. */
      others: fc.oneof(fc.constant(0), fc.nat(20)),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 50 }),
        fc.integer({ min: -90_000, max: 90_000 }),
        async (requests, offsetMs) => {
          const clock = new VirtualClock();
          const serverNow = (): number => clock.now() + offsetMs;
          const windowNow = (): number => Math.floor(serverNow() / WINDOW_MS);
          const used = new Map<number, number>();
          const count = (weight: number): number => {
            const sum = (used.get(windowNow()) ?? 0) + weight;
            used.set(windowNow(), sum);
            return sum;
          };
          const granted = new Map<number, number>();
          /** By window: the most that an answer of this very window has told, and what was granted since. */
          const told = new Map<number, { used: number; since: number }>();
          let isWarm = false;
          const host: Fetch = async ({ weight = 1, url }) => {
            const { toMs, backMs, others } = requests[Number(new URL(url).hash.slice(1))] ?? {
              toMs: 10,
              backMs: 10,
              others: 0,
            };
            const window = windowNow();
            if (isWarm) granted.set(window, (granted.get(window) ?? 0) + weight);
            const known = told.get(window);
            if (known !== undefined) known.since += weight;
            await clock.sleep(toMs);
            if (others > 0) count(others);
            const sum = count(weight);
            const countedIn = windowNow();
            const headers = {
              'x-mbx-used-weight-1m': String(sum),
              date: new Date(serverNow()).toUTCString(),
            };
            await clock.sleep(backMs);
            if (countedIn === window && windowNow() === window && sum > (told.get(window)?.used ?? 0))
              told.set(window, { used: sum, since: 0 });
            return { ...answer(), headers };
          };
          const buckets = { weight: { permits: PERMITS, windowSeconds: 60 } };
          const fetch = throttleOf(clock, buckets, { options: { maxWaitMs: 1e9 } }).layer(host);
          // The first answer tells what time it is there.
          const first = fetch({ ...REQUEST, url: 'http://x.test/#-1', bucket: 'weight' }, context());
          await clock.advance(2 * WINDOW_MS);
          await first;
          isWarm = true;
          const all: Promise<unknown>[] = [];
          for (const [index, { gapMs, weight }] of requests.entries()) {
            await clock.advance(gapMs);
            all.push(
              fetch({ ...REQUEST, url: `http://x.test/#${index}`, bucket: 'weight', weight }, context()),
            );
          }
          await clock.advance(60 * WINDOW_MS);
          await Promise.all(all);
          for (const sum of granted.values()) expect(sum).toBeLessThanOrEqual(PERMITS);
          expect([...granted.values()].reduce((sum, weight) => sum + weight, 0)).toBe(
            requests.reduce((sum, { weight }) => sum + weight, 0),
          );
          for (const { used: known, since } of told.values())
            expect(since).toBeLessThanOrEqual(Math.max(0, PERMITS - known));
        },
      ),
      { numRuns: 60 },
    );
  });
});
