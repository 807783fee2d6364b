/** A program of an egress group, with the answers of Redis from the test. The script runs in `test/long/group-rules.test.ts`. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GroupCount } from '../../../src/http/throttle/group-count.js';
import { CALL } from '../../../src/http/throttle/group-script.js';
import type { Told, ToldWindow } from '../../../src/http/throttle/group-script.js';
import { EgressGroup, egressGroupOf } from '../../../src/http/throttle/group.js';
import { SharedResources } from '../../../src/model/shared-resources.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

type Reply = string | number | Error | readonly Reply[];
const BUDGET = { permits: 100, windowMs: 60_000 };
const WINDOW = 7;

let clock: VirtualClock;
let server: Server;
let answers: { info: () => Reply; hdel: () => Reply; call: (told: Told) => Reply };
/** What was told with each call, and the arguments of HDEL. */
let calls: Told[];
let removed: (readonly string[])[];
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

/** Redis has this count before the call, and answers like this to permits that are wanted. */
const answering =
  (result: string, used = 0, bans: readonly Reply[] = []) =>
  (told: Told): Reply => {
    const counts = told.windows.map(
      ({ weight = 0 }) => used + (weight < 0 || result === 'taken' ? weight : 0),
    );
    const isAsking = told.windows.some(({ weight = 0 }) => weight > 0);
    return [5_000_000, 2, bans, counts, isAsking ? result : ''];
  };

function answerTo(command: string, words: readonly string[]): Reply {
  if (command === 'info') return answers.info();
  if (command === 'hdel') {
    removed.push(words);
    return answers.hdel();
  }
  const [script, , , , json = ''] = words;
  if (script !== CALL) return 'OK';
  const told = JSON.parse(json) as Told;
  calls.push(told);
  return answers.call(told);
}

beforeEach(async () => {
  clock = new VirtualClock();
  [calls, removed, warnings] = [[], [], []];
  answers = { info: () => 'redis_version:7.0.0\r\n', hdel: () => 1, call: answering('taken') };
  server = createServer((socket) => {
    let text = '';
    sockets.add(socket.setEncoding('latin1').on('error', () => undefined));
    socket.on('data', (chunk: string) => {
      text += chunk;
      for (let next = readCommand(text); next !== undefined; next = readCommand(text)) {
        text = next.rest;
        const [command = '', ...words] = next.words;
        socket.write(encode(answerTo(command, words)));
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
/** The windows that were told and want permits, or give them back. */
const asks = (): ToldWindow[] =>
  calls.flatMap(({ windows }) => windows.filter(({ weight }) => weight !== undefined));

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
    answers.call = () => new Error(message);
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
  it('leaves no connection behind if it leaves before it is connected', async () => {
    const { group } = enter();
    await group.leave();
    await group.opened();
    await until(() => [...sockets].every(({ destroyed }) => destroyed));
    expect([groups.pop(), group.isJoined, calls.length, warnings]).toEqual([group, false, 0, []]);
  });

  it('is that of the options, and one for all runs of a process until the last one leaves', async () => {
    const common = new SharedResources();
    const of = (redis?: string, egressGroup?: string) =>
      egressGroupOf({ redis, egressGroup }, { clock, warn: () => undefined }, common);
    expect([of('redis://a'), of(undefined, 'office')]).toEqual([undefined, undefined]);
    expect(of('redis://a', 'office')).toBe(of('redis://a', 'office'));
    const lab = of('redis://a', 'lab');
    expect(lab).toMatchObject({ state: { name: 'lab', members: 10 } });
    await lab?.leave();
    expect(of('redis://a', 'lab')?.id).not.toBe(lab?.id);
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
    expect(calls).toHaveLength(2);
    answers.call = answering('', 40);
    await clock.advance(1);
    await until(() => count.used(WINDOW) === 40);
    expect(calls[0]).toEqual({ windows: [], bans: [] });
    const known = { key: 'futures:60000:7', windowMs: 60_000, used: 30, alone: 0 };
    expect(calls[2]).toEqual({ windows: [known], bans: [] });
    await group.leave();
    expect([group.isJoined, removed]).toEqual([true, []]);
    // The last run leaves while a sign of life has no answer, and then Redis fails.
    let leaving: Promise<void> | undefined;
    answers.hdel = () => new Error('OOM no memory');
    answers.call = () => {
      leaving = group.leave();
      return [];
    };
    await clock.advance(500);
    await until(() => leaving !== undefined);
    await leaving;
    groups.splice(0);
    expect(removed).toEqual([['cryptodl:{office}', `member ${group.id}`]]);
    expect([group.isJoined, clock.waiting, warnings]).toEqual([false, 0, []]);
  });

  it('asks for its weight once and takes what it gets at the answer, in each window', async () => {
    const { count, take, taken } = await joined();
    answers.call = answering('taken', 35);
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
    expect(asks()).toMatchObject([{ key: 'futures:60000:7', windowMs: 60_000, weight: 5, limit: 100 }]);
    await taken(1, WINDOW + 1);
    expect([count.used(WINDOW), count.used(WINDOW + 1)]).toEqual([0, 36]);
  });

  it('gives back permits that no request wants, and those of requests that were not sent', async () => {
    const { count, take, taken } = await joined();
    take(5);
    await until(() => asks().length === 2);
    expect([count.used(WINDOW), count.holds(WINDOW, 1)]).toEqual([0, false]);
    await taken(5);
    count.giveBack(WINDOW, 5);
    count.giveBack(WINDOW + 1, 3);
    expect(count.used(WINDOW)).toBe(0);
    await until(() => asks().length === 4);
    expect(asks().map(({ used, weight }) => `${used} ${weight}`)).toEqual(['0 5', '0 -5', '0 5', '0 -5']);
  });

  it.each([
    ['another window', WINDOW + 1, 60_000],
    ['a window of another length', WINDOW, 30_000],
  ])('does not use permits that come in %s', async (_, window, windowMs) => {
    const { count, take } = await joined();
    const takeThere = (): number => count.take(window, 1, { permits: 100, windowMs }, 0);
    take(5);
    expect(takeThere()).toBe(1000);
    await until(() => !count.isAsking);
    expect(count.used(window)).toBe(0);
    answers.call = answering('full');
    for (const each of [takeThere, take]) expect(each()).toBe(1000);
    await until(() => !count.isAsking);
    expect(asks()).toMatchObject([
      { key: 'futures:60000:7', weight: 5 },
      { key: `futures:${windowMs}:${window}`, weight: 1 },
    ]);
    expect(take()).toBe(1000);
  });

  it('tells no window that has ended for a bucket without requests', async () => {
    const { group, taken } = await joined();
    await taken(5);
    for (const [waitMs, windows] of [
      [59_000, 1],
      [1000, 0],
    ] as const) {
      await clock.advance(waitMs);
      await group.call();
      expect(calls.at(-1)?.windows).toHaveLength(windows);
    }
  });

  it.each([
    ['full', Infinity, 900],
    ['soon', 50, 100],
  ])('asks again some time after the answer `%s`, or for less', async (result, waitMs, againMs) => {
    const { count, take } = await joined();
    const attempt = (weight: number, window = WINDOW) => [take(weight, window), count.isAsking];
    answers.call = answering(result, 90);
    take(20);
    await until(() => !count.isAsking);
    expect(count.used(WINDOW)).toBe(90);
    await clock.advance(againMs - 50);
    expect([attempt(20), attempt(21)]).toEqual([20, 21].map(() => [waitMs, false]));
    expect(attempt(19)).toEqual([1000, true]);
    await until(() => !count.isAsking);
    await clock.advance(againMs);
    expect(attempt(20)).toEqual([1000, true]);
    await until(() => !count.isAsking);
    expect(attempt(20, WINDOW + 1)).toEqual([1000, true]);
  });

  it('counts what the venue counted at once, tells it with the next call, and asks for what it lacks', async () => {
    const { count, take, taken } = await joined();
    await taken(1);
    for (const used of [50, 60, 55]) count.raise(WINDOW, used);
    count.raise(WINDOW + 1, 99);
    expect(count.used(WINDOW)).toBe(60);
    answers.call = answering('taken', 60);
    take(5);
    // The bucket now wants one permit more than it gets.
    let isTaken = false;
    count.onChange(() => (isTaken ||= take(6) === 0));
    await until(() => isTaken);
    expect(asks().map(({ weight, used }) => `${weight} ${used}`)).toEqual(['1 0', '5 60', '1 65']);
    expect(count.used(WINDOW)).toBe(65);
  });

  it('takes its share without Redis in windows that began after the others noticed, and no more than the venue has left', async () => {
    const { group, count, lose, taken } = await joined();
    await taken(10);
    expect(group.aloneFromMs).toBeUndefined();
    await lose('MISCONF no disk');
    await lose('OOM again');
    expect(group.aloneFromMs).toBe(clock.monotonic() + 10_000);
    const reason = /MISCONF no disk; until it answers, .* takes 1\/2 of each limit, .* group office, from/;
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
    expect(asks()).toHaveLength(1);
    // Redis counts the permits once.
    answers.call = answering('taken', 21);
    await clock.advance(500);
    await until(() => group.isJoined);
    await group.call();
    const told = calls.slice(-2).map(({ windows: [window] }) => `${window?.used} ${window?.alone}`);
    expect([...told, count.used(9)]).toEqual(['80 21', '80 0', 80]);
    await lose('OOM again');
    await group.leave();
    expect(removed).toEqual([]);
    groups.splice(0);
  });

  it.each([
    ['other errors', 'OOM no memory'],
    ['a refusal', 'NOPERM no permissions'],
    ['data of another program', 'WRONGTYPE Operation against a key'],
  ])('joins again after %s, and tells the buckets of both', async (_, message) => {
    const { group, count, lose } = await joined();
    let changes = 0;
    count.onChange(() => (changes += 1));
    await lose(message);
    expect([changes, group.state.isShared, warnings.length]).toEqual([1, false, 1]);
    answers.call = answering('taken');
    await clock.advance(499);
    expect(group.isJoined).toBe(false);
    await clock.advance(1);
    await until(() => group.isJoined);
    expect([changes, group.aloneFromMs]).toEqual([2, undefined]);
    expect(warnings.slice(1)).toEqual([
      'Redis answers again: the group office (2 programs) shares its limits',
    ]);
  });

  it('takes one tenth if it has never joined, and ends if Redis will never accept it', async () => {
    answers.call = () => new Error('WRONGTYPE Operation against a key');
    const { group, take } = await joined();
    expect(warnings.splice(0)).toEqual([
      expect.stringMatching(/another program; .* one tenth of each limit/),
    ]);
    await clock.advance(70_000);
    expect([group.size, group.state.members]).toEqual([10, 10]);
    expect([take(11), take(10), take(1)]).toEqual([Infinity, 0, Infinity]);
    answers.call = () => new Error('NOPERM no permissions');
    await expect(enter().group.opened()).rejects.toMatchObject({ code: 'redis-refused' });
    answers.info = () => 'redis_version:5.0.0\r\n';
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

  it('tells its bans until Redis knows them', async () => {
    const { group } = await joined();
    answers.call = (told) => (told.bans.length === 1 ? answering('')(told) : new Error('OOM no memory'));
    await Promise.all([group.ban('futures a', 900.5, 'why'), group.ban('spot b', 900, '')]);
    await group.ban('spot c', 900, '');
    answers.call = answering('', 0, [['futures a', 400, 'why']]);
    await clock.advance(500);
    await until(() => group.isJoined);
    await group.call();
    const known = ['spot b', 'spot c'];
    const told = [['futures a'], ['futures a', 'spot b'], known, known, []];
    expect(calls.slice(1).map(({ bans }) => bans.map(([place]) => place))).toEqual(told);
    expect(calls[1]?.bans).toEqual([['futures a', 901, 'why']]);
  });

  it('tells bans, and removes them from Redis, unless it cannot be used', async () => {
    const banned = (...bans: readonly Reply[]): void => {
      answers.call = answering('', 0, bans);
    };
    banned(['spot a', 5000, 'why'], ['spot c', 6000, '']);
    const { group, lose } = enter();
    const told: [string, number][] = [];
    group.onBan(({ place, untilMs: end }) => told.push([place, end - clock.monotonic()]));
    await group.opened();
    expect(told).toEqual([
      ['spot a', 5000],
      ['spot c', 6000],
    ]);
    banned(['spot a', 4500, 'why']);
    await group.call();
    expect(group.bans).toEqual([{ place: 'spot a', why: 'why', untilMs: clock.monotonic() + 4500 }]);
    expect(await group.clearBans((place) => place !== 'spot a')).toEqual([]);
    expect(await group.clearBans(() => true)).toEqual(['spot a']);
    expect([group.bans, removed]).toEqual([[], [['cryptodl:{office}', 'ban spot a']]]);
    banned(['spot a', 300, 'why']);
    await group.call();
    await lose('OOM no memory');
    await clock.advance(299);
    expect(group.bans).toHaveLength(1);
    await clock.advance(1);
    expect(group.bans).toEqual([]);
    await expect(group.clearBans(() => true)).rejects.toMatchObject({ code: 'redis-unreachable' });
  });
});
