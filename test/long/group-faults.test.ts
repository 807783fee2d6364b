/** An egress group while Redis is missing, suspended, full, read-only or without its data. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GroupCount } from '../../src/http/throttle/group-count.js';
import { EgressGroup } from '../../src/http/throttle/group.js';
import { systemClock } from '../../src/model/clock.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import type { RedisProcess } from '../helpers/redis-server.js';

/** It does not end during a test. */
const WINDOW = 1;
const BUDGET = { permits: 100, windowMs: 3_600_000 };

let server: RedisProcess;
let warnings: string[];
const groups: EgressGroup[] = [];

beforeEach(async () => {
  warnings = [];
  if (HAS_REDIS) server = await startRedis();
});
afterEach(async () => {
  await Promise.all(groups.splice(0).map((group) => group.leave()));
  if (HAS_REDIS) await server.close();
});

function enter(name: string = randomUUID()): { group: EgressGroup; count: GroupCount } {
  const warn = (text: string): void => void warnings.push(text);
  const group = new EgressGroup({ address: server.address, name, clock: systemClock, warn });
  group.enter();
  groups.push(group);
  return { group, count: new GroupCount(group, 'futures', systemClock) };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(10);
}

/** Waits for permits as a bucket does: an answer wakes it, and it tries again after a refusal. */
function take(count: GroupCount, weight: number): Promise<void> {
  let isTaken = false;
  const attempt = (): void => {
    isTaken ||= count.take(WINDOW, weight, BUDGET, 0) === 0;
  };
  count.onChange(attempt);
  return until(() => {
    attempt();
    return isTaken;
  });
}

describe.skipIf(!HAS_REDIS)(`a program of an egress group${NEEDS_REDIS}`, () => {
  it('takes a tenth if it starts without Redis, and joins when Redis starts', async () => {
    await server.kill();
    const { group, count } = enter();
    await group.opened();
    expect(warnings).toEqual([
      expect.stringMatching(/ECONNREFUSED 127\.0\.0\.1:\d+; until it answers, .* one tenth of each limit/),
    ]);
    expect(group.state).toMatchObject({ members: 10, isShared: false });
    // The window began before the loss, so others may have used it.
    expect(count.take(WINDOW, 1, BUDGET, 3_000_000)).toBe(Infinity);
    await server.start();
    await until(() => group.isJoined);
    await take(count, 30);
    expect(warnings).toHaveLength(2);
    expect(warnings[1]).toContain('(1 program) shares its limits');
  });

  it.each<[string, () => unknown, () => unknown, string]>([
    ['is suspended', () => server.suspend(), () => server.resume(), 'timed out'],
    [
      'has no memory',
      () => server.client.config('SET', 'maxmemory', '1'),
      () => server.client.config('SET', 'maxmemory', '0'),
      'OOM command not allowed',
    ],
    [
      'is read-only',
      () => server.client.replicaof('127.0.0.1', 1),
      () => server.client.replicaof('NO', 'ONE'),
      'READONLY ',
    ],
    ['is killed and restarted without data', () => server.kill(), () => server.start(), ''],
  ])('says once that Redis %s, and once that it answers again', async (_, begin, end, reason) => {
    const { group, count } = enter();
    await take(count, 30);
    await begin();
    await until(() => !group.isJoined);
    // The rest of the window is not known, so nothing is taken.
    expect(count.take(WINDOW, 1, BUDGET, 1_000)).toBe(Infinity);
    expect(warnings).toEqual([expect.stringContaining('takes 1/1 of each limit')]);
    expect(warnings[0]).toContain(reason);
    await end();
    await until(() => group.isJoined);
    expect(warnings).toHaveLength(2);
    // The count survives, also in an empty Redis.
    await take(count, 70);
    expect(count.used(WINDOW)).toBe(100);
    await until(() => count.take(WINDOW, 1, BUDGET, 0) === Infinity);
  });

  it('tells an empty Redis of the bans, also of one that it could not tell before', async () => {
    const { group } = enter('office');
    await group.opened();
    await group.ban('futures host', 90_000, 'a half of a character: \ud83d');
    await server.kill();
    await group.ban('spot host', 90_000, 'why');
    await server.start();
    await until(() => group.isJoined);
    const { group: late } = enter('office');
    await late.opened();
    expect(late.bans.map(({ place }) => place).sort()).toEqual(['futures host', 'spot host']);
  });
});

/** Keys of the group `office` with values that no member wrote. */
describe.skipIf(!HAS_REDIS)(`foreign data in the keys of a group${NEEDS_REDIS}`, () => {
  const group = 'cryptodl:{office}';
  const expectNoMore = (count: GroupCount): Promise<void> =>
    until(() => count.take(WINDOW, 1, BUDGET, 0) === Infinity);

  it.each<[string, () => Promise<unknown>]>([
    [
      'members',
      () =>
        server.client.hset(group, {
          'member a': 'soon',
          'member b': '-1',
          'member c': '',
          'member d': '-inf 1',
        }),
    ],
    [
      'bans',
      () => server.client.hset(group, { 'ban futures a': 'soon', 'ban b': '', 'ban futures b': '-1 x' }),
    ],
    ['a beginning', () => server.client.hset(group, 'begun', 'soon')],
    ['other fields', () => server.client.hset(group, { 'last futures': 'x', other: 'y' })],
  ])('changes no limit: %s', async (_, write) => {
    await write();
    const { count } = enter('office');
    await take(count, 100);
    await expectNoMore(count);
    expect(warnings).toEqual([]);
  });

  it('of a group of another name are not read', async () => {
    const [one, other] = [enter('office'), enter('home')];
    await Promise.all([take(one.count, 100), take(other.count, 100)]);
    await expectNoMore(one.count);
    await expectNoMore(other.count);
    expect(one.group.state.members).toBe(1);
  });
});

it.skipIf(!HAS_REDIS).each([
  ['no scripts', ['~*', '+@all', '-eval']],
  ['no keys of the group', ['~other:*', '+@all']],
])(`a user of Redis with %s ends the run${NEEDS_REDIS}`, async (_, rules) => {
  await server.client.acl('SETUSER', 'joe', 'on', '>open-sesame', ...rules);
  const warn = (text: string): void => void warnings.push(text);
  const address = `redis://joe:open-sesame@127.0.0.1:${server.port}`;
  const group = new EgressGroup({ address, name: 'office', clock: systemClock, warn });
  group.enter();
  groups.push(group);
  await expect(group.opened()).rejects.toMatchObject({
    code: 'redis-refused',
    message: expect.stringContaining(`Redis at redis://127.0.0.1:${server.port}: NOPERM `),
  });
  expect(warnings).toEqual([]);
});
