import type { LookupAddress, LookupOptions } from 'node:dns';
import { describe, expect, it } from 'vitest';
import { DnsCache } from '../../../src/http/transport/dns-cache.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const HOST = 'archive.test';
const FIRST: LookupAddress[] = [
  { address: '192.0.2.1', family: 4 },
  { address: '2001:db8::1', family: 6 },
];
const SECOND: LookupAddress[] = [{ address: '192.0.2.2', family: 4 }];
const FAILURE = Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' });

type Tell = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** A cache over a resolver that answers when the test says so. */
function cached() {
  const clock = new VirtualClock();
  const questions: { hostname: string; options: LookupOptions; tell: Tell }[] = [];
  const resolver = ((hostname: string, options: LookupOptions, tell: Tell) => {
    questions.push({ hostname, options, tell });
  }) as never;
  const cache = new DnsCache(clock, resolver);
  const ask = (hostname = HOST, options: LookupOptions = { all: true }): Promise<unknown> =>
    new Promise((resolve, reject) => {
      cache.lookup(hostname, options, (error, address, family) => {
        if (error === null) resolve(family === undefined ? address : [address, family]);
        else reject(error);
      });
    });
  const answerAll = (answer: LookupAddress[] | Error): void => {
    for (const { tell } of questions.splice(0)) {
      if (answer instanceof Error) tell(answer, []);
      else tell(null, answer);
    }
  };
  return { clock, cache, questions, ask, answerAll };
}

describe('names', () => {
  it('are asked for once, however many connections want to know at once, and not again', async () => {
    const { questions, ask, answerAll } = cached();
    const all = Array.from({ length: 50 }, () => ask());
    expect(questions).toHaveLength(1);
    expect(questions[0]).toMatchObject({ hostname: HOST, options: { all: true } });
    answerAll(FIRST);
    for (const told of await Promise.all(all)) expect(told).toEqual(FIRST);
    expect(await ask()).toEqual(FIRST);
    expect(questions).toEqual([]);
  });

  it.each([
    [FIRST, ['192.0.2.1', 4]],
    [[], ''],
  ])('give one address to a caller that asks for one: of %j %j', async (known, told) => {
    const { ask, answerAll } = cached();
    const one = ask(HOST, {});
    answerAll(known);
    expect(await one).toEqual(told);
  });

  it('are looked up again after 300 s, and not before', async () => {
    const { clock, questions, ask, answerAll } = cached();
    const first = ask();
    answerAll(FIRST);
    await first;
    await clock.advance(299_999);
    await ask();
    expect(questions).toEqual([]);
    await clock.advance(1);
    const second = ask();
    expect(questions).toHaveLength(1);
    answerAll(SECOND);
    expect(await second).toEqual(SECOND);
  });

  it('are looked up again after a failed connection, and only the name of that connection', async () => {
    const { cache, questions, ask, answerAll } = cached();
    const known = [ask(), ask('other.test'), ask('x.archive.test')];
    answerAll(FIRST);
    await Promise.all(known);
    cache.remove(HOST);
    await Promise.all([ask('other.test'), ask('x.archive.test')]);
    expect(questions).toEqual([]);
    const again = ask();
    answerAll(SECOND);
    expect(await again).toEqual(SECOND);
    expect(await ask()).toEqual(SECOND);
  });

  it('are told as they were while the resolver is down, which is asked again each time', async () => {
    const { clock, questions, ask, answerAll } = cached();
    const first = ask();
    answerAll(FIRST);
    await first;
    await clock.advance(300_000);
    for (let time = 0; time < 3; time += 1) {
      const stale = ask();
      expect(questions).toHaveLength(1);
      answerAll(FAILURE);
      expect(await stale).toEqual(FIRST);
    }
    const fresh = ask();
    answerAll(SECOND);
    expect(await fresh).toEqual(SECOND);
  });

  it('that were never known fail with the error of the resolver, and are looked up again', async () => {
    const { questions, ask, answerAll } = cached();
    const all = [ask(), ask()];
    const ended = Promise.allSettled(all);
    answerAll(FAILURE);
    expect(await ended).toMatchObject([{ reason: FAILURE }, { reason: FAILURE }]);
    const again = ask();
    expect(questions).toHaveLength(1);
    answerAll(FIRST);
    expect(await again).toEqual(FIRST);
  });

  it('are counted: hits, misses, failures of the resolver, and its time', async () => {
    const { clock, cache, ask, answerAll } = cached();
    const none = { lookups: 0, hits: 0, misses: 0, failures: 0, ms: 0 };
    expect(cache.figures).toEqual(none);
    const known = [ask(), ask()];
    await clock.advance(1000);
    const other = ask('other.test');
    await clock.advance(2000);
    expect(cache.figures).toEqual({ lookups: 3, hits: 1, misses: 2, failures: 0, ms: 3000 });
    answerAll(FIRST);
    await Promise.all([...known, other]);
    await clock.advance(300_000);
    // The old address is given, and the failure counted.
    const stale = ask();
    await clock.advance(500);
    answerAll(FAILURE);
    await stale;
    expect(cache.figures).toEqual({ lookups: 4, hits: 1, misses: 3, failures: 1, ms: 3500 });
  });

  it('that fail after a failed connection fail with the error of the resolver', async () => {
    const { cache, ask, answerAll } = cached();
    const early = ask();
    cache.remove(HOST);
    answerAll(FAILURE);
    await expect(early).rejects.toBe(FAILURE);
  });

  it('looked up before a failed connection do not replace those looked up after it', async () => {
    const { cache, questions, ask } = cached();
    const early = ask();
    cache.remove(HOST);
    const late = ask();
    const [first, second] = questions.splice(0);
    second?.tell(null, SECOND);
    expect(await late).toEqual(SECOND);
    first?.tell(FAILURE, []);
    expect(await early).toEqual(SECOND);
    const last = ask();
    expect(questions).toEqual([]);
    expect(await last).toEqual(SECOND);
  });
});
