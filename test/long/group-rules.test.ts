/** The rules of an egress group, as a real redis-server runs them. */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  BAN,
  GIVE_BACK,
  JOIN,
  LEAVE,
  MISSING_MS,
  RAISE,
  TAKE,
} from '../../src/http/throttle/group-scripts.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import type { RedisProcess } from '../helpers/redis-server.js';

const WINDOW_MS = 60_000;
/** The number of a window, not a time. */
const WINDOW = 29_000_000;
const LIMIT = 100;

let server: RedisProcess;
let key: string;

beforeAll(async () => {
  if (HAS_REDIS) server = await startRedis();
});
afterAll(async () => {
  if (HAS_REDIS) await server.close();
});
beforeEach(() => {
  key = `cryptodl:{${randomUUID()}}`;
});

/** JOIN returns all four, TAKE the first two, other scripts only the first. */
type Answer = [epochOrResult: string, timeOrCount: number, members: string[], bans: unknown[]];
const run = (script: string, ...words: (string | number)[]): Promise<Answer> =>
  server.client.eval(script, 1, key, ...words) as Promise<Answer>;

interface Knowledge {
  readonly epoch?: string;
  readonly others?: readonly string[];
  readonly own?: number;
  readonly used?: number;
}

/** Joins as a member that was without Redis and knows this. Returns the epoch. */
const join = async (
  id: string,
  { epoch = '', others = [], own, used = 0 }: Knowledge = {},
): Promise<string> => {
  const counts =
    own === undefined ? [] : [{ key: `futures:${WINDOW_MS}:${WINDOW}`, windowMs: WINDOW_MS, own, used }];
  const [joined] = await run(JOIN, '', id, randomUUID(), JSON.stringify({ epoch, others, counts }));
  return joined;
};

/** Sets an epoch so old that the time for joining again is over. */
const settled = async (): Promise<string> => {
  const epoch = `${Date.now() - 60_000} x`;
  await server.client.set(`${key}:epoch`, epoch, 'KEEPTTL');
  return epoch;
};

const take = async (epoch: string, id: string, weight: number, window = WINDOW): Promise<string> =>
  (await run(TAKE, epoch, id, 'futures', WINDOW_MS, window, weight, LIMIT))[0];

/** Joins, and returns the members and bans that the answer has. */
const look = async (id = 'late'): Promise<{ members: string[]; bans: unknown[] }> => {
  const known = JSON.stringify({ epoch: '', others: [], counts: [] });
  const [, , members, bans] = await run(JOIN, '', id, 'x', known);
  return { members, bans };
};

const usedInWindow = async (): Promise<number> => {
  const counts = await server.client.hvals(`${key}:used:futures:${WINDOW_MS}:${WINDOW}`);
  return counts.reduce((sum, count) => sum + Number(count), 0);
};

const weights = fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 40 })), {
  minLength: 5,
  maxLength: 40,
});

describe.skipIf(!HAS_REDIS)(`the budget of a group${NEEDS_REDIS}`, () => {
  it('is never overdrawn, and refuses only what does not fit beside older requests', async () => {
    await fc.assert(
      fc.asyncProperty(weights, async (requests) => {
        key = `cryptodl:{${randomUUID()}}`;
        const epoch = await settled();
        for (const id of ['a', 'b', 'c', 'd']) await join(id);
        let used = 0;
        const waiting = new Map<string, number>();
        for (const [who, weight] of requests) {
          const id = 'abcd'[who] ?? 'a';
          const result = await take(epoch, id, weight);
          // The permits that are taken, and those of older requests that fit, in the order of their first refusal.
          let before = used;
          for (const [other, heavy] of waiting) {
            if (other === id) break;
            if (before + heavy <= LIMIT) before += heavy;
          }
          const expected = before + weight <= LIMIT ? 'taken' : used + weight <= LIMIT ? 'soon' : 'full';
          expect(result).toBe(expected);
          if (result === 'taken') {
            used += weight;
            waiting.delete(id);
          } else waiting.set(id, weight);
          expect(await usedInWindow()).toBe(used);
          expect(used).toBeLessThanOrEqual(LIMIT);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('gives a heavy request its permits in the next window, before lighter ones that came later', async () => {
    const epoch = await settled();
    expect(await take(epoch, 'light', 60)).toBe('taken');
    expect(await take(epoch, 'heavy', 90)).toBe('full');
    // In this window the heavy one cannot be sent, so the lighter ones go on.
    expect(await take(epoch, 'light', 40)).toBe('taken');
    expect(await take(epoch, 'light', 20)).toBe('full');
    expect(await take(epoch, 'light', 20, WINDOW + 1)).toBe('soon');
    expect(await take(epoch, 'heavy', 90, WINDOW + 1)).toBe('taken');
    expect(await take(epoch, 'light', 20, WINDOW + 1)).toBe('full');
    expect(await take(epoch, 'light', 10, WINDOW + 1)).toBe('taken');
  });

  it('counts what the venue counted, and gives permits back', async () => {
    const epoch = await settled();
    await take(epoch, 'a', 30);
    await run(RAISE, epoch, 'futures', WINDOW_MS, WINDOW, 50);
    await run(RAISE, epoch, 'futures', WINDOW_MS, WINDOW, 40);
    expect(await usedInWindow()).toBe(50);
    await take(epoch, 'a', 30);
    expect(await usedInWindow()).toBe(80);
    await run(GIVE_BACK, epoch, 'a', 'futures', WINDOW_MS, WINDOW, 30);
    expect(await usedInWindow()).toBe(50);
    await run(GIVE_BACK, epoch, 'b', 'futures', WINDOW_MS, WINDOW, 30);
    expect(await usedInWindow()).toBe(50);
  });

  it('keeps the share of a member without a sign of life', async () => {
    const epoch = await settled();
    await join('a');
    await server.client.hset(`${key}:members`, 'missing', Date.now() - MISSING_MS - 1000);
    expect(await take(epoch, 'a', 51)).toBe('full');
    expect(await take(epoch, 'a', 50)).toBe('taken');
  });

  it('keeps only the part of the share that the missing member has not used', async () => {
    const epoch = await settled();
    expect(await take(epoch, 'missing', 30)).toBe('taken');
    await join('a');
    await server.client.hset(`${key}:members`, 'missing', Date.now() - MISSING_MS - 1000);
    expect(await take(epoch, 'a', 51)).toBe('full');
    expect(await take(epoch, 'a', 50)).toBe('taken');
    expect(await usedInWindow()).toBe(80);
  });

  it('keeps nothing for a missing member that has used more than its share', async () => {
    const epoch = await settled();
    expect(await take(epoch, 'missing', 70)).toBe('taken');
    await join('a');
    await server.client.hset(`${key}:members`, 'missing', Date.now() - MISSING_MS - 1000);
    expect(await take(epoch, 'a', 31)).toBe('full');
    expect(await take(epoch, 'a', 30)).toBe('taken');
  });

  it('keeps nothing for a member that has left', async () => {
    const epoch = await settled();
    await join('a');
    await server.client.hset(`${key}:members`, 'gone', Date.now() - MISSING_MS - 1000);
    await run(LEAVE, 'gone');
    expect(await take(epoch, 'a', 100)).toBe('taken');
  });

  it('keeps nothing for a waiting request that does not ask again, and forgets it', async () => {
    const epoch = await settled();
    const waiting = `${key}:waiting:futures`;
    const now = Date.now();
    await server.client.hset(waiting, 'left', `${(now - 60_000) * 1000} 60 ${now - 5500}`);
    await server.client.hset(waiting, 'garbage', 'of another program');
    await server.client.hset(waiting, 'older', `${(now - 30_000) * 1000} 30 ${now + 60_000}`);
    expect(await take(epoch, 'a', 71)).toBe('soon');
    expect((await server.client.hkeys(waiting)).sort()).toEqual(['a', 'older']);
    expect(await take(epoch, 'a', 70)).toBe('taken');
    expect(await server.client.hkeys(waiting)).toEqual(['older']);
  });

  it('keeps permits for the request that has waited longest, and for later ones that fit beside it', async () => {
    const epoch = await settled();
    const now = Date.now();
    // The one that fits beside the oldest gets its permits, the other one does not.
    for (const [id, ageMs, weight] of [
      ['second', 20_000, 50],
      ['third', 10_000, 30],
      ['first', 30_000, 60],
    ] as const)
      await server.client.hset(
        `${key}:waiting:futures`,
        id,
        `${(now - ageMs) * 1000} ${weight} ${now + 60_000}`,
      );
    expect(await take(epoch, 'a', 11)).toBe('soon');
    expect(await take(epoch, 'second', 50)).toBe('soon');
    expect(await take(epoch, 'third', 30)).toBe('taken');
    expect(await take(epoch, 'a', 10)).toBe('taken');
    expect(await take(epoch, 'first', 60)).toBe('taken');
  });

  it('gets back at most the permits that the member took', async () => {
    const epoch = await settled();
    await take(epoch, 'a', 30);
    await take(epoch, 'b', 40);
    await run(GIVE_BACK, epoch, 'a', 'futures', WINDOW_MS, WINDOW, 50);
    expect(await usedInWindow()).toBe(40);
    // Without permits, no key is made: it would never end.
    await run(GIVE_BACK, epoch, 'a', 'futures', WINDOW_MS, WINDOW + 1, 50);
    expect(await server.client.exists(`${key}:used:futures:${WINDOW_MS}:${WINDOW + 1}`)).toBe(0);
  });

  it.each(['-50', 'inf', 'nan', 'of another program'])('counts a value %s as 0', async (value) => {
    const epoch = await settled();
    await server.client.hset(`${key}:used:futures:${WINDOW_MS}:${WINDOW}`, 'foreign', value);
    expect(await take(epoch, 'a', 101)).toBe('full');
    expect(await take(epoch, 'a', 100)).toBe('taken');
  });

  it('gives permits although the clock of the server was set back', async () => {
    const epoch = `${Date.now() + 3_600_000} x`;
    await server.client.set(`${key}:epoch`, epoch);
    expect(await take(epoch, 'a', 1)).toBe('taken');
  });

  it('forgets a member that is missing for long', async () => {
    await settled();
    await server.client.hset(`${key}:members`, 'gone', Date.now() - 700_000);
    expect((await look('a')).members).toEqual(['a']);
  });

  it('does not touch that of another group', async () => {
    const first = await settled();
    expect(await take(first, 'a', 100)).toBe('taken');
    key = `cryptodl:{${randomUUID()}}`;
    expect(await take(await settled(), 'a', 100)).toBe('taken');
  });
});

describe.skipIf(!HAS_REDIS)(`a Redis that lost its data or was out of reach${NEEDS_REDIS}`, () => {
  it('gives no permit to a member that still has the epoch from before the loss', async () => {
    const epoch = await join('a');
    await server.client.del(`${key}:epoch`);
    await join('b');
    expect(await take(epoch, 'a', 1)).toBe('lost');
  });

  it('gives no permit before the members can have joined again', async () => {
    const epoch = await join('a');
    expect(await take(epoch, 'a', 1)).toBe('soon');
    expect(await usedInWindow()).toBe(0);
  });

  it('gets the members and the count of the window back from the first member that joins', async () => {
    const owns = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 2, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(owns, fc.nat(20), async (own, foreign) => {
        key = `cryptodl:{${randomUUID()}}`;
        const used = own.reduce((sum, count) => sum + count, 0) + foreign;
        const others = own.map((_, index) => `m${index}`);
        for (const [index, count] of own.entries()) {
          await join(`m${index}`, { epoch: 'an earlier one', others, own: count, used });
          // Also before the others have joined, nothing of their permits is lost.
          expect(await usedInWindow()).toBe(used);
          expect((await server.client.hkeys(`${key}:members`)).sort()).toEqual(others.toSorted());
        }
      }),
      { numRuns: 40 },
    );
  });

  it('counts the permits that a member took while Redis was out of its reach', async () => {
    const epoch = await settled();
    await take(epoch, 'a', 30);
    await take(epoch, 'b', 20);
    await join('b', { epoch, own: 45, used: 50 });
    expect(await usedInWindow()).toBe(75);
  });
});

describe.skipIf(!HAS_REDIS)(`a ban of a group${NEEDS_REDIS}`, () => {
  it('stops its bucket, reaches each member, and only a longer one replaces it', async () => {
    const epoch = await settled();
    await run(BAN, 'futures fapi.example', 90_000, 'banned by 418');
    await run(BAN, 'futures fapi.example', 10_000, 'a shorter one');
    expect(await take(epoch, 'a', 1)).toBe('banned');
    const [spot] = await run(TAKE, epoch, 'a', 'spot', WINDOW_MS, WINDOW, 1, LIMIT);
    expect(spot).toBe('taken');
    const { bans } = await look();
    expect(bans).toEqual(['futures fapi.example', expect.any(Number), 'banned by 418']);
    expect(bans[1]).toBeGreaterThan(60_000);
  });

  it('stops no bucket whose name is only the beginning of the name of its own bucket', async () => {
    const epoch = await settled();
    await run(BAN, 'futuresData fapi.example', 90_000, 'banned by 418');
    expect(await take(epoch, 'a', 1)).toBe('taken');
    const [data] = await run(TAKE, epoch, 'a', 'futuresData', WINDOW_MS, WINDOW, 1, LIMIT);
    expect(data).toBe('banned');
  });

  it('that has ended stops no bucket, and is forgotten', async () => {
    const epoch = await settled();
    const bans = `${key}:bans`;
    await server.client.hset(bans, 'futures fapi.example', `${Date.now() - 1000} ended`);
    await server.client.hset(bans, 'futures garbage.example', 'of another program');
    expect(await take(epoch, 'a', 1)).toBe('taken');
    expect((await look()).bans).toEqual([]);
    expect(await server.client.exists(bans)).toBe(0);
  });

  it('stays known as long as the longest one lasts', async () => {
    await run(BAN, 'futures fapi.example', 600_000, 'long');
    await run(BAN, 'spot api.example', 10_000, 'short');
    expect(await server.client.pttl(`${key}:bans`)).toBeGreaterThan(500_000);
    await run(BAN, 'spot api.example', 1_200_000, 'longer');
    expect(await server.client.pttl(`${key}:bans`)).toBeGreaterThan(1_100_000);
  });
});

describe.skipIf(!HAS_REDIS)(`the keys of a group${NEEDS_REDIS}`, () => {
  it('all end by themselves', async () => {
    await join('a', { own: 3, used: 5 });
    const epoch = await settled();
    await take(epoch, 'a', 60, WINDOW + 2);
    await take(epoch, 'a', 60, WINDOW + 2);
    await run(RAISE, epoch, 'futures', WINDOW_MS, WINDOW + 1, 50);
    await run(BAN, 'futures fapi.example', 90_000, 'banned');
    const keys = await server.client.keys(`${key}*`);
    expect(keys).toHaveLength(7);
    for (const name of keys) expect([name, await server.client.pttl(name)]).not.toEqual([name, -1]);
  });
});
