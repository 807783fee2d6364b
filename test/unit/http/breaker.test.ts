import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError, isNoAnswer } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import type { Fetch, FetchResponse } from '../../../src/model/fetch.js';
import { breakerLayer } from '../../../src/http/retry/breaker.js';
import type { BreakerOptions } from '../../../src/http/retry/host-breaker.js';
import { answer, context, refusal, REQUEST } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const OPEN_MS = 60_000;
const BLOCKED_MS = 90_000;
const SETTINGS = {
  breakerOpenMs: OPEN_MS,
  blockedWaitMs: BLOCKED_MS,
  breakerFailures: 5,
  breakerSuccesses: 3,
};
const OTHER_HOST = { ...REQUEST, url: 'http://listing.test/?prefix=data' };

type Answer = ErrorCode | 200 | 404;

/** A breaker in front of a host that answers `host.says`, and counts what reaches it. */
function guarded(changes: Partial<Omit<BreakerOptions, 'clock'>> = {}) {
  const clock = new VirtualClock();
  const host: { says: Answer; calls: number } = { says: 200, calls: 0 };
  const next: Fetch = () => {
    host.calls += 1;
    return typeof host.says === 'number'
      ? Promise.resolve(answer('', host.says))
      : Promise.reject(new CryptodlError(host.says, 'said by the test', { hint: 'hint of the test' }));
  };
  const layer = breakerLayer({ clock, ...SETTINGS, ...changes })(next);
  const ask = async (what: Answer, times = 1, request = REQUEST): Promise<void> => {
    host.says = what;
    for (let time = 0; time < times; time += 1) await layer(request, context()).catch(() => undefined);
  };
  /** What a request gets now: the host's own word, or the breaker's. */
  const outcome = async (request = REQUEST): Promise<Answer> => {
    const error: unknown = await layer(request, context()).catch((reason: unknown) => reason);
    return error instanceof CryptodlError ? error.code : 200;
  };
  return { clock, host, ask, outcome, fetch: layer };
}

/** Requests that end when the test says so. */
function held(changes: Partial<BreakerOptions> = {}) {
  const clock = new VirtualClock();
  const flying: { resolve: (response: FetchResponse) => void; reject: (error: Error) => void }[] = [];
  const next: Fetch = () => new Promise((resolve, reject) => flying.push({ resolve, reject }));
  const layer = breakerLayer({ clock, ...SETTINGS, ...changes })(next);
  const start = (): void => void layer(REQUEST, context()).catch(() => undefined);
  const fail = async (code: ErrorCode): Promise<void> => {
    flying.shift()?.reject(new CryptodlError(code, 'said by the test'));
    await clock.advance(0);
  };
  const trip = async (): Promise<void> => {
    for (let failure = 0; failure < 5; failure += 1) {
      start();
      await fail('http-server-error');
    }
  };
  return { clock, flying, start, fail, trip, fetch: layer };
}

describe('breaker', () => {
  it('tells those that it refused when it closes', async () => {
    const { clock, ask, fetch } = guarded();
    await ask('http-server-error', 5);
    const { over } = await refusal(fetch(REQUEST, context()));
    await clock.advance(OPEN_MS);
    await ask(200, 2);
    expect(over?.aborted).toBe(false);
    await ask(200);
    expect(over?.aborted).toBe(true);
  });

  it('lets refused requests wait on while it is half-open, and when a probe fails', async () => {
    const { clock, flying, start, fail, trip, fetch } = held();
    await trip();
    const { over } = await refusal(fetch(REQUEST, context()));
    await clock.advance(OPEN_MS);
    start();
    expect([flying.length, over?.aborted]).toEqual([1, false]);
    await fail('http-server-error');
    expect(over?.aborted).toBe(false);
  });

  it('tells how long it stays open', async () => {
    const { clock, ask, fetch } = guarded();
    await ask('connection-lost', 5);
    await clock.advance(20_000);
    expect((await refusal(fetch(REQUEST, context()))).retryAfterMs).toBe(40_000);
  });

  it('counts from zero after every answer, and a 404 is an answer', async () => {
    const { ask, outcome } = guarded();
    await ask('http-server-error', 4);
    await ask(404);
    await ask('http-server-error', 4);
    await ask(200);
    await ask('http-server-error', 4);
    expect(await outcome()).toBe('http-server-error');
  });

  it.each<Answer>([404, 'checksum-mismatch', 'interrupted', 'rate-limited', 'http-refused', 'bug'])(
    'does not count %s as a failure of the host',
    async (what) => {
      const { ask, outcome } = guarded();
      await ask(200);
      await ask(what, 20);
      expect(String(await outcome())).not.toMatch(/breaker-open|unreachable/);
    },
  );

  it('opens at twenty results of which exactly half are failures', async () => {
    const { ask, outcome } = guarded();
    for (let pair = 0; pair < 10; pair += 1) {
      await ask(200);
      await ask('http-server-error');
    }
    expect(await outcome()).toBe('breaker-open');
  });

  it.each<[number, Answer]>([
    [9999, 'breaker-open'],
    [10_000, 200],
  ])('counts results of the last ten seconds only: after %i ms it says %s', async (agoMs, said) => {
    const { clock, host, ask, outcome } = guarded();
    for (let pair = 0; pair < 9; pair += 1) {
      await ask(200);
      await ask('http-server-error');
    }
    await clock.advance(agoMs);
    await ask(200);
    await ask('http-server-error');
    host.says = 200;
    expect(await outcome()).toBe(said);
  });

  it('does not count from zero after refused content or an abort', async () => {
    const { ask, outcome } = guarded();
    await ask('http-server-error', 4);
    await ask('checksum-mismatch');
    await ask('interrupted');
    await ask('http-server-error');
    expect(await outcome()).toBe('breaker-open');
  });

  it('opens again at a failure after two successes, and then takes three successes', async () => {
    const { clock, ask, outcome } = guarded();
    await ask('http-server-error', 5);
    await clock.advance(OPEN_MS);
    await ask(200, 2);
    await ask('http-server-error');
    expect(await outcome()).toBe('breaker-open');
    await clock.advance(OPEN_MS);
    await ask(200, 2);
    await ask('http-server-error');
    expect(await outcome()).toBe('breaker-open');
  });

  it.each([1, 2, 7])('closes after %i successes when told so', async (breakerSuccesses) => {
    const states: string[] = [];
    const { clock, ask } = guarded({ breakerSuccesses, onChange: (_, state) => states.push(state) });
    await ask('http-server-error', 5);
    await clock.advance(OPEN_MS);
    await ask(200, breakerSuccesses - 1);
    await ask('checksum-mismatch', 10);
    expect(states).toEqual(['open', 'half-open']);
    await ask(200);
    expect(states).toEqual(['open', 'half-open', 'closed']);
  });

  it('has the time that is left before an open breaker lets a request through', async () => {
    let left = (): number => Number.NaN;
    const { clock, ask } = guarded({ onChange: (_host, _state, leftMs) => (left = leftMs) });
    await ask('http-server-error', 5);
    expect(left()).toBe(OPEN_MS);
    await clock.advance(OPEN_MS - 1);
    expect(left()).toBe(1);
    await clock.advance(2);
    expect(left()).toBe(0);
  });

  it.each([1, 2, 5, 12])(
    'opens after %i failures in a row when told so, and then asks the host nothing',
    async (breakerFailures) => {
      const { host, ask, outcome } = guarded({ breakerFailures });
      await ask(200);
      await ask('http-server-error', breakerFailures - 1);
      host.says = 200;
      expect(await outcome()).toBe(200);
      await ask('http-server-error', breakerFailures);
      const { calls } = host;
      expect(await outcome()).toBe('breaker-open');
      expect(host.calls).toBe(calls);
    },
  );

  it('is not kept open longer by requests that were under way when it opened', async () => {
    const { clock, flying, start, fail } = held();
    for (let request = 0; request < 10; request += 1) start();
    for (let failure = 0; failure < 5; failure += 1) await fail('connection-lost');
    await clock.advance(OPEN_MS / 2);
    while (flying.length > 0) await fail('connection-lost');
    await clock.advance(OPEN_MS / 2);
    start();
    expect(flying).toHaveLength(1);
  });

  it('closes when three requests that were under way when it opened are served, with no failure between', async () => {
    const { clock, flying, start, fail, trip } = held();
    for (let request = 0; request < 6; request += 1) start();
    const early = flying.splice(0);
    await trip();
    const serve = async (): Promise<void> => {
      early.shift()?.resolve(answer('', 200));
      await clock.advance(0);
    };
    await serve();
    await serve();
    flying.push(...early.splice(0, 1));
    await fail('connection-lost');
    await serve();
    await serve();
    start();
    expect(flying).toHaveLength(0);
    await serve();
    start();
    expect(flying).toHaveLength(1);
  });

  it('stays open when a probe is served after another one failed', async () => {
    const { clock, flying, start, fail, trip } = held({ breakerSuccesses: 1 });
    await trip();
    await clock.advance(OPEN_MS);
    start();
    start();
    await fail('connection-lost');
    flying.shift()?.resolve(answer());
    await clock.advance(0);
    start();
    expect(flying).toHaveLength(0);
  });

  it('counts a request that was under way when it opened together with the probes', async () => {
    const { clock, flying, start, trip } = held();
    start();
    const early = flying.splice(0);
    await trip();
    early[0]?.resolve(answer('', 200));
    await clock.advance(OPEN_MS);
    start();
    start();
    for (const probe of flying.splice(0)) probe.resolve(answer('', 200));
    await clock.advance(0);
    for (let request = 0; request < 5; request += 1) start();
    expect(flying).toHaveLength(5);
  });

  it('is not opened again by a late probe when another one has closed it', async () => {
    const { clock, flying, start, fail, trip } = held({ breakerSuccesses: 1 });
    await trip();
    await clock.advance(OPEN_MS);
    start();
    start();
    flying.shift()?.resolve(answer());
    await clock.advance(0);
    await fail('http-server-error');
    start();
    expect(flying).toHaveLength(1);
  });

  it('ends the run as unreachable while no host ever answered: it is our own network', async () => {
    const { ask, outcome, fetch } = guarded();
    await ask('connect-failed', 2);
    await ask('dns-failed', 1, OTHER_HOST);
    await ask('connect-timeout', 3);
    expect(await outcome()).toBe('unreachable');
    const error = await refusal(fetch(REQUEST, context()));
    expect(error.fatal).toBe(true);
    expect(error.message).toContain('archive.test');
  });

  it.each<[string, Partial<BreakerOptions>]>([
    [
      'check the network, and the address of this host: --archive-url, --listing-url, --fallback-url, --fapi-url, --dapi-url or --spot-url',
      {},
    ],
    ['look at the bucket', { hint: 'look at the bucket' }],
  ])('gives the next step when it is unreachable: %s', async (hint, changes) => {
    const { ask, fetch } = guarded(changes);
    await ask('connect-failed', 5);
    const error = await refusal(fetch(REQUEST, context()));
    expect(error).toMatchObject({ code: 'unreachable', hint, cause: { code: 'breaker-open' } });
  });

  it('is unreachable with the message and the hint of its proxy when the proxy cannot be reached', async () => {
    const { ask, fetch } = guarded();
    await ask('proxy-unreachable', 5);
    const error = await refusal(fetch(REQUEST, context()));
    expect([error.code, error.message, error.hint]).toEqual([
      'unreachable',
      'said by the test',
      'hint of the test',
    ]);
    expect(error.cause).toMatchObject({ code: 'breaker-open' });
  });

  it.each<Answer>([404, 'connection-lost', 'http-forbidden', 'tls-failed', 'not-a-zip'])(
    'only waits when some host has answered before, were it with %s',
    async (what) => {
      const { ask, outcome } = guarded();
      await ask(what, 1, OTHER_HOST);
      await ask('connect-failed', 5);
      expect(await outcome()).toBe('breaker-open');
    },
  );
});

describe('the states of a host', () => {
  type State = 'closed' | 'open' | 'half-open' | 'stopped';
  /** Besides, a host that is open closes when a request from before is served, unless it refuses this address. */
  const LEGAL: Readonly<Record<State, readonly State[]>> = {
    closed: ['open'],
    open: ['half-open'],
    'half-open': ['closed', 'open', 'stopped'],
    stopped: [],
  };

  type Step =
    | { readonly what: 'ask' | 'time'; readonly amount: number }
    | { readonly what: 'end'; readonly which: number; readonly how: Answer };

  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ what: fc.constant('ask' as const), amount: fc.nat(3) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        what: fc.constant('time' as const),
        amount: fc.constantFrom(0, 1000, OPEN_MS - 1, OPEN_MS, BLOCKED_MS),
      }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        what: fc.constant('end' as const),
        which: fc.nat(),
        how: fc.constantFrom<Answer>(
          200,
          404,
          'http-server-error',
          'http-server-error',
          'connection-lost',
          'address-blocked',
          'interrupted',
          'checksum-mismatch',
        ),
      }),
    },
  );

  /** Into the state in which it may be probed. */
  const TRIP: Step[] = [
    { what: 'ask', amount: 5 },
    ...Array.from({ length: 6 }, (): Step => ({ what: 'end', which: 0, how: 'http-server-error' })),
    { what: 'time', amount: OPEN_MS },
  ];

  it('change only as allowed, with three probes at most, in every order of ends', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
        const clock = new VirtualClock();
        const states: State[] = ['closed'];
        // An assertion within onChange would be swallowed like any other rejection.
        const illegal: [State, State][] = [];
        const flying: { state: State; end: (how: Answer) => void }[] = [];
        const now = (): State => states.at(-1) ?? 'closed';
        let openedAt = 0;
        let leastMs = 0;
        let isBlocked = false;
        let isLateSuccess = false;
        const next: Fetch = () =>
          new Promise((resolve, reject) => {
            flying.push({
              state: now(),
              end: (how) => {
                if (typeof how === 'number') resolve(answer('', how));
                else reject(new CryptodlError(how, 'said by the test'));
              },
            });
          });
        const options = { clock, ...SETTINGS };
        const fetch = breakerLayer({
          ...options,
          onChange: (_, state) => {
            const isServing = now() === 'open' && state === 'closed' && isLateSuccess && !isBlocked;
            if (!LEGAL[now()].includes(state) && !isServing) illegal.push([now(), state]);
            states.push(state);
            if (state === 'open') openedAt = clock.monotonic();
          },
        })(next);
        for (const happening of [...TRIP, ...steps]) {
          if (happening.what === 'time') await clock.advance(happening.amount);
          if (happening.what === 'ask') {
            for (let time = 0; time <= happening.amount; time += 1) {
              const before = { state: now(), flying: flying.length };
              const refused = fetch(REQUEST, context()).then(
                () => undefined,
                (error: unknown) => error,
              );
              const isThrough = flying.length > before.flying;
              if (before.state === 'stopped') {
                expect(isThrough).toBe(false);
                expect(await refused).toMatchObject({ code: 'wait-too-long' });
              }
              if (before.state === 'open' && isThrough)
                expect(clock.monotonic() - openedAt).toBeGreaterThanOrEqual(leastMs);
            }
          }
          if (happening.what === 'end' && flying.length > 0) {
            const [ended] = flying.splice(happening.which % flying.length, 1);
            const changes = states.length;
            isLateSuccess = ended?.state === 'closed' && happening.how === 200;
            ended?.end(happening.how);
            await clock.advance(0);
            const isProbe = now() === 'half-open' && ended?.state !== 'closed' && happening.how === 200;
            isBlocked = now() !== 'closed' && !isProbe && (isBlocked || happening.how === 'address-blocked');
            if (states.length > changes && now() === 'open')
              leastMs = happening.how === 'address-blocked' ? BLOCKED_MS : OPEN_MS;
          }
          expect(flying.filter(({ state }) => state !== 'closed').length).toBeLessThanOrEqual(3);
          expect(illegal).toEqual([]);
        }
        for (const { end } of flying.splice(0)) end('interrupted');
        await clock.advance(BLOCKED_MS);
        // Probes that came to no end take no place of others.
        for (let probe = 0; probe < 5; probe += 1) void fetch(REQUEST, context()).catch(() => undefined);
        if (now() === 'half-open') expect(flying).toHaveLength(3);
      }),
      { numRuns: 300 },
    );
  });
});

describe('a host that refuses this address', () => {
  it('is left alone for the least wait at the first refusal', async () => {
    const { clock, host, ask, outcome, fetch } = guarded();
    await ask(200);
    await ask('address-blocked');
    const error = await refusal(fetch(REQUEST, context()));
    expect([error.code, error.retryAfterMs]).toEqual(['breaker-open', BLOCKED_MS]);
    expect(error.message).toContain('refuses this address');
    await clock.advance(BLOCKED_MS - 1);
    expect(await outcome()).toBe('breaker-open');
    expect(host.calls).toBe(2);
  });

  it.each<[string, ErrorCode, boolean]>([
    ['has answered when it refuses this address', 'address-blocked', false],
    ['has not answered when its connections are lost', 'connection-lost', true],
  ])('%s', async (_, code, isSilent) => {
    const { ask, fetch } = guarded();
    await ask(code, 5);
    expect(isNoAnswer(await refusal(fetch(REQUEST, context())))).toBe(isSilent);
  });

  it('is a host like any other after it was forgiven: failures and a first refusal only open the breaker', async () => {
    const { clock, ask, outcome, fetch } = guarded();
    await ask('address-blocked');
    await clock.advance(BLOCKED_MS);
    await ask(200);
    await ask('http-server-error', 5);
    expect((await refusal(fetch(REQUEST, context()))).message).toContain('keeps failing');
    await clock.advance(OPEN_MS);
    // A later refusal is the first one again.
    await ask('address-blocked');
    expect(await outcome()).toBe('breaker-open');
  });

  it('is not asked any more in this run when it refuses again', async () => {
    const { clock, host, ask, outcome, fetch } = guarded();
    await ask(200);
    await ask('address-blocked');
    await clock.advance(BLOCKED_MS);
    await ask('address-blocked');
    const { calls } = host;
    host.says = 200;
    await clock.advance(100 * BLOCKED_MS);
    const error = await refusal(fetch(REQUEST, context()));
    expect(error.code).toBe('wait-too-long');
    expect(error.hint).toContain('another network');
    expect(host.calls).toBe(calls);
    expect(await outcome(OTHER_HOST)).toBe(200);
  });

  it('wakes the waiting requests when it refuses again', async () => {
    const { clock, ask, fetch } = guarded();
    await ask('address-blocked');
    const { over } = await refusal(fetch(REQUEST, context()));
    await clock.advance(BLOCKED_MS);
    expect(over?.aborted).toBe(false);
    await ask('address-blocked');
    expect(over?.aborted).toBe(true);
  });

  it.each<[ErrorCode, ErrorCode]>([
    ['address-blocked', 'http-server-error'],
    ['address-blocked', 'address-blocked'],
    ['http-server-error', 'address-blocked'],
  ])(
    'is not asked any more either when one probe ends with %s and another one later with %s',
    async (first, late) => {
      const { clock, start, fail, fetch } = held();
      start();
      await fail('address-blocked');
      await clock.advance(BLOCKED_MS);
      start();
      start();
      await fail(first);
      await fail(late);
      await clock.advance(100 * BLOCKED_MS);
      expect((await refusal(fetch(REQUEST, context()))).code).toBe('wait-too-long');
    },
  );

  it('is asked once more when the refusal of a probe comes after another probe was served', async () => {
    const { clock, flying, start, trip } = held();
    start();
    flying.shift()?.reject(new CryptodlError('address-blocked', 'the first refusal'));
    await clock.advance(BLOCKED_MS);
    start();
    start();
    const [served, late] = flying.splice(0);
    served?.resolve(answer());
    await clock.advance(0);
    await trip();
    late?.reject(new CryptodlError('address-blocked', 'from before it was served'));
    await clock.advance(BLOCKED_MS);
    start();
    expect(flying).toHaveLength(1);
  });

  it('is asked once more also when several probes were refused at the same time', async () => {
    const { clock, flying, start, fail, trip } = held();
    await trip();
    await clock.advance(OPEN_MS);
    for (let probe = 0; probe < 3; probe += 1) start();
    await fail('address-blocked');
    await fail('address-blocked');
    await fail('address-blocked');
    await clock.advance(BLOCKED_MS);
    start();
    expect(flying).toHaveLength(1);
  });

  it('is left alone also when requests are served that were under way when it was refused', async () => {
    const { clock, flying, start, fail } = held();
    for (let request = 0; request < 4; request += 1) start();
    await fail('address-blocked');
    for (const early of flying.splice(0)) early.resolve(answer());
    await clock.advance(BLOCKED_MS - 1);
    start();
    expect(flying).toHaveLength(0);
  });

  it('counts requests that were under way when it was refused as the same refusal', async () => {
    const { clock, flying, start, fail } = held();
    for (let request = 0; request < 10; request += 1) start();
    while (flying.length > 0) await fail('address-blocked');
    await clock.advance(BLOCKED_MS);
    start();
    expect(flying).toHaveLength(1);
  });
});

describe('a host whose name does not exist', () => {
  it('ends the run as unreachable although another host answered: waiting does not make it exist', async () => {
    const { ask, outcome, fetch } = guarded();
    await ask(200, 1, OTHER_HOST);
    await ask('host-unknown', 5);
    expect(await outcome()).toBe('unreachable');
    const error = await refusal(fetch(REQUEST, context()));
    expect(error.message).toBe('there is no host archive.test');
    expect(error.fatal).toBe(true);
    expect(await outcome(OTHER_HOST)).not.toBe('unreachable');
  });

  it.each<[string, ErrorCode, typeof REQUEST]>([
    ['it has answered before: then it is the resolver that forgot it', 'host-unknown', REQUEST],
    ['only the resolver failed', 'dns-failed', OTHER_HOST],
  ])('is waited for when %s', async (_, code, answered) => {
    const { ask, outcome } = guarded();
    await ask(200, 1, answered);
    await ask(code, 5);
    expect(await outcome()).toBe('breaker-open');
  });

  it('is known from the day on which it answers', async () => {
    const { clock, ask, outcome } = guarded();
    await ask(200, 1, OTHER_HOST);
    await ask('host-unknown', 4);
    await ask(200);
    await ask('host-unknown', 5);
    await clock.advance(1);
    expect(await outcome()).toBe('breaker-open');
  });

  it('a wait that never reached a host says nothing about it', async () => {
    const { ask, outcome } = guarded();
    await ask('wait-too-long');
    await ask('connect-failed', 5);
    expect(await outcome()).toBe('unreachable');
  });
});
