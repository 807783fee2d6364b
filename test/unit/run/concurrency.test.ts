import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LoadSign } from '../../../src/http/load-sign.js';
import { Concurrency, type LevelChange } from '../../../src/run/pacing/concurrency.js';
import type { ConcurrencyOption } from '../../../src/plan/options/network-flags.js';
import { randoms } from '../../helpers/randoms.js';
import { sized } from '../../helpers/tier-size.js';

const AUTO = { kind: 'auto', max: 128 } as const;
const START = 30;

interface Host {
  /** So many at once; what is more is refused without being served. */
  readonly bears?: number;
  /** Share that is refused, reset or the like, whatever the load. */
  readonly refuses?: number;
  readonly troubles?: number;
  /** From the sending to the end of the answer. */
  readonly serviceMs?: (inFlight: number, random: () => number) => number;
  /** The host refuses the first of this many requests only; by default, all. */
  readonly refusesFirst?: number;
  /** This process is late all the time. */
  readonly isLate?: boolean;
}

const REFUSAL_MS = 20;

/** The end of a request for an object. */
const sign = (
  result: LoadSign['result'],
  sentAtMs: number,
  endedAtMs: number,
  begunAtMs = sentAtMs,
): LoadSign => ({
  begunAtMs,
  sentAtMs,
  endedAtMs,
  result,
  isObject: true,
  isLate: false,
});

interface Flight {
  readonly sentAtMs: number;
  readonly endsAt: number;
  readonly result: LoadSign['result'];
}

/** A closed loop of requests against a host until so many are done; time moves from end to end. */
function settle(seed: number, host: Host, requests: number, choice: ConcurrencyOption = AUTO) {
  const random = randoms(seed);
  const concurrency = new Concurrency({ choice, start: START });
  const changes: LevelChange[] = [];
  concurrency.onLevel = (change) => changes.push(change);
  const flying: Flight[] = [];
  const levels: number[] = [];
  let refused = 0;
  let now = 0;
  const send = (): void => {
    const chance = random();
    const served = flying.filter(({ result }) => result !== 'refused').length;
    const isRefused =
      served >= (host.bears ?? Infinity) ||
      chance < (levels.length < (host.refusesFirst ?? Infinity) ? (host.refuses ?? 0) : 0);
    const isTroubled = chance > 1 - (host.troubles ?? 0);
    const result = isRefused ? 'refused' : isTroubled ? 'troubled' : 'good';
    const serviceMs = isRefused ? REFUSAL_MS : (host.serviceMs?.(flying.length + 1, random) ?? 60);
    concurrency.onBegun();
    flying.push({ sentAtMs: now, endsAt: now + serviceMs * (0.8 + random() * 0.4), result });
  };
  for (let done = 0; done < requests; done += 1) {
    while (flying.length < concurrency.limit) send();
    flying.sort((a, b) => b.endsAt - a.endsAt);
    const next = flying.pop();
    if (next === undefined) break;
    now = Math.max(now, next.endsAt);
    if (next.result === 'refused') refused += 1;
    const { sentAtMs, result } = next;
    concurrency.onEnded({ ...sign(result, sentAtMs, now), isLate: host.isLate === true });
    levels.push(concurrency.limit);
  }
  const last = levels.slice(-Math.floor(requests / 2));
  return {
    changes,
    concurrency,
    refused: refused / requests,
    most: Math.max(...levels),
    mean: last.reduce((sum, level) => sum + level, 0) / last.length,
  };
}

describe('Concurrency', () => {
  it('stays where the user fixed it', () => {
    const { changes, concurrency } = settle(1, { bears: 3 }, 5000, { kind: 'fixed', limit: 7 });
    for (let bad = 0; bad < 100; bad += 1) concurrency.onBadContent(bad);
    expect(concurrency.limit).toBe(7);
    expect(changes).toEqual([]);
  });

  it('starts at the level that it is told, or at the most that is allowed', () => {
    const startOf = (choice: ConcurrencyOption, start: number) => new Concurrency({ choice, start }).limit;
    expect(startOf({ kind: 'auto', max: 200 }, 30)).toBe(30);
    expect(startOf({ kind: 'auto', max: 12 }, 30)).toBe(12);
    expect(startOf({ kind: 'auto', max: 10 }, 5)).toBe(5);
  });

  it('doubles with each measurement of more objects per second', () => {
    const { changes } = settle(1, {}, 400);
    expect(changes.slice(0, 3)).toEqual([
      { from: 30, to: 60, why: 'growth' },
      { from: 60, to: 120, why: 'growth' },
      { from: 120, to: 128, why: 'growth' },
    ]);
  });

  it('retreats to seven tenths at first, then to as many as were served', () => {
    const { changes } = settle(1, { bears: 10 }, 300);
    expect(changes[0]).toEqual({ from: 30, to: 21, why: 'refused' });
    expect(changes[1]).toMatchObject({ from: 21, why: 'refused' });
    expect(changes[1]?.to).toBeGreaterThanOrEqual(6);
    expect(changes[1]?.to).toBeLessThanOrEqual(10);
  });

  it('does not retreat for the first refusals, which come sooner than bodies', () => {
    const concurrency = new Concurrency({ choice: AUTO, start: START });
    for (let sent = 0; sent < 60; sent += 1) concurrency.onBegun();
    for (let ended = 0; ended < 60; ended += 1) {
      const result = ended < 6 ? 'refused' : 'good';
      concurrency.onEnded(sign(result, 0, 100 + ended));
    }
    expect(concurrency.retreats).toBe(0);
  });

  it('does not wait for requests that had no socket yet when the level fell', () => {
    const concurrency = new Concurrency({ choice: AUTO, start: START });
    for (let begun = 0; begun < 30; begun += 1) concurrency.onBegun();
    const end = (sentAtMs: number, endedAtMs: number, result: LoadSign['result']): void => {
      concurrency.onEnded(sign(result, sentAtMs, endedAtMs, 0));
    };
    for (let refused = 0; refused < 10; refused += 1) end(0, 5, 'refused');
    expect(concurrency.limit).toBe(21);
    // These twenty were connecting at 5.
    for (let served = 0; served < 20; served += 1) end(6, 100, 'good');
    expect(concurrency.settled).toEqual({ level: 19, most: 128, why: 'refused' });
  });

  it('falls to as many as were served also when others are sent in the moment of the retreat', () => {
    const concurrency = new Concurrency({ choice: AUTO, start: START });
    const sent = (requests: number): void => {
      for (let request = 0; request < requests; request += 1) concurrency.onBegun();
    };
    const end = (requests: number, ended: LoadSign): void => {
      for (let request = 0; request < requests; request += 1) concurrency.onEnded(ended);
    };
    sent(60);
    for (let refused = 0; refused < 50; refused += 1) {
      end(1, sign('refused', 0, 5));
      sent(1);
    }
    expect(concurrency.limit).toBe(21);
    end(10, sign('good', 0, 300));
    end(50, sign('refused', 5, 301));
    expect(concurrency.limit).toBeLessThanOrEqual(10);
  });

  it('falls once while the host answers nothing at all, and is back as soon as it answers', () => {
    const concurrency = new Concurrency({ choice: AUTO, start: START });
    let now = 0;
    const end = (result: LoadSign['result'], times: number): void => {
      for (let time = 0; time < times; time += 1) {
        now += 1;
        concurrency.onBegun();
        concurrency.onEnded(sign(result, now - 1, now));
      }
    };
    end('refused', 1000);
    expect(concurrency.limit).toBeGreaterThanOrEqual(21);
    end('good', 200);
    expect(concurrency.limit).toBeGreaterThanOrEqual(60);
  });

  it('stays at the lowest level while a host refuses more than half of the requests, whatever the load', () => {
    expect(settle(1, { refuses: 0.7 }, 4000).mean).toBeLessThan(5);
  });

  it('grows again from the lowest level once such a host has recovered', () => {
    expect(settle(1, { refuses: 0.7, refusesFirst: 4000 }, 8000).mean).toBeGreaterThan(20);
  });

  it('counts bad content as trouble of the line', () => {
    const concurrency = new Concurrency({ choice: AUTO, start: START });
    for (let bad = 0; bad < 100; bad += 1) concurrency.onBadContent(bad);
    expect(concurrency.limit).toBe(21);
  });

  it.each<[string, Host, string | undefined]>([
    ['a host that bears 40', { bears: 40 }, 'refused'],
    ['a line that loses three in ten', { troubles: 0.3 }, 'troubled'],
    [
      'a host with a queue',
      { serviceMs: (inFlight) => 100 * Math.max(1, inFlight / 40) },
      'no-faster-with-more',
    ],
    ['a host that bears all', {}, undefined],
  ])('says why its level is below the most, of %s', (_, host, why) => {
    const { settled } = settle(1, host, 5000).concurrency;
    expect(settled?.why).toBe(why);
    if (why !== undefined) expect(settled).toMatchObject({ most: 128 });
  });

  it('does not count ends that say nothing about the host, and does not settle while it grows', () => {
    const concurrency = new Concurrency({ choice: AUTO, start: START });
    const end = (times: number, result: LoadSign['result'], sentAtMs = 0): void => {
      for (let time = 0; time < times; time += 1) {
        concurrency.onBegun();
        concurrency.onEnded(sign(result, sentAtMs, sentAtMs + 1));
      }
    };
    end(1, 'good');
    expect(concurrency.settled).toBeUndefined();
    end(100, 'other');
    end(6, 'refused');
    expect([concurrency.limit, concurrency.retreats]).toEqual([21, 1]);
    // Results from before the retreat are forgotten, and requests from before it do not count.
    end(50, 'good', 10);
    end(6, 'refused', 0);
    expect(concurrency.retreats).toBe(1);
  });

  it('does not say where it settled when no object arrived', () => {
    const { concurrency } = settle(1, { refuses: 1 }, 300);
    expect([concurrency.limit < 30, concurrency.settled]).toEqual([true, undefined]);
  });

  it('does not try fewer while this process itself is late', () => {
    const queueing = (inFlight: number): number => 100 * Math.max(1, inFlight / 40);
    const tried = (isLate: boolean) =>
      settle(1, { serviceMs: queueing, isLate }, 5000).changes.some(({ why }) => why === 'trying-fewer');
    expect([tried(false), tried(true)]).toEqual([true, false]);
  });

  it('gives the places of those that only wait for a retry to others', () => {
    const told: number[] = [];
    const concurrency = new Concurrency({ choice: { kind: 'auto', max: 40 }, start: START });
    concurrency.onChange = (places) => told.push(places);
    for (let waiting = 0; waiting < 50; waiting += 1) concurrency.onWaiting(1);
    // Of each object a zip and a sidecar wait.
    expect(told.at(-1)).toBe(30 + 25);
    for (let waiting = 0; waiting < 50; waiting += 1) concurrency.onWaiting(1);
    expect(told.at(-1)).toBe(30 + 40);
    for (let waiting = 0; waiting < 100; waiting += 1) concurrency.onWaiting(-1);
    expect([told.at(-1), concurrency.limit]).toEqual([30, 30]);
    const fixed = new Concurrency({ choice: { kind: 'fixed', limit: 3 }, start: START });
    fixed.onWaiting(1);
    fixed.onWaiting(1);
    expect(fixed.places).toBe(3);
  });

  it('stays between two (or the most, when that is less) and the most, and says so', () => {
    const results = fc.array(
      fc.tuple(fc.constantFrom('good', 'refused', 'troubled', 'other'), fc.nat(2000)),
      {
        maxLength: 300,
      },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), results, (max, happenings) => {
        const told: number[] = [];
        const concurrency = new Concurrency({ choice: { kind: 'auto', max }, start: START });
        concurrency.onChange = (places) => told.push(places);
        let now = 0;
        for (const [result, ms] of happenings) {
          for (let time = 0; time < 10; time += 1) {
            concurrency.onBegun();
            now += ms;
            concurrency.onEnded(sign(result, now - ms, now));
          }
          expect(concurrency.limit).toBeLessThanOrEqual(max);
          expect(concurrency.limit).toBeGreaterThanOrEqual(Math.min(2, max));
          expect(told.at(-1) ?? concurrency.limit).toBe(concurrency.limit);
        }
      }),
      { numRuns: 50 },
    );
  });
});

/** Median 600 ms, 99th percentile 2 s. */
function lognormal(_: number, random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return 600 * Math.exp((Math.log(2000 / 600) / 2.326) * normal);
}

describe('the level that it finds by many dice', () => {
  const found = (host: Host, requests: number) =>
    Array.from({ length: sized(20, 8) }, (_, seed) => settle(seed + 1, host, requests));

  it.each([10, 20, 40])('has at most one request in twenty refused beyond %d, with any times', (bears) => {
    const serviceMs = (_: number, random: () => number): number => 60 - 25 * Math.log(1 - random());
    const refused = found({ bears, serviceMs }, 6300).map((run) => run.refused);
    expect(Math.max(...refused)).toBeLessThan(0.05);
  });

  it('is above the first level when as many are refused with fewer in flight', () => {
    const means = found({ refuses: 0.3 }, 20_000).map((run) => run.mean);
    expect(means.reduce((sum, mean) => sum + mean) / means.length).toBeGreaterThan(80);
  });
});

describe.each(sized([1, 2, 3, 4, 5, 6], [1]))('the level that it finds, by the dice of seed %d,', (seed) => {
  it.each([10, 20, 40, 60, 100])('is about the limit of the host (%d), with few refusals before', (bears) => {
    const found = settle(seed, { bears }, 20_000);
    expect(found.mean).toBeLessThan(bears * 1.06);
    expect(found.mean).toBeGreaterThan(bears * 0.85);
    expect(found.refused).toBeLessThan(0.05);
  });

  it.each([0.01, 0.03, 0.05])(
    'is near the maximum when a share of %d is refused at every load',
    (refuses) => {
      expect(settle(seed, { refuses }, 10_000).mean).toBeGreaterThan(100);
    },
  );

  it('does not leave the level at which it began when three in ten are reset', () => {
    const found = settle(seed, { troubles: 0.3 }, 20_000);
    expect(found.most).toBe(START);
    expect(found.mean).toBeGreaterThan(18);
  });

  it('is near the most while one in twenty is reset or cut', () => {
    expect(settle(seed, { troubles: 0.05 }, 10_000).mean).toBeGreaterThan(100);
  });

  it('is the limit of the host also when requests fail for other reasons', () => {
    const found = settle(seed, { bears: 40, refuses: 0.02 }, 20_000);
    expect(found.mean).toBeGreaterThan(20);
    expect(found.mean).toBeLessThan(44);
    expect(found.refused).toBeLessThan(0.1);
  });

  it('is within 15 % of where the host begins to queue: more in flight would only take longer', () => {
    const found = settle(seed, { serviceMs: (inFlight) => 100 * Math.max(1, inFlight / 40) }, 20_000);
    expect(Math.abs(found.mean - 40)).toBeLessThan(6);
  });

  it('is near the maximum at a slow host with very different answer times', () => {
    expect(settle(seed, { serviceMs: lognormal }, 10_000).mean).toBeGreaterThan(105);
  });

  it('is the most where answers take twice as long beyond 40 in flight, because more of them arrive', () => {
    const found = settle(seed, { serviceMs: (inFlight) => (inFlight > 40 ? 600 : 300) }, 10_000);
    expect(found.mean).toBeGreaterThan(105);
  });

  it('is not given up for a line that became slower by itself', () => {
    let answered = 0;
    const serviceMs = (): number => {
      answered += 1;
      return answered < 3000 ? 60 : 300;
    };
    expect(settle(seed, { serviceMs }, 20_000).mean).toBeGreaterThan(105);
  });

  it('takes such a line for a queue once', () => {
    let answered = 0;
    const serviceMs = (): number => ((answered += 1) < 600 ? 60 : 300);
    const { changes } = settle(seed, { serviceMs }, 6000, { kind: 'auto', max: 16 });
    // A usual trial has three quarters of the objects.
    expect(changes.filter(({ to }) => to < 12)).toEqual([{ from: 16, to: 10, why: 'trying-fewer' }]);
  });

  it('falls when a host that bore everything begins to queue', () => {
    let answered = 0;
    const serviceMs = (inFlight: number): number => {
      answered += 1;
      return answered < 3000 ? 100 : 100 * Math.max(1, inFlight / 30);
    };
    expect(settle(seed, { serviceMs }, 20_000).mean).toBeLessThan(60);
  });
});
