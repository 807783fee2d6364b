/** Programs in one egress group, as the venue counts them: a budget, a ban, and Redis that dies and comes back. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { cryptodlProcess } from '../helpers/cli.js';
import { groupScene, symbolsOf } from '../helpers/egress-group.js';
import type { GroupScene } from '../helpers/egress-group.js';
import { scratchFolder } from '../helpers/folders.js';
import { MISSING } from '../helpers/local-faults.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import type { RedisProcess } from '../helpers/redis-server.js';

const BUDGET = 2400;
const MINUTE_MS = 60_000;
const GROUP = 'office';
const scratch = scratchFolder();
let scene: GroupScene | undefined;
let redis: RedisProcess | undefined;
afterEach(async () => {
  await Promise.all([scene?.close(), redis?.close()]);
});

const opened = async (from: string, more: Partial<Parameters<typeof groupScene>[1]> = {}) => {
  const server = await startRedis();
  redis = server;
  const made = await groupScene(scratch, { from: Date.parse(from), symbols: symbolsOf(6), ...more });
  scene = made;
  const start = (symbol: string, how: Partial<Parameters<GroupScene['start']>[0]> = {}) =>
    made.start({ redis: server.address, group: GROUP, symbol, ...how });
  return { server, scene: made, venue: made.venue, start };
};

/** The clocks of two programs are wrong by ten minutes, one each way. */
const clockOf = (program: number): string[] | undefined =>
  MISSING.faketime === undefined && program < 2
    ? ['faketime', '-m', '-f', program === 0 ? '+10m' : '-10m']
    : undefined;

describe.skipIf(!HAS_REDIS)(`an egress group${NEEDS_REDIS}`, () => {
  it('of six programs stays inside one budget and uses at least 90 % of it, with clocks ten minutes apart', async () => {
    const { venue, start, scene: group } = await opened('2026-11-21T08:00:50Z');
    const results = await Promise.all(
      symbolsOf(6).map(({ symbol }, program) => {
        const wrap = clockOf(program);
        return start(symbol, wrap === undefined ? {} : { wrap });
      }),
    );
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0]);
    expect({ refused: venue.refused, banned: venue.banned }).toEqual({ refused: 0, banned: 0 });
    const fullest = Math.max(...group.counted(MINUTE_MS).values());
    expect(fullest).toBe(venue.mostCounted('futures-weight'));
    expect(fullest).toBeLessThanOrEqual(BUDGET);
    expect(fullest).toBeGreaterThanOrEqual(0.9 * BUDGET);
    expect(results.filter(({ stderr }) => stderr.includes('Redis'))).toEqual([]);
    for (const { events } of results)
      expect(events.at(-1)).toMatchObject({
        network: { limiter: { group: { name: GROUP, isShared: true } } },
      });
  }, 300_000);

  it('counts in windows by the clock of Redis before the first answer, and they end by themselves', async () => {
    const { server, start, scene: group } = await opened('2026-11-21T08:00:05Z', { symbols: symbolsOf(1) });
    const from = Date.now();
    const wrap = clockOf(0);
    const { code } = await start('S0USDT', wrap === undefined ? {} : { wrap });
    const minutes = Array.from({ length: Math.ceil((Date.now() - from) / MINUTE_MS) + 1 }, (_, at) => at);
    const ofRedis = minutes.map((minute) => Math.floor(from / MINUTE_MS) + minute);
    const known = new Set([...group.counted(MINUTE_MS).keys(), ...ofRedis]);
    const keys = await server.client.keys(`cryptodl:{${GROUP}}:used:*`);
    const unknown = keys.filter((key) => !known.has(Number(key.split(':').at(-1))));
    expect([code, keys.length > 1, unknown]).toEqual([0, true, []]);
    // -1: a key without an end. -2: it has ended.
    for (const key of keys) expect(await server.client.pttl(key)).not.toBe(-1);
  }, 120_000);

  it('stops when one program is banned, also for programs that start later, until doctor removes the ban', async () => {
    let isBanned = true;
    const {
      server,
      scene: group,
      venue,
      start,
    } = await opened('2026-11-21T08:00:05Z', {
      disturb: ({ number, query }) =>
        isBanned && number > 30 && query.get('symbol') === 'S0USDT'
          ? {
              status: 418,
              headers: { 'retry-after': '600' },
              body: '{"code":-1003,"msg":"Way too many requests"}',
            }
          : undefined,
    });
    const flags = ['--max-wait', '5s', '--concurrency', '1'];
    const first = await Promise.all(['S0USDT', 'S1USDT', 'S2USDT'].map((symbol) => start(symbol, { flags })));
    expect(first.map(({ code }) => code)).toEqual([7, 7, 7]);
    expect(venue.banned).toBeLessThanOrEqual(2);

    const asked = venue.log.length;
    const late = await start('S3USDT', { flags });
    expect([late.code, venue.log.length - asked]).toEqual([7, 0]);

    isBanned = false;
    const clear = ['doctor', '--clear-bans', group.host, '--redis', server.address, '--egress-group', GROUP];
    const cleared = await cryptodlProcess([...clear, '--state-dir', join(scratch, randomUUID())]);
    expect([cleared.code, cleared.stdout]).toEqual([0, expect.stringContaining(`removed: `)]);
    const free = await start('S3USDT', { flags });
    expect(free.code).toBe(0);
    expect(free.events.at(-1)).toMatchObject({
      network: { limiter: { group: { name: GROUP, members: 1, isShared: true } } },
    });
  }, 300_000);

  it('goes on with its shares while Redis is dead, and together again when it comes back without data', async () => {
    const { server, venue, start } = await opened('2026-11-21T08:00:30Z');
    const running = Promise.all(symbolsOf(6).map(({ symbol }) => start(symbol)));
    await until(() => venue.log.length > 300);
    await server.kill();
    const killedAt = venue.log.length;
    await until(() => venue.log.length > killedAt + 200);
    await server.start();
    const results = await running;
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0]);
    expect({ refused: venue.refused, banned: venue.banned }).toEqual({ refused: 0, banned: 0 });
    expect(venue.mostCounted('futures-weight')).toBeLessThanOrEqual(BUDGET);
    for (const { stderr } of results) {
      expect(stderr.match(/takes 1\/6 of each limit/g)).toHaveLength(1);
      expect(stderr.match(/Redis answers again/g)).toHaveLength(1);
    }
  }, 400_000);
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(20);
}
