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
      expect.stringMatching(/the connection is refused; until it answers, .* one tenth of each limit/),
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
    ['is suspended', () => server.suspend(), () => server.resume(), 'does not answer in time'],
    [
      'has no memory',
      () => server.client.config('SET', 'maxmemory', '1'),
      () => server.client.config('SET', 'maxmemory', '0'),
      'has no free memory',
    ],
    [
      'is read-only',
      () => server.client.replicaof('127.0.0.1', 1),
      () => server.client.replicaof('NO', 'ONE'),
      'is a read-only replica',
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

  it('tells an empty Redis of the other members, who keep their shares until they come', async () => {
    const { group, count } = enter('office');
    await take(count, 10);
    await server.client.hset('cryptodl:{office}:members', 'other', Date.now());
    await until(() => group.state.members === 2);
    await server.client.flushall();
    await take(count, 40);
    expect(group.state.members).toBe(2);
    await until(() => count.take(WINDOW, 1, BUDGET, 0) === Infinity);
    expect(count.used(WINDOW)).toBe(50);
  });

  it('gives back a permit that no request wants', async () => {
    const { group, count } = enter('office');
    await until(() => group.isJoined);
    const key = `cryptodl:{office}:used:futures:${BUDGET.windowMs}:${WINDOW}`;
    // Each answer finds no bucket that it could wake. The first permit makes the key.
    while ((await server.client.exists(key)) === 0) {
      count.take(WINDOW, 60, BUDGET, 0);
      await sleep(10);
    }
    const other = enter('office');
    await take(other.count, 100);
    expect(other.count.used(WINDOW)).toBe(100);
  });

  it('leaves the group at its end', async () => {
    const { group, count } = enter('office');
    await take(count, 1);
    expect(await server.client.hlen('cryptodl:{office}:members')).toBe(1);
    await group.leave();
    groups.splice(0);
    expect(await server.client.hlen('cryptodl:{office}:members')).toBe(0);
  });
});
