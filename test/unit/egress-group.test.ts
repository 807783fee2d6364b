/** A program of an egress group, with the answers of Redis from the test. The scripts run in `test/long/group-rules.test.ts`. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GroupCount } from '../../src/http/throttle/group-count.js';
import { BAN, GIVE_BACK, JOIN, LEAVE, RAISE, TAKE } from '../../src/http/throttle/group-scripts.js';
import { EgressGroup, egressGroupOf } from '../../src/http/throttle/group.js';
import { SharedResources } from '../../src/model/io.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

type Reply = string | number | Error | readonly Reply[];
const SCRIPTS = { join: JOIN, take: TAKE, raise: RAISE, giveBack: GIVE_BACK, ban: BAN, leave: LEAVE };
const NAMES = new Map(Object.entries(SCRIPTS).map(([name, script]) => [script, name]));
const BUDGET = { permits: 100, windowMs: 60_000 };
const WINDOW = 7;

let clock: VirtualClock;
let server: Server;
let answers: Record<string, (words: readonly string[]) => Reply>;
/** The scripts and other commands that were run, with their arguments. */
let asked: { readonly name: string; readonly words: readonly string[] }[];
let warnings: string[];
const sockets = new Set<Socket>();
const groups: EgressGroup[] = [];

const encode = (reply: Reply): string => {
  if (reply instanceof Error) return `-${reply.message}\r\n`;
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`;
  return `*${reply.length}\r\n${reply.map(encode).join('')}`;
};

/** The first command of a text in the protocol of Redis, and the rest of the text. */
function readCommand(text: string): { words: string[]; rest: string } | undefined {
  const words: string[] = [];
  let rest = text.slice(text.indexOf('\n') + 1);
  for (let left = Number(/^\*(\d+)\r\n/.exec(text)?.[1] ?? Infinity); left > 0; left -= 1) {
    const [head, length] = /^\$(\d+)\r\n/.exec(rest) ?? [];
    if (head === undefined || rest.length < head.length + Number(length) + 2) return undefined;
    words.push(rest.slice(head.length, head.length + Number(length)));
    rest = rest.slice(head.length + Number(length) + 2);
  }
  return { words, rest };
}

beforeEach(async () => {
  clock = new VirtualClock();
  [asked, warnings] = [[], []];
  answers = {
    info: () => 'redis_version:7.0.0\r\n',
    join: ([, id = '']) => ['1 x', 5_000_000, [id, 'other'], []],
    take: () => ['taken', 0],
  };
  server = createServer((socket) => {
    let text = '';
    sockets.add(socket.setEncoding('latin1').on('error', () => undefined));
    socket.on('data', (chunk: string) => {
      text += chunk;
      for (let next = readCommand(text); next !== undefined; next = readCommand(text)) {
        text = next.rest;
        const [command = '', script = '', , , ...words] = next.words;
        const name = NAMES.get(script) ?? command;
        asked.push({ name, words: NAMES.has(script) ? words : next.words.slice(1) });
        socket.write(encode(answers[name]?.(words) ?? ['done']));
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  await Promise.all(groups.splice(0).map((group) => group.leave()));
  for (const socket of sockets) socket.destroy();
  server.close();
});

/** Redis answers within this process, so many turns of the event loop without an answer mean that none comes. */
const until = async (isSo: () => boolean): Promise<void> => {
  for (let turns = 0; turns < 50_000 && !isSo(); turns += 1) await turn();
  expect(isSo()).toBe(true);
};
const wordsOf = (name: string): (readonly string[])[] =>
  asked.filter((each) => each.name === name).map(({ words }) => words);

function enter() {
  const address = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const warn = (text: string): void => void warnings.push(text);
  const group = new EgressGroup({ address, name: 'office', clock, warn });
  group.enter();
  groups.push(group);
  const count = new GroupCount(group, 'futures', clock);
  const take = (weight = 1, window = WINDOW): number => count.take(window, weight, BUDGET, 0);
  /** Takes permits when the answer of Redis wakes the bucket. */
  const taken = async (weight = 1, window = WINDOW): Promise<void> => {
    let isTaken = false;
    count.onChange(() => (isTaken ||= take(weight, window) === 0));
    take(weight, window);
    await until(() => isTaken);
  };
  /** Redis refuses a command and all further attempts to join. */
  const lose = (message: string): Promise<void> => {
    answers['ban'] = answers['join'] = () => new Error(message);
    return group.ban('futures host', 1, '');
  };
  return { group, count, take, taken, lose };
}

async function joined() {
  const entered = enter();
  await entered.group.opened();
  return entered;
}

describe('a program of an egress group', () => {
  it('leaves no connection behind if it leaves before it is connected, and may enter again at once', async () => {
    const { group } = enter();
    await group.leave();
    group.enter();
    await group.opened();
    expect([group.isJoined, wordsOf('join').length]).toEqual([true, 1]);
    const leaving = group.leave();
    group.enter();
    await Promise.all([leaving, group.opened()]);
    expect([group.isJoined, wordsOf('join').length, warnings]).toEqual([true, 2, []]);
    await group.leave();
    group.enter();
    await group.leave();
    await group.opened();
    await until(() => [...sockets].every(({ destroyed }) => destroyed));
    expect(groups.pop()).toBe(group);
  });

  it('is that of the options, and one for all runs of a process', () => {
    const common = new SharedResources();
    const of = (redis?: string, egressGroup?: string) =>
      egressGroupOf({ redis, egressGroup }, { clock, warn: () => undefined, common });
    expect([of('redis://a'), of(undefined, 'office')]).toEqual([undefined, undefined]);
    expect(of('redis://a', 'office')).toBe(of('redis://a', 'office'));
    expect(of('redis://a', 'lab')).toMatchObject({ key: 'redis://a lab', state: { name: 'lab' } });
  });

  it('joins once for all runs, and tells what it knows with each sign of life, until the last run leaves', async () => {
    const { group, taken, count } = await joined();
    group.enter();
    expect([count.used(WINDOW), count.holds(WINDOW, 0)]).toEqual([0, false]);
    count.raise(WINDOW, 9);
    count.giveBack(WINDOW, 9);
    expect(group.state).toEqual({ name: 'office', members: 2, isShared: true });
    expect([group.offsetMs, count.offsetMs]).toEqual(Array(2).fill(5_000_000 - clock.monotonic()));
    await taken(30);
    await clock.advance(499);
    expect(wordsOf('join')).toHaveLength(1);
    await clock.advance(1);
    await until(() => wordsOf('join').length === 2);
    const [[none, id, , first = ''] = [], [epoch, same, , second = ''] = []] = wordsOf('join');
    expect([none, epoch, same, id?.length]).toEqual(['', '1 x', id, 13]);
    expect(JSON.parse(first)).toEqual({ epoch: '', others: [], counts: [] });
    const known = { key: 'futures:60000:7', windowMs: 60_000, own: 30, used: 0 };
    expect(JSON.parse(second)).toEqual({ epoch: '1 x', others: ['other'], counts: [known] });
    await group.leave();
    expect([group.isJoined, wordsOf('leave')]).toEqual([true, []]);
    // The last run leaves while a sign of life has no answer, and then Redis fails.
    let leaving: Promise<void> | undefined;
    answers['leave'] = () => new Error('OOM no memory');
    answers['join'] = () => {
      leaving = group.leave();
      return ['1 x', 5_000_000, [], []];
    };
    await clock.advance(500);
    await until(() => leaving !== undefined);
    await leaving;
    groups.splice(0);
    expect([group.isJoined, wordsOf('leave'), clock.waiting, warnings]).toEqual([false, [[id]], 0, []]);
  });

  it('asks for its weight once and takes what it gets at the answer, in each window', async () => {
    const { count, take, taken } = await joined();
    answers['take'] = () => ['taken', 40];
    const woken: unknown[] = [];
    expect([take(5), count.isAsking, take(5), count.used(WINDOW)]).toEqual([1000, true, 1000, 0]);
    count.onChange(() => {
      if (woken.length === 0)
        woken.push(
          ...[5, 6].map((weight) => count.holds(WINDOW, weight)),
          count.holds(8, 5),
          count.used(WINDOW),
          take(5),
        );
    });
    await until(() => woken.length > 0);
    expect(woken).toEqual([true, false, false, 35, 0]);
    expect([count.used(WINDOW), count.used(WINDOW + 1), count.isAsking]).toEqual([40, 0, false]);
    expect(wordsOf('take')).toEqual([['1 x', wordsOf('join')[0]?.[1], 'futures', '60000', '7', '5', '100']]);
    await taken(1, WINDOW + 1);
    expect([count.used(WINDOW), count.used(WINDOW + 1)]).toEqual([0, 40]);
  });

  it('gives back permits that no request wants, and those of requests that were not sent', async () => {
    const { group, count, take, taken } = await joined();
    answers['take'] = () => ['taken', 5];
    take(5);
    await until(() => wordsOf('giveBack').length > 0);
    expect([count.used(WINDOW), count.holds(WINDOW, 1)]).toEqual([0, false]);
    await taken(5);
    count.giveBack(WINDOW, 5);
    count.giveBack(WINDOW + 1, 3);
    await group.ban('futures host', 1.5, 'why');
    const given = ['1 x', wordsOf('join')[0]?.[1], 'futures', '60000', '7', '5'];
    expect([count.used(WINDOW), wordsOf('giveBack')]).toEqual([0, [given, given]]);
    expect(wordsOf('ban')).toEqual([['futures host', '2', 'why']]);
  });

  it.each([
    ['another window', WINDOW + 1, 60_000],
    ['a window of another length', WINDOW, 30_000],
  ])('gives back permits that come in %s', async (_, window, windowMs) => {
    const { group, count, take } = await joined();
    const takeThere = (): number => count.take(window, 1, { permits: 100, windowMs }, 0);
    take(5);
    expect(takeThere()).toBe(1000);
    await until(() => wordsOf('giveBack').length > 0);
    expect(count.used(window)).toBe(0);
    answers['take'] = () => ['full', 0];
    for (const each of [takeThere, take]) expect(each()).toBe(1000);
    await until(() => !count.isAsking);
    await group.ban('futures host', 1, '');
    expect(wordsOf('giveBack').map((words) => words.slice(2))).toEqual([['futures', '60000', '7', '5']]);
    expect(wordsOf('take')[1]?.slice(3)).toEqual([`${windowMs}`, `${window}`, '1', '100']);
  });

  it.each([
    ['full', Infinity, 900],
    ['soon', 50, 100],
  ])('asks again some time after the answer `%s`, or for less', async (result, waitMs, againMs) => {
    const { count, take } = await joined();
    const asks = (weight: number, window = WINDOW) => [take(weight, window), count.isAsking];
    answers['take'] = () => [result, 90];
    take(20);
    await until(() => !count.isAsking);
    expect(count.used(WINDOW)).toBe(90);
    await clock.advance(againMs - 50);
    expect([asks(20), asks(21)]).toEqual([20, 21].map(() => [waitMs, false]));
    expect(asks(19)).toEqual([1000, true]);
    await until(() => !count.isAsking);
    await clock.advance(againMs);
    expect(asks(20)).toEqual([1000, true]);
    await until(() => !count.isAsking);
    expect(asks(20, WINDOW + 1)).toEqual([1000, true]);
  });

  it('tells the group of a higher count of the venue, and joins again with all its permits at an unknown answer', async () => {
    const { group, count, take, taken } = await joined();
    answers['take'] = () => ['taken', 50];
    await taken(1);
    for (const used of [50, 60, 55]) count.raise(WINDOW, used);
    count.raise(WINDOW + 1, 99);
    answers['take'] = () => ['taken', 65];
    take(5);
    // The bucket now wants one permit more than it gets.
    count.onChange(() => {
      answers['take'] = () => ['lost'];
      take(6);
    });
    await until(() => wordsOf('giveBack').length > 0);
    expect(wordsOf('raise')).toEqual([['1 x', 'futures', '60000', '7', '60']]);
    expect(wordsOf('take').map((words) => words[5])).toEqual(['1', '5', '1']);
    expect([count.used(WINDOW), wordsOf('join').length, group.isJoined]).toEqual([60, 2, true]);
    expect(JSON.parse(wordsOf('join')[1]?.[3] ?? '')).toMatchObject({ counts: [{ own: 6, used: 65 }] });
    expect([wordsOf('giveBack')[0]?.[5], take(6)]).toEqual(['5', 100]);
  });

  it('takes its share without Redis in windows that began after the others noticed, and no more than the venue has left', async () => {
    const { group, count, lose, taken } = await joined();
    await taken(10);
    expect(group.aloneFrom).toBeUndefined();
    await lose('READONLY a replica');
    await lose('OOM again');
    expect(group.aloneFrom).toBe(clock.monotonic() + 10_000);
    const reason =
      /READONLY a replica; until it answers, .* takes 1\/2 of each limit, .* office had 2 programs, from/;
    expect(warnings).toEqual([expect.stringMatching(reason)]);
    await clock.advance(20_000);
    const alone = (window: number, weight: number, at = 0): number => count.take(window, weight, BUDGET, at);
    expect([alone(8, 1, 10_001), alone(8, 51, 10_000), alone(8, 50, 10_000)]).toEqual([
      Infinity,
      Infinity,
      0,
    ]);
    expect([alone(8, 1), count.used(8), alone(9, 1)]).toEqual([Infinity, 50, 0]);
    count.raise(9, 80);
    count.raise(9, 70);
    expect([count.used(9), alone(9, 21), alone(9, 20)]).toEqual([80, Infinity, 0]);
    count.giveBack(9, 20);
    expect(alone(9, 20)).toBe(0);
    await lose('OOM again');
    await group.leave();
    expect(['raise', 'giveBack', 'leave'].map(wordsOf)).toEqual([[], [], []]);
    groups.splice(0);
  });

  it.each([
    ['other errors', 'OOM no memory', 500],
    ['a refusal', 'NOPERM no permissions', 500],
    ['data of another program', 'WRONGTYPE Operation against a key', 60_000],
  ])('joins again after %s, and tells the buckets of both', async (_, message, againMs) => {
    const { group, count, lose } = await joined();
    let changes = 0;
    count.onChange(() => (changes += 1));
    await lose(message);
    expect([changes, group.state.isShared, warnings.length]).toEqual([1, false, 1]);
    const told: number[] = [];
    answers['join'] = () => {
      told.push(changes);
      return ['2 y', 6_000_000, ['one'], []];
    };
    await clock.advance(againMs - 1);
    expect(wordsOf('join')).toHaveLength(1);
    await clock.advance(1000);
    await until(() => told.length === 2);
    expect(told).toEqual([1, 2]);
    expect(wordsOf('join').map(([epoch]) => epoch)).toEqual(['', '', '2 y']);
    expect(JSON.parse(wordsOf('join')[1]?.[3] ?? '')).toMatchObject({ epoch: '1 x', others: ['other'] });
    expect([group.aloneFrom, warnings.length]).toEqual([undefined, 2]);
    expect(warnings[1]).toBe('Redis answers again: the group office (1 program) shares its limits');
  });

  it('takes one tenth if it has never joined, and ends if Redis will never accept it', async () => {
    answers['join'] = () => 'what';
    const { group, take } = await joined();
    expect(warnings.splice(0)).toEqual([
      expect.stringMatching(/another program; .* one tenth of each limit/),
    ]);
    await clock.advance(70_000);
    expect([group.members, take(11), take(10), take(1)]).toEqual([10, Infinity, 0, Infinity]);
    answers['join'] = () => new Error('NOPERM no permissions');
    await expect(enter().group.opened()).rejects.toMatchObject({ code: 'redis-refused' });
    answers['info'] = () => 'redis_version:5.0.0\r\n';
    const refused = expect.stringContaining('version 5.0') as string;
    await expect(enter().group.opened()).rejects.toMatchObject({ code: 'redis-refused', message: refused });
    expect(warnings).toEqual([]);
  });

  it('tells why it has no connection', async () => {
    const { group } = enter();
    server.close();
    await group.opened();
    const reason = expect.stringContaining('ECONNREFUSED') as string;
    expect(warnings).toEqual([reason]);
    await expect(group.clearBans(() => true)).rejects.toMatchObject({ message: reason });
  });

  it('tells bans when they are new or longer, and removes them from Redis, unless it cannot be used', async () => {
    const banned = (...bans: readonly Reply[]): void => {
      answers['join'] = ([, id = '']) => ['1 x', 5_000_000, [id], bans];
    };
    banned('spot a', 5000, 'why', 'spot b', 'many', '', 'spot c', 1e12, '');
    const { group, lose } = enter();
    const told: [string, number][] = [];
    group.bans.onBan(({ place, until: end }) => told.push([place, end - clock.monotonic()]));
    await group.opened();
    expect(told.splice(0)).toEqual([
      ['spot a', 5000],
      ['spot c', 7 * 86_400_000],
    ]);
    for (const [leftMs, telling] of [
      [5000, []],
      [5501, [['spot a', 5501]]],
    ] as const) {
      banned('spot a', leftMs, 'why');
      await clock.advance(500);
      await until(() => group.bans.current[0]?.until === clock.monotonic() + leftMs);
      expect(told.splice(0)).toEqual(telling);
    }
    expect(group.bans.current).toMatchObject([{ place: 'spot a', why: 'why' }]);
    expect(await group.clearBans((place) => place !== 'spot a')).toEqual([]);
    expect(await group.clearBans(() => true)).toEqual(['spot a']);
    expect([group.bans.current, wordsOf('hdel')]).toEqual([[], [['cryptodl:{office}:bans', 'spot a']]]);
    banned('spot a', 300, 'why');
    await clock.advance(500);
    await until(() => group.bans.current.length === 1);
    await lose('OOM no memory');
    await clock.advance(299);
    expect(group.bans.current).toHaveLength(1);
    await clock.advance(1);
    expect(group.bans.current).toEqual([]);
    await expect(group.clearBans(() => true)).rejects.toMatchObject({ code: 'redis-unreachable' });
  });
});
