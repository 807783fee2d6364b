import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RateMeter } from '../../src/http/throttle/meter.js';
import { PacedMeter } from '../../src/http/throttle/paced-meter.js';

const PLENTY = { permitsPerSecond: 1e6, burst: 1e6 };

describe('PacedMeter', () => {
  it('lets no more through in any span than each of its paces has, and as many as they allow', () => {
    const pace = fc.record({
      requests: fc.integer({ min: 1, max: 5 }),
      spanMs: fc.integer({ min: 1, max: 100 }),
    });
    fc.assert(
      fc.property(fc.array(pace, { minLength: 1, maxLength: 3 }), fc.array(fc.nat(40)), (paces, waits) => {
        const meter = new PacedMeter(new RateMeter(PLENTY, 0), paces);
        const taken: number[] = [];
        const within = (since: number): number => taken.filter((at) => at > since).length;
        let now = 0;
        for (const wait of waits) {
          now += wait;
          const isFull = paces.some(({ requests, spanMs }) => within(now - spanMs) >= requests);
          const delayMs = meter.take(1, now);
          expect(delayMs > 0).toBe(isFull);
          if (isFull) {
            now += delayMs;
            expect(meter.take(1, now)).toBe(0);
          }
          taken.push(now);
        }
      }),
    );
  });

  it('asks for the longest of its delays, and takes nothing while it waits for another limit', () => {
    const scarce = new RateMeter({ permitsPerSecond: 1, burst: 1 }, 0);
    const meter = new PacedMeter(scarce, [{ requests: 2, spanMs: 1500 }]);
    expect(meter.most).toBe(1);
    expect([meter.take(1, 0), meter.take(1, 0), meter.take(1, 1000), meter.take(1, 1100)]).toEqual([
      0, 1000, 0, 400,
    ]);
    expect(meter.take(1, 2000)).toBe(0);
  });

  it('forgets a request that was never sent', () => {
    const meter = new PacedMeter(new RateMeter(PLENTY, 0), [{ requests: 1, spanMs: 1000 }]);
    meter.take(1, 0);
    meter.giveBack(1, 0);
    expect([meter.take(1, 0), meter.take(1, 1)]).toEqual([0, 999]);
  });

  it('passes requests on to its meter, and counts of the server', () => {
    const told: number[][] = [];
    const inner = {
      most: 10,
      taken: 3,
      isSpare: () => false,
      take: () => 0,
      giveBack: () => undefined,
      onUsed: (...figures: number[]) => {
        told.push(figures);
      },
      onExhausted: (nowMs: number) => nowMs + 5,
    };
    const meter = new PacedMeter(inner, [{ requests: 1, spanMs: 1000 }]);
    meter.onUsed(7, 1, 2);
    expect([told, meter.onExhausted(1), meter.isSpare(1, 0), meter.taken]).toEqual([
      [[7, 1, 2]],
      6,
      false,
      3,
    ]);
  });
});
