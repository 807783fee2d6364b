/** The measurement of one level of concurrency, and the share of failures. */
import { describe, expect, it } from 'vitest';
import { Throughput } from '../../../src/run/pacing/measurement.js';
import { Failures } from '../../../src/run/pacing/failure-share.js';

describe('the rate', () => {
  it('is that of thirty objects at least, from the end of the last one of the level before', () => {
    const meter = new Throughput(10, 1, 2);
    const ends = Array.from({ length: 32 }, (_, at) => meter.add(at * 10, at * 10 + 50, at === 20));
    expect(ends.filter((end) => end !== undefined)).toEqual([
      { level: 10, perSecond: 100, meanMs: 50, refusedShare: 0, isLocal: true },
    ]);
    expect(ends[31]).toBeDefined();
  });

  it('has the refused share of its requests', () => {
    const meter = new Throughput(1, 1, 0, 0);
    for (const isRefused of [true, false, false, false]) meter.count(isRefused);
    for (let at = 0; at < 29; at += 1) meter.add(at, at, false);
    expect(meter.add(2000, 3000, false)).toMatchObject({ perSecond: 10, refusedShare: 0.25, isLocal: false });
  });
});

/** The share of failures after so many good and so many bad results. */
function failures(good: number, bad: number, mayBeFull = true, least = 3): Failures {
  const made = new Failures({ least, mayBeFull });
  feed(made, good, bad);
  return made;
}

function feed(made: Failures, good: number, bad: number): void {
  for (let at = 0; at < good; at += 1) made.add(false);
  for (let at = 0; at < bad; at += 1) made.add(true);
}

describe('failures', () => {
  it.each([
    [5, 5, 3, 0, false],
    [4, 6, 3, 0, true],
    [4, 6, 3, 40, false],
    [0, 59, 60, 0, false],
    [0, 60, 60, 0, true],
  ])(
    'of %d good and %d bad results with at least %d and %d in flight are too many: %s',
    (good, bad, least, inFlight, isMuch) => {
      expect(failures(good, bad, true, least).isMuch(inFlight)).toBe(isMuch);
    },
  );

  it('are those of the last hundred results', () => {
    const { recent } = failures(0, 1);
    for (let good = 0; good < 99; good += 1) recent.add(false);
    expect([recent.results, recent.bad]).toEqual([100, 1]);
    recent.add(false);
    expect([recent.results, recent.bad]).toEqual([100, 0]);
  });

  it('of a tenth or less do not bound growth, more of them do', () => {
    expect([failures(0, 0, false).growTo, failures(9, 1, false).growTo]).toEqual([Infinity, Infinity]);
    expect([failures(8, 1, false).growTo, failures(8, 1).growTo]).toEqual([0, Infinity]);
    const retreated = failures(8, 1);
    retreated.onRetreat(30);
    expect(retreated.growTo).toBe(0);
  });

  it('leave the share of the level that was served, or all of it at a host that is down', () => {
    const none = failures(0, 10);
    none.addEarlier(true);
    expect(none.left).toBeUndefined();
    none.onRetreat(30);
    expect(none.left).toEqual({ level: 30, served: 30 });
    for (const isBad of [false, false, false, false, false]) none.addEarlier(isBad);
    expect(none.left).toEqual({ level: 30, served: 10 });
  });

  it.each<[number, number, unknown]>([
    [0, 60, { backTo: 30 }],
    [0, 59, undefined],
    [1, 59, undefined],
  ])('that end after %d good and %d bad results lead back to the level before: %j', (good, bad, back) => {
    const made = failures(0, 0);
    made.onRetreat(30);
    feed(made, good, bad);
    expect(made.add(false)).toEqual(back);
    expect(made.left === undefined).toBe(back !== undefined);
  });

  it.each<[string, number, boolean, readonly number[], unknown]>([
    ['again, if the host may be full', 20, true, [30], 'again'],
    ['again, if more than half fail', 31, true, [30, 21], 'again'],
    ['back, if half fail after two retreats', 30, true, [30, 21], { backTo: 30 }],
    ['back, if the host cannot be full', 20, false, [30], { backTo: 30 }],
    ['nothing, if few fail', 6, true, [30], undefined],
    ['nothing, if all fail', 60, true, [30], undefined],
  ])('after a retreat call for %s', (_, bad, mayBeFull, levels, verdict) => {
    const made = failures(0, 0, mayBeFull);
    for (const level of levels) made.onRetreat(level);
    feed(made, 60 - bad, bad);
    expect(made.judge()).toEqual(verdict);
    if (typeof verdict === 'object' && !mayBeFull) expect(made.growTo).toBe(30);
  });
});
