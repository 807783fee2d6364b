/** Requests spread over lanes, one per proxy, with virtual time. */
import { describe, expect, it } from 'vitest';
import type { Fetch, FetchContext, FetchRequest } from '../../../src/model/fetch.js';
import { proxyLabels, proxyOf } from '../../../src/files/proxies.js';
import { Spread } from '../../../src/http/proxies/spread.js';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';

const REQUEST: FetchRequest = {
  url: 'http://host.test/a',
  bucket: 'archive',
  accept: 'any',
} as unknown as FetchRequest;
const ANSWER = {
  status: 200,
  headers: {},
  body: { kind: 'memory', bytes: Buffer.alloc(0) },
} as unknown as Awaited<ReturnType<Fetch>>;

interface World {
  nowMs: number;
  /** The error of a proxy; undefined: it works. */
  readonly faults: Map<string, ErrorCode>;
  readonly pauses: Map<string, number>;
  readonly asked: string[];
  readonly told: string[];
  readonly held: Map<string, Promise<void>>;
}

interface Opened {
  readonly world: World;
  readonly spread: Spread;
  readonly send: () => ReturnType<Fetch>;
  /** The code of the error, or `ok`. */
  readonly ask: () => Promise<string>;
}

function open(labels: readonly string[]): Opened {
  const world: World = {
    nowMs: 0,
    faults: new Map(),
    pauses: new Map(),
    asked: [],
    told: [],
    held: new Map(),
  };
  const spread = new Spread({
    clock: { monotonic: () => world.nowMs },
    direct: () => {
      world.asked.push('direct');
      return Promise.resolve(ANSWER);
    },
    isDirect: (url) => url.startsWith('http://direct.test/'),
    observer: {
      event: (_, fields) => {
        const { proxy, state, delayMs = '' } = fields as Readonly<Record<string, string | number>>;
        world.told.push(`${proxy} ${state} ${delayMs}`.trim());
      },
      warn: (message) => {
        const [, fault] = /^the proxy \w is taken out, .*: it has (\S+)$/.exec(message) ?? [];
        if (fault !== undefined) world.told.push(`${world.told.pop() ?? ''} new`);
      },
    },
    lanes: labels.map((label) => ({
      label,
      pauseMs: () => Promise.resolve(world.pauses.get(label) ?? 0),
      fetch: async () => {
        world.asked.push(label);
        await world.held.get(label);
        const code = world.faults.get(label);
        if (code !== undefined)
          throw new CryptodlError(code, `the proxy ${label} has ${code}`, { proxyFault: `has ${code}` });
        return ANSWER;
      },
    })),
  });
  const context = { signal: new AbortController().signal } as unknown as FetchContext;
  const send = (): ReturnType<Fetch> => spread.fetch(REQUEST, context);
  const ask = (): Promise<string> =>
    send().then(
      () => 'ok',
      (error: unknown) => (error as CryptodlError).code,
    );
  return { world, spread, send, ask };
}

/** Holds back the answers of `a`, until the result is called. */
function hold({ held }: World): () => void {
  let release: () => void = () => undefined;
  held.set('a', new Promise((resolve) => (release = resolve)));
  return () => {
    release();
  };
}

describe('a proxy that does not work', () => {
  it('is left out, and gets one request after 1 s, 2 s, 4 s, … and 5 min at most', async () => {
    const { world, ask } = open(['a', 'b']);
    world.faults.set('a', 'proxy-unreachable');
    const probes: number[] = [];
    for (; world.nowMs < 3_600_000; world.nowMs += 500) {
      world.asked.length = 0;
      expect(await ask()).toBe('ok');
      if (world.asked.includes('a')) probes.push(world.nowMs);
    }
    const delays = probes.slice(1).map((at, index) => at - (probes[index] ?? 0));
    expect(delays.slice(0, 10)).toEqual([
      1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000,
    ]);
    expect(Math.max(...delays)).toBe(300_000);
    expect(world.told.filter((text) => text.endsWith('new'))).toEqual(['a dead 1000 new']);
  });

  it('works again after one answer, and its delays begin anew', async () => {
    const { world, ask } = open(['a', 'b']);
    world.faults.set('a', 'proxy-refused');
    await ask();
    world.nowMs = 1000;
    await ask();
    world.faults.clear();
    world.nowMs = 3000;
    await ask();
    world.faults.set('a', 'connect-failed');
    for (let request = 0; request < 4; request += 1) await ask();
    expect(world.told).toEqual(['a dead 1000 new', 'a dead 2000', 'a alive', 'a dead 1000 new']);
  });

  it('gets one request at a time while it is tried again', async () => {
    const { world, ask } = open(['a', 'b']);
    world.faults.set('a', 'proxy-unreachable');
    await ask();
    world.nowMs = 1000;
    const release = hold(world);
    world.asked.length = 0;
    const all = Promise.all(Array.from({ length: 20 }, ask));
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.asked.filter((label) => label === 'a')).toHaveLength(1);
    release();
    expect(new Set(await all)).toEqual(new Set(['ok']));
  });

  it('stays out if its connection breaks when it is tried again', async () => {
    const { world, ask } = open(['a', 'b']);
    world.faults.set('a', 'proxy-unreachable');
    await ask();
    world.faults.set('a', 'connection-lost');
    world.nowMs = 1000;
    expect([await ask(), world.told]).toEqual(['ok', ['a dead 1000 new', 'a dead 2000']]);
  });

  it('is counted once for requests that were in flight together', async () => {
    const { world, ask } = open(['a']);
    world.faults.set('a', 'proxy-unreachable');
    expect(new Set(await Promise.all([ask(), ask(), ask()]))).toEqual(new Set(['proxy-unreachable']));
    expect(world.told).toEqual(['a dead 1000 new']);
  });

  it('stays out after a late answer to a request that it got before', async () => {
    const { world, ask } = open(['a', 'b']);
    world.pauses.set('b', 60_000);
    const release = hold(world);
    const answered = ask();
    await new Promise((resolve) => setImmediate(resolve));
    world.held.clear();
    world.faults.set('a', 'proxy-unreachable');
    await ask();
    world.faults.clear();
    release();
    expect([await answered, world.told]).toEqual(['ok', ['a dead 1000 new']]);
  });

  it('ends the run with the others, if none has ever worked and each failed twice; later it does not', async () => {
    const { world, ask } = open(['a', 'b']);
    for (const label of ['a', 'b']) world.faults.set(label, 'proxy-unreachable');
    expect(await ask()).toBe('proxy-unreachable');
    world.nowMs = 1000;
    expect(await ask()).toBe('unreachable');
    world.faults.clear();
    world.nowMs = 3000;
    expect(await ask()).toBe('ok');
    for (const label of ['a', 'b']) world.faults.set(label, 'proxy-unreachable');
    for (let request = 0; request < 10; request += 1, world.nowMs += 60_000)
      expect(await ask()).toBe('proxy-unreachable');
  });
});

it('the error of all proxies says when the next one gets a request', async () => {
  const { world, ask, send } = open(['a', 'b']);
  await ask();
  await ask();
  world.faults.set('a', 'proxy-unreachable').set('b', 'proxy-unreachable');
  await expect(send()).rejects.toMatchObject({ retryAfterMs: 1000 });
  world.nowMs = 1000;
  await expect(send()).rejects.toMatchObject({ retryAfterMs: 2000 });
  world.nowMs = 2500;
  await expect(send()).rejects.toMatchObject({ retryAfterMs: 500 });
});

it('a cancelled request says nothing about its proxy', async () => {
  const { world, spread } = open(['a', 'b']);
  world.faults.set('a', 'proxy-unreachable');
  const release = hold(world);
  const stop = new AbortController();
  const sent = spread.fetch(REQUEST, { signal: stop.signal } as unknown as FetchContext);
  await new Promise((resolve) => setImmediate(resolve));
  stop.abort();
  release();
  await expect(sent).rejects.toMatchObject({ code: 'proxy-unreachable' });
  expect([world.asked, world.told, spread.figures[0]?.failures]).toEqual([['a'], [], 0]);
});

describe('a host that refuses the address of a proxy', () => {
  it.each(['rate-limited', 'banned', 'address-blocked', 'breaker-open', 'wait-too-long'] as const)(
    'gets the request from another one at once: %s',
    async (code) => {
      const { world, ask, spread } = open(['a', 'b']);
      world.faults.set('a', code);
      expect([await ask(), world.asked, world.told]).toEqual(['ok', ['a', 'b'], []]);
      // A breaker sends no request.
      const number = code === 'breaker-open' ? 0 : 1;
      expect(spread.figures[0]).toMatchObject({ requests: number, refusals: number, isDead: false });
    },
  );

  it('gets no request from a paused proxy while another one is free', async () => {
    const { world, ask } = open(['a', 'b', 'c']);
    world.pauses.set('a', 60_000);
    world.pauses.set('b', 1000);
    for (let request = 0; request < 6; request += 1) await ask();
    expect(new Set(world.asked)).toEqual(new Set(['c']));
  });

  it('refuses the request if no other proxy is free', async () => {
    const { world, ask } = open(['a', 'b']);
    world.faults.set('a', 'banned');
    world.pauses.set('b', 60_000);
    expect([await ask(), world.asked]).toEqual(['banned', ['a']]);
  });
});

it('other errors stay those of the host', async () => {
  const { world, ask, spread } = open(['a', 'b']);
  world.faults.set('a', 'http-server-error');
  world.faults.set('b', 'http-server-error');
  expect([await ask(), world.asked, spread.figures.map(({ failures }) => failures)]).toEqual([
    'http-server-error',
    ['a'],
    [0, 0],
  ]);
});

it('requests are spread evenly, and those without a proxy go directly', async () => {
  const { world, ask, spread } = open(['a', 'b', 'c']);
  for (let request = 0; request < 30; request += 1) await ask();
  expect(spread.figures.map(({ requests }) => requests)).toEqual([10, 10, 10]);
  world.asked.length = 0;
  const context = { signal: new AbortController().signal } as unknown as FetchContext;
  await spread.fetch({ ...REQUEST, url: 'http://direct.test/a' }, context);
  expect(world.asked).toEqual(['direct']);
});

it('a proxy with requests in flight gets no further one while others have none', async () => {
  const { world, ask } = open(['a', 'b', 'c']);
  const release = hold(world);
  const held = ask();
  await new Promise((resolve) => setImmediate(resolve));
  for (let request = 0; request < 6; request += 1) await ask();
  expect(world.asked).toEqual(['a', 'b', 'c', 'b', 'c', 'b', 'c']);
  release();
  expect(await held).toBe('ok');
});

describe('hosts without a proxy', () => {
  const rules = { http: 'http://plain:1', https: 'http://secure:1', except: '' };

  it('are those whose scheme has no proxy', () => {
    expect(proxyOf('http://a.test/', rules)).toBe('http://plain:1');
    expect(proxyOf('https://a.test/', rules)).toBe('http://secure:1');
    expect(proxyOf('http://a.test/', { ...rules, http: '' })).toBeUndefined();
    expect(proxyOf('https://a.test/', { ...rules, https: '' })).toBeUndefined();
  });

  it.each<[string, string, boolean]>([
    ['a.test', 'http://a.test/', true],
    ['A.Test', 'http://a.test/', true],
    ['b.test,a.test', 'http://a.test/', true],
    ['b.test a.test', 'http://a.test/', true],
    ['a.test', 'http://sub.a.test/', true],
    ['.a.test', 'http://sub.a.test/', true],
    ['*.a.test', 'http://sub.a.test/', true],
    ['.a.test', 'http://a.test/', true],
    ['a.test', 'http://bada.test/', false],
    ['sub.a.test', 'http://a.test/', false],
    ['*', 'http://a.test/', true],
    ['a.test:80', 'http://a.test/', true],
    ['a.test:443', 'https://a.test/', true],
    ['a.test:443', 'http://a.test/', false],
    ['a.test:81', 'http://a.test:81/', true],
    ['a.test:81', 'http://a.test/', false],
    ['', 'http://a.test/', false],
    [',.', 'http://a.test./', false],
  ])('NO_PROXY=%j, %s: %s', (except, address, isDirect) => {
    expect(proxyOf(address, { ...rules, except }) === undefined).toBe(isDirect);
  });
});

it('labels have no credentials, and are distinct', () => {
  expect(
    proxyLabels(['http://u:p@a.test:1', 'http://v:q@a.test:1', 'http://b.test', 'http://[::1]:3128']),
  ).toEqual(['a.test:1', 'a.test:1#2', 'b.test', '[::1]:3128']);
});
