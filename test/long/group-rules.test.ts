/** The rules of an egress group, as a real redis-server runs them. */
import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CALL, MISSING_MS } from '../../src/http/throttle/group-script.js';
import type { GroupAnswer, Told, ToldWindow } from '../../src/http/throttle/group-script.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import type { RedisProcess } from '../helpers/redis-server.js';

const WINDOW_MS = 60_000;
/** The number of a window, not a time. */
const WINDOW = 29_000_000;
const LIMIT = 100;
const PLACE = 'futures fapi.example';

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

const call = async (id: string, told: Partial<Told> = {}): Promise<GroupAnswer> => {
  const all = { windows: [], bans: [], ...told };
  return (await server.client.eval(CALL, 1, key, id, JSON.stringify(all))) as GroupAnswer;
};
const windowKey = (window: number): string => `futures:${WINDOW_MS}:${window}`;
const counter = (window = WINDOW): string => `${key}:used:${windowKey(window)}`;
/** A call that tells the window. Returns the result and the count. */
const tell = async (id: string, told: Partial<ToldWindow>) => {
  const window = { key: windowKey(WINDOW), windowMs: WINDOW_MS, used: 0, alone: 0, limit: LIMIT };
  const [, , , [used], result] = await call(id, { windows: [{ ...window, ...told }] });
  return [result, used];
};
const take = (id: string, weight: number) => tell(id, { weight });

/** The members have told what they know. */
const settle = (): Promise<unknown> => server.client.hset(key, 'begun', Date.now() - 60_000);
/** A member without a sign of life for this time. */
const silent = (ageMs = MISSING_MS + 1000, id = 'missing'): Promise<unknown> =>
  server.client.hset(key, `member ${id}`, Date.now() - ageMs);
const members = async (): Promise<number> => (await call('a'))[1];
const bans = async (id = 'a', told: Partial<Told> = {}) => (await call(id, told))[2];

describe.skipIf(!HAS_REDIS)(`the budget of a group${NEEDS_REDIS}`, () => {
  it('is never overdrawn, refuses only what does not fit, and is exact again when all have told after a loss', async () => {
    const member = fc.nat(3);
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.tuple(fc.constant('take'), member, fc.integer({ min: 1, max: 40 })) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('give'), member, fc.integer({ min: 1, max: 40 })) },
      { weight: 2, arbitrary: fc.tuple(fc.constant('venue'), member, fc.nat(LIMIT)) },
      { weight: 1, arbitrary: fc.tuple(fc.constant('alone'), member, fc.integer({ min: 1, max: 9 })) },
      { weight: 1, arbitrary: fc.tuple(fc.constant('loss'), member, fc.nat(0)) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        key = `cryptodl:{${randomUUID()}}`;
        await tell('0', {});
        await settle();
        /** The counts of the last answers. */
        const known = [0, 0, 0, 0];
        let used = 0;
        for (const [act, who, number] of steps) {
          const asked = async (told: Partial<ToldWindow>): Promise<unknown> => {
            const [result, count] = await tell(`${who}`, { used: known[who] ?? 0, ...told });
            expect(count).toBe(used);
            known[who] = used;
            return result;
          };
          if (act === 'take') {
            const isFit = used + number <= LIMIT;
            if (isFit) used += number;
            expect(await asked({ weight: number })).toBe(isFit ? 'taken' : 'full');
          } else if (act === 'give') {
            // The others know the count before that, and a call of theirs in between would keep it.
            used = Math.max(0, used - number);
            await asked({ used: 0, weight: -number });
            known.fill(used);
          } else if (act === 'alone') {
            used += number;
            await asked({ alone: number });
          } else if (act === 'venue') {
            used = Math.max(used, number);
            await asked({ used: Math.max(known[who] ?? 0, number) });
          } else {
            await server.client.del(counter(), key);
            for (const [id, count] of known.entries()) await tell(`${id}`, { used: count });
            expect(await take('4', 1)).toEqual(['soon', used]);
            await settle();
          }
          expect(Number(await server.client.get(counter()))).toBe(used);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('counts what a member took without Redis, and no count of another program below 0', async () => {
    await settle();
    await server.client.set(counter(), '-50');
    expect(await take('a', 101)).toEqual(['full', 0]);
    await take('a', 30);
    expect(await tell('b', { used: 40, alone: 20 })).toEqual(['', 60]);
  });
});

describe.skipIf(!HAS_REDIS)(`a member of a group${NEEDS_REDIS}`, () => {
  it.each([
    ['alone', [], 50],
    ['with another one', ['b'], 67],
    ['with a clock of the server that was set back', [], 50, -60_000],
  ])('that is missing keeps its share: %s', async (_, others, left, ageMs?: number) => {
    await settle();
    for (const other of others) await call(other);
    await silent(ageMs);
    expect(await take('a', left + 1)).toEqual(['full', 0]);
    expect(await take('a', left)).toEqual(['taken', left]);
  });

  it('keeps nothing before it is missing, when it calls again, when it has left, and when it is forgotten', async () => {
    await settle();
    await silent(MISSING_MS - 1000, 'late');
    await silent(121_000, 'forgotten');
    await silent();
    expect(await take('missing', 40)).toEqual(['taken', 40]);
    await silent();
    await server.client.hdel(key, 'member missing');
    expect(await take('a', 60)).toEqual(['taken', 100]);
    expect(await members()).toBe(2);
  });

  it.each([
    ['counts', counter],
    ['members', () => key],
  ])('is without Redis if its call fails, and replaces no %s of another type', async (_, place) => {
    await server.client.rpush(place(), 'of another program');
    await expect(tell('a', { used: 1 })).rejects.toThrow('WRONGTYPE');
    expect(await server.client.type(place())).toBe('list');
    expect(await server.client.hget(key, 'member a').catch(() => null)).toBeNull();
  });
});

describe.skipIf(!HAS_REDIS)(`a Redis that lost its data${NEEDS_REDIS}`, () => {
  it('gives no permit before all members can have told what they know', async () => {
    expect(await take('a', 1)).toEqual(['soon', 0]);
    await server.client.hset(key, 'begun', Date.now() - 1000);
    expect(await tell('b', { used: 60, weight: 1 })).toEqual(['soon', 60]);
    await settle();
    expect(await take('a', 1)).toEqual(['taken', 61]);
  });
});

describe.skipIf(!HAS_REDIS)(`a ban of a group${NEEDS_REDIS}`, () => {
  it('reaches each member, and only a longer one replaces it', async () => {
    await settle();
    await bans('a', { bans: [[PLACE, 90_000, 'banned by 418']] });
    await bans('b', { bans: [[PLACE, 10_000, 'a shorter one']] });
    const [[place, leftMs, why] = []] = await bans('late');
    expect([place, why]).toEqual([PLACE, 'banned by 418']);
    expect(leftMs).toBeGreaterThan(60_000);
    expect(await bans('b', { bans: [[PLACE, 1e12, 'a longer one']] })).toEqual([
      [PLACE, 7 * 86_400_000, 'a longer one'],
    ]);
  });

  it('that has ended is forgotten, and so is one of another program', async () => {
    await settle();
    await server.client.hset(key, `ban ${PLACE}`, `${Date.now() - 1000} ended`, 'ban spot b', 'garbage');
    expect(await bans()).toEqual([]);
    expect((await server.client.hkeys(key)).sort()).toEqual(['begun', 'member a']);
  });
});

it.skipIf(!HAS_REDIS)(
  `the keys of a group end by themselves, and not before its longest ban${NEEDS_REDIS}`,
  async () => {
    await settle();
    for (const window of [WINDOW, WINDOW + 1])
      await tell('a', { key: windowKey(window), used: 5, weight: 60 });
    await call('a', {
      bans: [
        [PLACE, 90_000_000, 'long'],
        ['spot b', 10_000, 'short'],
      ],
    });
    const keys = await server.client.keys(`${key}*`);
    expect(keys).toHaveLength(3);
    for (const name of keys) {
      const leastMs = name === key ? 80_000_000 : WINDOW_MS;
      expect(await server.client.pttl(name)).toBeGreaterThan(leastMs);
    }
  },
);
