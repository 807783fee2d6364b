import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Paces } from '../../../src/http/throttle/paces.js';

describe('Paces', () => {
  it('let no more through in any span than each of them has, and as many as they allow', () => {
    const pace = fc.record({
      requests: fc.integer({ min: 1, max: 5 }),
      spanMs: fc.integer({ min: 1, max: 100 }),
    });
    fc.assert(
      fc.property(fc.array(pace, { minLength: 1, maxLength: 3 }), fc.array(fc.nat(40)), (paces, waits) => {
        const limits = new Paces(paces);
        const taken: number[] = [];
        const within = (since: number): number => taken.filter((at) => at > since).length;
        let now = 0;
        for (const wait of waits) {
          now += wait;
          const isFull = paces.some(({ requests, spanMs }) => within(now - spanMs) >= requests);
          const delayMs = limits.delayMs(now);
          expect(delayMs > 0).toBe(isFull);
          now += delayMs;
          expect(limits.delayMs(now)).toBe(0);
          limits.take(now);
          taken.push(now);
        }
      }),
    );
  });

  it('forget a request that was never sent', () => {
    const limits = new Paces([{ requests: 1, spanMs: 1000 }]);
    limits.take(0);
    limits.giveBack();
    expect(limits.delayMs(0)).toBe(0);
    limits.take(0);
    expect(limits.delayMs(1)).toBe(999);
    const three = new Paces([{ requests: 3, spanMs: 1000 }]);
    for (const now of [0, 1, 2]) three.take(now);
    three.giveBack();
    expect(three.delayMs(3)).toBe(0);
    three.take(3);
    expect(three.delayMs(4)).toBe(996);
  });
});
