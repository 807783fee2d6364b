import { describe, expect, it } from 'vitest';
import type { Fetch, FetchContext, FetchRequest, PartialBody } from '../../../src/model/fetch.js';
import { breakerLayer } from '../../../src/http/retry/breaker.js';
import { budgetLayer } from '../../../src/http/retry/budget.js';
import { Failover } from '../../../src/http/throttle/failover.js';
import { retryLayer } from '../../../src/http/retry/retry.js';
import type { RetryOptions } from '../../../src/http/retry/retry.js';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import type { RetryEvent } from '../../../src/model/observer.js';
import { REQUEST, answer, context, refusal } from '../../helpers/requests.js';
import { throttleOf } from '../../helpers/throttles.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const DAY_MS = 86_400_000;
const BREAKER = { breakerFailures: 5, breakerSuccesses: 3 };

interface Refusal {
  readonly code: ErrorCode;
  readonly retryAfterMs?: number;
  readonly partial?: PartialBody;
}
type Script = (ErrorCode | Refusal | 200 | 404)[];

/** A retry layer in front of a host that follows a script, its last line for ever. */
function retried(script: Script, changes: Partial<Omit<RetryOptions, 'clock'>> = {}) {
  const clock = new VirtualClock();
  const asked: { request: FetchRequest; context: FetchContext; at: number }[] = [];
  const events: RetryEvent[] = [];
  const started = clock.monotonic();
  const host: Fetch = (request, inner) => {
    const line = script[Math.min(asked.length, script.length - 1)];
    asked.push({ request, context: inner, at: clock.monotonic() - started });
    if (line === 200 || line === 404) return Promise.resolve(answer('', line));
    const { code, ...details } = typeof line === 'object' ? line : { code: line ?? 'bug' };
    return Promise.reject(new CryptodlError(code, 'said by the test', details));
  };
  const options: RetryOptions = {
    clock,
    retries: 3,
    retryStrategy: 'full',
    retryDelayMs: 100,
    retryFactor: 2,
    retryMaxDelayMs: 1000,
    maxWaitMs: 60_000,
    onRetry: (event) => events.push(event),
    ...changes,
  };
  return { clock, asked, events, host, options, fetch: retryLayer(options)(host) };
}

/** Runs one request to its end, however long it takes. */
async function run(script: Script, changes: Partial<Omit<RetryOptions, 'clock'>> = {}) {
  const made = retried(script, changes);
  const response = made.fetch(REQUEST, context());
  response.catch(() => undefined);
  await made.clock.advance(DAY_MS);
  return { ...made, response };
}

describe('retry', () => {
  it('makes no further attempt after an inner request that has given up', async () => {
    const { clock, asked, fetch, options } = retried(['http-server-error']);
    const ended = refusal(retryLayer(options)(fetch)(REQUEST, context()));
    await clock.advance(DAY_MS);
    expect(await ended).toMatchObject({ code: 'http-server-error', isGivenUp: true });
    expect(asked).toHaveLength(1 + options.retries);
  });

  it.each([
    [4, new CryptodlError('zip-bomb', 'an error of four attempts')],
    [1, new CryptodlError('wait-too-long', 'no attempt was sent')],
    [undefined, new Error('a bug')],
  ])('keeps the %s attempts of an inner error', async (attempts, error) => {
    if (attempts !== undefined) Object.assign(error, { attempts });
    const { clock, options } = retried([]);
    let calls = 0;
    const lost = new CryptodlError('connection-lost', 'lost');
    const fetch = retryLayer(options)(() => Promise.reject((calls += 1) === 1 ? lost : error));
    const ended = fetch(REQUEST, context()).catch((reason: unknown) => reason);
    await clock.advance(DAY_MS);
    expect(await ended).toBe(error);
    expect('attempts' in error ? error.attempts : undefined).toBe(attempts);
  });

  it('asks as often as there are retries and one, at the announced times, and the error says how often', async () => {
    const { response, asked, events } = await run(['connection-lost']);
    const error = await refusal(response);
    expect(error.code).toBe('connection-lost');
    expect(error.attempts).toBe(4);
    expect(asked.map(({ at }) => at)).toEqual([0, 50, 150, 350]);
    expect(events.map(({ retry: number }) => number)).toEqual([1, 2, 3]);
    expect(new Set(asked.map(({ context: { traceId } }) => traceId)).size).toBe(1);
  });

  it.each<ErrorCode>([
    'http-refused',
    'tls-failed',
    'redirect-refused',
    'zip-bomb',
    'wait-too-long',
    'interrupted',
    'unreachable',
    'bug',
  ])('does not ask again after %s', async (code) => {
    const { response, asked } = await run([code, 200]);
    expect((await refusal(response)).code).toBe(code);
    expect(asked).toHaveLength(1);
  });

  it('does not retry after an unknown error, which is a bug', async () => {
    const { options } = retried([]);
    let calls = 0;
    const broken: Fetch = () => {
      calls += 1;
      return Promise.reject(new TypeError('x is not a function'));
    };
    await expect(retryLayer(options)(broken)(REQUEST, context())).rejects.toThrow(TypeError);
    expect(calls).toBe(1);
  });

  it.each<ErrorCode>(['rate-limited', 'banned', 'address-blocked', 'breaker-open'])(
    'spends no retry on %s',
    async (code) => {
      const { response, events } = await run([...Array<ErrorCode>(20).fill(code), 'connection-lost', 200], {
        retries: 1,
      });
      expect((await response).status).toBe(200);
      expect(events.filter(({ usesAttempt }) => usesAttempt)).toHaveLength(1);
    },
  );

  it('waits out an open breaker as long as it says', async () => {
    const { asked } = await run([{ code: 'breaker-open', retryAfterMs: 20_000 }, 200]);
    expect(asked[1]?.at).toBe(20_050);
  });

  it.each<ErrorCode>(['rate-limited', 'banned', 'address-blocked', 'breaker-open'])(
    'gives up after --max-wait when it gets nothing but %s',
    async (code) => {
      const { response, asked } = await run([{ code, retryAfterMs: 7000 }]);
      const error = await refusal(response);
      expect(error.code).toBe('wait-too-long');
      expect(error.message).toContain('60s');
      expect(error.hint).toContain('--max-wait');
      expect(error.attempts).toBe(1);
      const last = asked.at(-1)?.at ?? Number.NaN;
      expect(last).toBeGreaterThan(50_000);
      expect(last).toBeLessThanOrEqual(60_000);
    },
  );

  it('lets the bucket pace the requests after a 429, and retries each when the pause is over', async () => {
    const { clock, host, asked, options } = retried([
      { code: 'rate-limited', retryAfterMs: 5000 },
      { code: 'rate-limited', retryAfterMs: 5000 },
      200,
    ]);
    const buckets = { archive: { permitsPerSecond: 1000, burst: 1000 } };
    const paced = retryLayer(options)(throttleOf(clock, buckets).layer(host));
    const response = paced(REQUEST, context());
    await clock.advance(DAY_MS);
    expect((await response).status).toBe(200);
    expect(asked.map(({ at }) => at)).toEqual([0, 5000, 10_000]);
  });

  it('goes on at once when the breaker closes sooner, and a cancelled wait leaves nothing behind', async () => {
    const { clock, host, asked, options } = retried([200]);
    const closing = new AbortController();
    const over = closing.signal;
    let isOpen = true;
    const guarded: Fetch = (request, inner) =>
      isOpen
        ? Promise.reject(new CryptodlError('breaker-open', 'open', { retryAfterMs: 30_000, over }))
        : host(request, inner);
    const response = retryLayer(options)(guarded)(REQUEST, context());
    await clock.advance(1000);
    expect(asked).toEqual([]);
    isOpen = false;
    closing.abort();
    await clock.advance(0);
    expect((await response).status).toBe(200);
    expect(asked.map(({ at, context: { again } }) => [at, again])).toEqual([[1000, 'breaker']]);
    expect(clock.waiting).toBe(0);
  });

  it.each<[ErrorCode, number]>([
    ['checksum-mismatch', 0],
    ['checksum-mismatch', 50],
    ['sidecar-stale', 0],
    ['zip-truncated', 0],
    ['not-a-zip', 0],
  ])('asks twice more past all caches after %s, with %i retries', async (code, retries) => {
    const { response, asked } = await run([code], { retries });
    const error = await refusal(response);
    expect(error.code).toBe(code);
    expect(error.attempts).toBe(3);
    expect(asked.map(({ request }) => request.bypassCache ?? false)).toEqual([false, true, true]);
  });

  it('asks for a damaged body as often as for one that was cut, past caches', async () => {
    const { response, asked } = await run(['body-damaged'], { retries: 4 });
    expect((await refusal(response)).code).toBe('body-damaged');
    expect(asked.map(({ request }) => request.bypassCache ?? false)).toEqual([false, true, true, true, true]);
  });

  it('does not go past caches because the wire failed', async () => {
    const { asked } = await run(['connection-lost', 200]);
    expect(asked.map(({ request }) => request.bypassCache ?? false)).toEqual([false, false]);
  });

  it('numbers the extra tries of failures and of refused content together', async () => {
    const { response, events } = await run(['connection-lost', 'checksum-mismatch', 'connection-lost', 200]);
    await response;
    expect(events.map(({ retry: number }) => number)).toEqual([1, 2, 3]);
  });

  it.each<[string, Refusal, number]>([
    [
      'that a limit asked for, which the bucket waits out',
      { code: 'rate-limited', retryAfterMs: 5000 },
      5000,
    ],
    ['of a limit that asked for none', { code: 'rate-limited' }, 50],
    ['that a host in trouble asked for', { code: 'http-server-error', retryAfterMs: 8000 }, 8000],
  ])('tells the wait %s', async (_, refused, delayMs) => {
    const { response, events } = await run([refused, 200]);
    await response;
    expect(events.map((event) => event.delayMs)).toEqual([delayMs]);
  });

  it('passes on a failure that is not retried unchanged, also after retries, with all attempts', async () => {
    const { response } = await run(['connection-lost', 'connection-lost', 'zip-bomb']);
    const { code, message, cause, attempts } = await refusal(response);
    expect([code, message, cause, attempts]).toEqual(['zip-bomb', 'said by the test', undefined, 3]);
  });

  it('ends at once when it is aborted while it waits', async () => {
    const { clock, fetch, asked } = retried([{ code: 'http-server-error', retryAfterMs: 50_000 }]);
    const stop = new AbortController();
    const ended = refusal(fetch(REQUEST, context(stop.signal)));
    await clock.advance(1000);
    stop.abort(new CryptodlError('interrupted', 'ended by SIGINT'));
    expect((await ended).code).toBe('interrupted');
    expect(asked).toHaveLength(1);
    expect(clock.waiting).toBe(0);
  });

  it('waits at least as long as the Retry-After of a 503 says, and spends a retry', async () => {
    const { asked } = await run([
      { code: 'http-server-error', retryAfterMs: 8000 },
      'http-server-error',
      200,
    ]);
    expect(asked.map(({ at }) => at)).toEqual([0, 8000, 8100]);
    expect(asked.at(-1)?.context.attemptId).toBe('trace/3');
  });

  it.each([
    ['a Retry-After', { code: 'http-server-error', retryAfterMs: 60_000 } as const],
    ['an open breaker, with its jitter,', { code: 'breaker-open', retryAfterMs: 60_000 - 50 } as const],
  ])('waits for %s that is just as long as --max-wait', async (_, failure) => {
    const { response, asked } = await run([failure, 200]);
    expect((await response).status).toBe(200);
    expect(asked.map(({ at }) => at)).toEqual([0, 60_000]);
  });

  it('counts the attempts before a Retry-After beyond --max-wait', async () => {
    const failure = { code: 'http-server-error' } as const;
    const { response } = await run([failure, failure, { ...failure, retryAfterMs: 60_001 }]);
    expect(await refusal(response)).toMatchObject({ code: 'wait-too-long', attempts: 3 });
  });

  it('does not wait for a Retry-After beyond --max-wait', async () => {
    const { response, asked } = await run([{ code: 'http-server-error', retryAfterMs: 60_001 }]);
    expect((await refusal(response)).code).toBe('wait-too-long');
    expect(asked).toHaveLength(1);
  });
});

describe('retries of many requests at once', () => {
  const budget = (clock: VirtualClock, most = 1000) =>
    budgetLayer({ clock, maxWaitMs: DAY_MS, mostAtOnce: () => most });

  it('are as many at once as they may be, and no more', async () => {
    const clock = new VirtualClock();
    let under = 0;
    let most = 0;
    const slow: Fetch = async (_request, inner) => {
      under += inner.attemptId === 'trace/1' ? 0 : 1;
      most = Math.max(most, under);
      try {
        await clock.sleep(1000);
        throw new CryptodlError('http-server-error', 'said by the test');
      } finally {
        under -= inner.attemptId === 'trace/1' ? 0 : 1;
      }
    };
    const options = { retryStrategy: 'fixed', retryFactor: 1, retryDelayMs: 1, retryMaxDelayMs: 1 } as const;
    const layer = retryLayer({ clock, ...options, retries: 1, maxWaitMs: DAY_MS })(budget(clock, 3)(slow));
    const ended = Array.from({ length: 8 }, () => refusal(layer(REQUEST, context())));
    await clock.advance(DAY_MS);
    await Promise.all(ended);
    expect(most).toBe(3);
  });
});

describe('the id of an attempt', () => {
  it('is the number of its request among all that left, and the failed one is told with its own', async () => {
    const { response, asked, events } = await run(['rate-limited', 'connection-lost', 'breaker-open', 200]);
    await response;
    expect(asked.map(({ context: { attemptId } }) => attemptId)).toEqual(
      [1, 2, 3, 4].map((n) => `trace/${n}`),
    );
    expect(events.map(({ attemptId, traceId }) => [attemptId, traceId])).toEqual(
      [1, 2, 3].map((n) => [`trace/${n}`, 'trace']),
    );
  });
});

describe('the end of a request', () => {
  it.each<[string, Script, number, boolean]>([
    ['an answer', [200], 0, true],
    ['a 404', [404], 0, true],
    ['an answer after two retries', ['connection-lost', 'http-server-error', 200], 2, true],
    ['an answer after waits that were no retries', ['rate-limited', 'breaker-open', 200], 0, true],
    ['an answer after content that was asked for again', ['checksum-mismatch', 200], 1, true],
    ['a failure that no retry mends', ['http-refused'], 0, false],
    ['a failure of all retries', ['connection-lost'], 3, false],
    ['a limit that takes too long', [{ code: 'banned', retryAfterMs: 1 }], 0, false],
  ])('is told once, with the extra tries that it took: %s', async (_, script, retries, isOk) => {
    const ends: [number, boolean][] = [];
    const { response } = await run(script, {
      onEnd: (extra, error) => ends.push([extra, error === undefined]),
      maxWaitMs: 20_000,
    });
    await response.catch(() => undefined);
    expect(ends).toEqual([[retries, isOk]]);
  });

  it('is told also of a request that was aborted', async () => {
    const ends: [number, boolean][] = [];
    const { clock, fetch } = retried(['connection-lost'], {
      onEnd: (retries, error) => ends.push([retries, error === undefined]),
    });
    const stop = new AbortController();
    const ended = refusal(fetch(REQUEST, context(stop.signal)));
    await clock.advance(1);
    stop.abort(new CryptodlError('interrupted', 'ended by SIGINT'));
    await ended;
    expect(ends.map(([, isOk]) => isOk)).toEqual([false]);
  });
});

describe('a large body that comes in pieces', () => {
  const MIB = 1024 * 1024;
  const cutAt = (mib: number, etag = '"one"'): Refusal => ({
    code: 'connection-lost',
    partial: { bytes: mib * MIB, etag },
  });

  it('is never given up while every attempt brings eight megabytes, however few retries there are', async () => {
    const cuts = Array.from({ length: 30 }, (_, index) => cutAt((index + 1) * 8));
    const { response, asked } = await run([...cuts, 200], { retries: 1 });
    expect((await response).status).toBe(200);
    expect(asked).toHaveLength(31);
  });

  it.each<[string, Refusal[]]>([
    ['it gets no further', [cutAt(100), cutAt(100), cutAt(100), cutAt(100)]],
    ['it gets hardly further', [cutAt(100), cutAt(101), cutAt(102), cutAt(103)]],
    ['it begins anew each time', [cutAt(100, '"a"'), cutAt(90, '"b"'), cutAt(99, '"c"'), cutAt(80, '"d"')]],
  ])('is given up like any other when %s', async (_, script) => {
    const { response, asked } = await run(script, { retries: 2 });
    expect((await refusal(response)).code).toBe('connection-lost');
    // The first piece is progress: two retries are left after it.
    expect(asked).toHaveLength(3);
  });
});

describe('a request ahead of another source', () => {
  const failover = new Failover(true);

  it.each(['breaker-open', 'address-blocked'] as const)('does not wait after %s', async (code) => {
    const { asked, response } = await run([{ code, retryAfterMs: 1000 }, 200], { failover });
    await expect(response).rejects.toMatchObject({ code });
    expect(asked).toHaveLength(1);
  });

  it('waits as long as a host asks for, up to ten seconds', async () => {
    const short = await run([{ code: 'http-server-error', retryAfterMs: 10_000 }, 200], { failover });
    expect((await short.response).status).toBe(200);
    const long = await run([{ code: 'http-server-error', retryAfterMs: 10_001 }, 200], { failover });
    await expect(long.response).rejects.toMatchObject({ code: 'http-server-error' });
  });

  it('waits for limits and bans', async () => {
    const { response } = await run(['rate-limited', 'banned', 200], { failover });
    expect((await response).status).toBe(200);
  });

  it('waits again when no other source is left, or there is none', async () => {
    const left = new Failover(true);
    left.isPossible = false;
    for (const waiting of [left, new Failover(false)]) {
      const { response } = await run([{ code: 'breaker-open', retryAfterMs: 30_000 }, 200], {
        failover: waiting,
      });
      expect((await response).status).toBe(200);
    }
  });

  it('finds no network dead before the other source was asked', async () => {
    const clock = new VirtualClock();
    const dead: Fetch = () => Promise.reject(new CryptodlError('connect-failed', 'refused'));
    const fetch = breakerLayer({ clock, breakerOpenMs: 30_000, blockedWaitMs: 60_000, ...BREAKER, failover })(
      dead,
    );
    const codes: string[] = [];
    for (let request = 0; request < 6; request += 1)
      await fetch(REQUEST, context()).catch((error: unknown) => codes.push((error as CryptodlError).code));
    expect(codes).toEqual([...Array.from({ length: 5 }, () => 'connect-failed'), 'breaker-open']);
  });
});
