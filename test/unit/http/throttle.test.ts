import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Quota } from '../../../src/http/throttle/exchange-hosts.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import type { Fetch, FetchRequest, FetchResponse } from '../../../src/model/fetch.js';
import { Failover } from '../../../src/http/throttle/failover.js';
import { EgressGroup } from '../../../src/http/throttle/group.js';
import type { ThrottleSetup } from '../../../src/http/throttle/server-buckets.js';
import { SharedResources } from '../../../src/model/shared-resources.js';
import { REQUEST, answer, context, refusal } from '../../helpers/requests.js';
import { NO_BANS, throttleOf } from '../../helpers/throttles.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const LISTING = { ...REQUEST, bucket: 'listing' };
const PLENTY = { permitsPerSecond: 1000, burst: 1000 };

/** Two buckets in front of a host whose next refusals are told. */
function throttled(refusals: Error[]) {
  const clock = new VirtualClock();
  const sent: string[] = [];
  const host: Fetch = (request) => {
    const error = refusals.shift();
    if (error !== undefined) return Promise.reject(error);
    sent.push(request.bucket);
    return Promise.resolve(answer());
  };
  const throttle = throttleOf(clock, { archive: PLENTY, listing: PLENTY, quiet: PLENTY });
  return { clock, sent, throttle, host, fetch: throttle.layer(host) };
}

describe('throttle', () => {
  it('pauses the whole bucket for the Retry-After of a 429, and no other bucket', async () => {
    const { clock, sent, fetch } = throttled([said('rate-limited', 7000)]);
    expect((await refusal(fetch(REQUEST, context()))).code).toBe('rate-limited');
    void fetch(REQUEST, context());
    void fetch(REQUEST, context());
    await fetch(LISTING, context());
    await clock.advance(6999);
    expect(sent).toEqual(['listing']);
    await clock.advance(1);
    expect(sent).toEqual(['listing', 'archive', 'archive']);
  });

  it('pauses a second after a 429 that names no time, and twice as long while it goes on', async () => {
    const { clock, sent, fetch } = throttled(Array.from({ length: 3 }, () => said('rate-limited')));
    for (const pauseMs of [0, 1000, 2000]) {
      const refused = refusal(fetch(REQUEST, context()));
      await clock.advance(pauseMs);
      expect((await refused).code).toBe('rate-limited');
    }
    void fetch(REQUEST, context());
    await clock.advance(3999);
    expect(sent).toEqual([]);
    await clock.advance(1);
    expect(sent).toEqual(['archive']);
  });

  it('tells how many requests waited in all buckets, how long, and how often they were refused', async () => {
    const { clock, throttle, fetch } = throttled([said('rate-limited', 1000), said('rate-limited', 500)]);
    for (const request of [REQUEST, LISTING]) {
      await refusal(fetch(request, context()));
      void fetch(request, context());
    }
    void fetch(LISTING, context());
    void fetch({ ...REQUEST, bucket: 'quiet' }, context());
    await clock.advance(5000);
    expect(throttle.figures).toEqual({
      waits: 3,
      waitedMs: 2000,
      refusals: 2,
      buckets: {
        archive: { waits: 1, waitedMs: 1000, refusals: 1, isChosen: false },
        listing: { waits: 2, waitedMs: 1000, refusals: 1, isChosen: false },
      },
    });
  });

  it.each<[string, Quota, boolean]>([
    ['a rate of ours', { permitsPerSecond: 1, burst: 1 }, false],
    ['a budget of the server', { permits: 1, windowSeconds: 60 }, false],
    ['a budget that the user made smaller', { permits: 1, windowSeconds: 60, isChosen: true }, true],
    ['a pace of the user', { permitsPerSecond: 100, burst: 1, paces: [{ requests: 1, spanMs: 1000 }] }, true],
    [
      'a pace of the user above the rate',
      { permitsPerSecond: 1, burst: 1, paces: [{ requests: 1, spanMs: 1 }] },
      false,
    ],
  ])('tells whether the user chose the limit that requests wait for: %s', async (_, quota, isChosen) => {
    const requestIntervalMs = quota.paces?.[0]?.spanMs;
    const options = { maxWaitMs: 3_600_000, requestIntervalMs };
    const { clock, ask, throttle } = windowed(undefined, { buckets: { archive: quota }, options });
    ask('archive', 5);
    await clock.advance(600_000);
    expect(throttle.figures.buckets['archive']).toMatchObject({ waits: 4, isChosen });
  });

  it('lets each run of a shared bucket give up a long pause for itself', async () => {
    const common = new SharedResources();
    const { clock, host } = throttled([said('rate-limited', 60_000)]);
    const failover = new Failover(true);
    const hasOther = throttleOf(clock, { archive: PLENTY }, { common, failover }).layer(host);
    const hasNone = throttleOf(clock, { archive: PLENTY }, { common }).layer(host);
    expect(await refusal(hasOther(REQUEST, context()))).toMatchObject({ isGivenUp: true });
    expect(await refusal(hasOther(REQUEST, context()))).toMatchObject({ isGivenUp: true });
    const waiting = hasNone(REQUEST, context());
    await clock.advance(60_000);
    await expect(waiting).resolves.toMatchObject({ status: 200 });
  });

  it.each([
    new CryptodlError('http-server-error', 'host answered 503', { retryAfterMs: 9000 }),
    Object.assign(new Error('of another program'), { code: 'rate-limited' }),
  ])('is not paused by any other failure, with any time in it: %s', async (error) => {
    const { clock, sent, fetch } = throttled([error]);
    await expect(fetch(REQUEST, context())).rejects.toBe(error);
    void fetch(REQUEST, context());
    await clock.advance(0);
    expect(sent).toEqual(['archive']);
  });

  it('treats a bucket without a limit as a bug, and sends nothing', async () => {
    const { sent, fetch } = throttled([]);
    const asked = fetch({ ...REQUEST, bucket: 'spot' }, context());
    await expect(asked).rejects.toMatchObject({ code: 'bug', message: 'no quota bucket is called spot' });
    expect(sent).toEqual([]);
  });

  it('takes a permit for every request, failed ones too', async () => {
    const buckets = { archive: { permitsPerSecond: 1, burst: 2 } };
    const { clock, ask, sentTo } = windowed(() => said('http-server-error'), { buckets });
    ask('archive', 4);
    await clock.advance(999);
    expect(sentTo('archive')).toBe(2);
    await clock.advance(1001);
    expect(sentTo('archive')).toBe(4);
  });
});

const MINUTE_MS = 60_000;
const WINDOWS = {
  futures: { permits: 100, windowSeconds: 60, family: 'futures' },
  funding: { permits: 50, windowSeconds: 300, family: 'futures' },
  spot: { permits: 100, windowSeconds: 60, family: 'spot' },
  archive: PLENTY,
} as const;

const FREE = { used: () => 0, take: () => 0, raise: () => undefined, giveBack: () => undefined };

type Says = (request: FetchRequest) => FetchResponse | CryptodlError | Promise<FetchResponse>;

/** Buckets that count in windows, in front of a host whose clock is ours. */
function windowed(
  says: Says = () => answer(),
  {
    buckets = WINDOWS,
    ...changes
  }: Partial<ThrottleSetup> & { readonly buckets?: ThrottleSetup['hosts']['buckets'] } = {},
  countOf?: Parameters<typeof throttleOf>[3],
) {
  const clock = new VirtualClock();
  const sent: { bucket: string; at: number }[] = [];
  const host: Fetch = async (request) => {
    sent.push({ bucket: request.bucket, at: clock.now() });
    const said = await says(request);
    if (said instanceof CryptodlError) throw said;
    return said;
  };
  const throttle = throttleOf(clock, buckets, changes, countOf);
  const fetch = throttle.layer(host);
  const ask = (bucket: string, times = 1, more: Partial<FetchRequest> = {}): void => {
    for (let time = 0; time < times; time += 1)
      fetch({ ...REQUEST, bucket, ...more }, context()).catch(() => undefined);
  };
  const sentTo = (bucket: string): number => sent.filter((request) => request.bucket === bucket).length;
  const toWindow = () => clock.advance(MINUTE_MS - (clock.now() % MINUTE_MS));
  return { clock, sent, throttle, fetch, ask, sentTo, toWindow };
}

const said = (code: ErrorCode, retryAfterMs?: number): CryptodlError =>
  new CryptodlError(code, 'said by the test', retryAfterMs === undefined ? {} : { retryAfterMs });

/** An answer as the venue gives it. */
function counted(used: number | string, nowMs?: number, name = 'x-mbx-used-weight-1m'): FetchResponse {
  const date = nowMs === undefined ? {} : { date: new Date(nowMs).toUTCString() };
  return { ...answer(), headers: { [name]: String(used), ...date } };
}

describe('the states of the buckets', () => {
  it('have the used permits of the window, the waiting requests, and the wait of the first of them', async () => {
    const { clock, ask, throttle, toWindow } = windowed();
    await toWindow();
    expect(throttle.states).toEqual([]);
    ask('futures', 1, { weight: 100 });
    ask('futures', 3);
    await clock.advance(1000);
    expect(throttle.states).toEqual([
      {
        name: 'futures',
        waiting: 3,
        nextMs: 59_000,
        pausedMs: 0,
        window: { used: 100, permits: 100, leftMs: 59_000 },
      },
    ]);
    await clock.advance(59_000);
    expect(throttle.states).toMatchObject([{ waiting: 0, nextMs: 0, window: { used: 3 } }]);
  });

  it('have what is left of a pause, and no window for a rate', async () => {
    const { clock, throttle, fetch } = throttled([said('rate-limited', 7000)]);
    await refusal(fetch(REQUEST, context()));
    void fetch(REQUEST, context());
    await clock.advance(2000);
    expect(throttle.states).toEqual([
      { name: 'archive', waiting: 1, nextMs: 5000, pausedMs: 5000, window: undefined },
    ]);
  });
});

describe('an egress group', () => {
  it('is named by the figures, and by the states of the buckets that count in windows', async () => {
    const group = { name: 'office', members: 10, isShared: false };
    const { clock, ask, throttle } = windowed(
      () => answer(),
      {
        group: new EgressGroup({
          address: 'redis://127.0.0.1:1',
          name: 'office',
          clock: new VirtualClock(),
          warn: () => undefined,
        }),
      },
      () => FREE,
    );
    for (const bucket of ['futures', 'archive']) ask(bucket);
    await clock.advance(0);
    expect(throttle.figures).toMatchObject({ waits: 0, buckets: {}, group });
    const [futures, archive] = throttle.states;
    expect(futures).toMatchObject({ name: 'futures', group });
    expect(archive).not.toHaveProperty('group');
    expect(Object.keys(throttled([]).throttle.figures)).not.toContain('group');
  });

  it('wakes the bucket when its count changes', async () => {
    let tell: () => void = () => undefined;
    let waitMs = Infinity;
    const count = { ...FREE, take: () => waitMs, onChange: (listener: () => void) => (tell = listener) };
    const { clock, ask, sentTo } = windowed(
      () => answer(),
      {},
      (name) => (name === 'futures' ? count : FREE),
    );
    ask('futures');
    await clock.advance(0);
    waitMs = 0;
    tell();
    await clock.advance(0);
    expect(sentTo('futures')).toBe(1);
  });
});

describe('a refusal that another program got', () => {
  it('pauses the bucket, and is no error for an unknown bucket or a pause that is too long', async () => {
    const { clock, ask, sentTo, throttle } = windowed();
    throttle.pause('unknown', 1000);
    throttle.pause('spot', 1000);
    throttle.pause('futures', 1e12);
    for (const bucket of ['spot', 'futures']) ask(bucket);
    await clock.advance(999);
    expect(sentTo('spot')).toBe(0);
    await clock.advance(1);
    expect(['spot', 'futures'].map(sentTo)).toEqual([1, 0]);
  });
});

describe('a ban (418)', () => {
  it('pauses all buckets of its family, and no other', async () => {
    const { clock, ask, sentTo } = windowed(({ weight }) =>
      weight === 2 ? said('banned', 10_000) : answer(),
    );
    ask('futures', 1, { weight: 2 });
    await clock.advance(0);
    ask('futures');
    ask('funding');
    ask('spot');
    ask('archive');
    await clock.advance(9999);
    expect(['futures', 'funding', 'spot', 'archive'].map(sentTo)).toEqual([1, 0, 1, 1]);
    await clock.advance(1);
    expect(['futures', 'funding'].map(sentTo)).toEqual([2, 1]);
  });

  it('is not a 429, which pauses its own bucket alone', async () => {
    const refusals = [said('rate-limited', 5000)];
    const { clock, ask, sentTo } = windowed(() => refusals.shift() ?? answer());
    ask('futures');
    await clock.advance(0);
    ask('funding');
    await clock.advance(0);
    expect(sentTo('funding')).toBe(1);
  });

  it('pauses only its own bucket when that is of no family', async () => {
    const { clock, sent, fetch } = throttled([said('banned', 10_000)]);
    await refusal(fetch(REQUEST, context()));
    void fetch(REQUEST, context());
    void fetch(LISTING, context());
    await clock.advance(9999);
    expect(sent).toEqual(['listing']);
  });

  it('pauses all buckets of its family also when it is longer than --max-wait', async () => {
    const { clock, ask, sentTo, fetch } = windowed(() => said('banned', 3 * 86_400_000));
    ask('funding');
    await clock.advance(0);
    for (const bucket of ['futures', 'funding'])
      expect((await refusal(fetch({ ...REQUEST, bucket }, context()))).code).toBe('wait-too-long');
    expect(['futures', 'funding'].map(sentTo)).toEqual([0, 1]);
  });

  it('is told for every bucket of the family, and a 429 that says for how long for its own', async () => {
    const told: [string, string, number][] = [];
    const codes: ErrorCode[] = ['banned', 'rate-limited', 'rate-limited'];
    const waits = [5000, 7000, undefined];
    const refuse = (code: ErrorCode, retryAfterMs?: number): CryptodlError =>
      new CryptodlError(code, code, retryAfterMs === undefined ? {} : { retryAfterMs });
    const { clock, ask } = windowed(() => refuse(codes.shift() ?? 'bug', waits.shift()), {
      bans: {
        ...NO_BANS,
        record: (place, { why, untilMs }) => told.push([place, why, untilMs - clock.now()]),
      },
    });
    ask('futures');
    await clock.advance(MINUTE_MS);
    ask('spot', 1);
    await clock.advance(MINUTE_MS);
    ask('archive', 1);
    await clock.advance(0);
    expect(told).toEqual([
      ['futures archive.test', 'banned', 5000],
      ['funding archive.test', 'banned', 5000],
      ['spot archive.test', 'rate-limited', 7000],
    ]);
  });

  it('of another run of this machine is waited for before anything is sent', async () => {
    let leftMs = 20_000;
    const { clock, ask, sentTo } = windowed(() => answer(), {
      bans: { ...NO_BANS, leftMs: () => Promise.resolve(leftMs) },
    });
    ask('spot');
    await clock.advance(0);
    leftMs = 0;
    const { timersSet } = clock;
    ask('spot');
    await clock.advance(19_999);
    expect(clock.timersSet).toBe(timersSet);
    expect(sentTo('spot')).toBe(0);
    await clock.advance(1);
    expect(sentTo('spot')).toBe(2);
  });
});

describe('the count and the limit of the server', () => {
  /** Requests that are sent at the begin of a window when the first answer has these headers. */
  async function sentAfter({ headers }: FetchResponse): Promise<number> {
    const { clock, ask, sentTo, toWindow } = windowed(() => ({ ...answer(), headers }));
    await toWindow();
    ask('futures');
    await clock.advance(0);
    ask('futures', 200);
    await clock.advance(0);
    return sentTo('futures');
  }

  it('raises the count of the running window, also for use by others', async () => {
    const { clock, ask, sentTo, toWindow } = windowed(() => counted(95, clock.now()));
    await toWindow();
    ask('futures');
    await clock.advance(0);
    ask('futures', 20);
    await clock.advance(59_000);
    // 95 by then, of which one was ours: five more.
    expect(sentTo('futures')).toBe(6);
    await clock.advance(3000);
    expect(sentTo('futures')).toBeGreaterThan(6);
  });

  it.each([
    counted(95, undefined, 'x-mbx-used-weight'),
    counted('many'),
    counted(''),
    counted(95, undefined, 'x-sapi-used-ip-weight-1m'),
    counted(95, undefined, 'x-x-mbx-used-weight-1m'),
    counted(95, undefined, 'x-mbx-used-weight-1m-raw'),
    counted(95, undefined, 'x-mbx-used-weight-5m'),
  ])('is not read from other headers: %o', async (response) => {
    expect(await sentAfter(response)).toBe(80);
  });

  it.each(['1m', '60s'])('is read from a count of %s for a window of a minute', async (span) => {
    expect(await sentAfter(counted(95, undefined, `x-mbx-used-weight-${span}`))).toBe(1);
  });

  it('is of the window of its date: a number of the window before says nothing about this one', async () => {
    const { clock, ask, sentTo, toWindow } = windowed(async ({ weight }) => {
      const response = counted(weight === 2 ? 99 : 0, clock.now());
      if (weight === 2) await clock.sleep(2000);
      return response;
    });
    await toWindow();
    // Quick answers: what time it is there is known to the second.
    ask('futures');
    await clock.advance(58_500);
    ask('futures', 1, { weight: 2 });
    await clock.advance(4000);
    ask('futures', 50);
    await clock.advance(0);
    expect(sentTo('futures')).toBe(52);
  });

  it('a 429 without a time ends the window: nothing is sent before the next one', async () => {
    const { clock, ask, sentTo, toWindow } = windowed(({ weight }) =>
      weight === 2 ? said('rate-limited') : answer(),
    );
    await toWindow();
    await clock.advance(20_000);
    ask('futures', 1, { weight: 2 });
    await clock.advance(0);
    ask('futures');
    await clock.advance(39_999);
    expect(sentTo('futures')).toBe(1);
    await clock.advance(1);
    expect(sentTo('futures')).toBe(2);
  });

  it("an answer that took a minute does not stop the bucket, because it is no measure of the server's time", async () => {
    const { clock, ask, sentTo } = windowed(async () => {
      const response = counted(1, clock.now());
      await clock.sleep(59_500);
      return response;
    });
    ask('futures');
    await clock.advance(59_500);
    ask('futures');
    await clock.advance(2 * MINUTE_MS);
    expect(sentTo('futures')).toBe(2);
  });

  it.each([
    ['of the venue', { permits: 100, windowSeconds: 60 }, 60_000, 50],
    ['of the venue, where it is higher', { permits: 20, windowSeconds: 60 }, 60_000, 50],
    ['of the user, where it is lower', { permits: 20, windowSeconds: 60, isChosen: true }, 60_000, 20],
    ['of the venue, where it is lower', { permits: 80, windowSeconds: 60, isChosen: true }, 60_000, 50],
    ['of the user for another window', { permits: 20, windowSeconds: 60, isChosen: true }, 120_000, 40],
    ['of the rate', { permitsPerSecond: 1000, burst: 300 }, 60_000, 300],
  ])('obeys the limit %s when the venue tells its own', async (_, quota, windowMs, most) => {
    const { clock, throttle, ask, sentTo } = windowed(undefined, { buckets: { spot: quota } });
    throttle.setBudget('spot', { permits: 50, windowMs });
    await clock.advance(windowMs - (clock.now() % windowMs));
    ask('spot', 300);
    await clock.advance(windowMs - 1);
    expect(sentTo('spot')).toBe(most);
    expect(() => {
      throttle.setBudget('unknown', { permits: 1, windowMs });
    }).toThrow('no quota bucket is called unknown');
  });
});

describe('permits of requests that were aborted', () => {
  it.each<Quota>([
    { permitsPerSecond: 0.001, burst: 1 },
    { permits: 1, windowSeconds: 1e6 },
  ])('are given back when the abort comes between the grant and the sending: %o', async (archive) => {
    const clock = new VirtualClock();
    let sent = 0;
    let sentLate = 0;
    const host: Fetch = (_, { signal }) => {
      sent += 1;
      if (signal.aborted) sentLate += 1;
      return Promise.resolve(answer());
    };
    const fetch = throttleOf(clock, { archive }, { options: { maxWaitMs: 1e9 } }).layer(host);
    for (let ticks = 0; ticks < 12; ticks += 1) {
      const stop = new AbortController();
      const ended = fetch(REQUEST, context(stop.signal)).then(
        () => 'sent',
        () => 'aborted',
      );
      // A grant is a few turns of promises away from the sending: the abort comes within each of them.
      for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
      stop.abort(new CryptodlError('interrupted', 'ended by SIGINT'));
      if ((await ended) === 'sent') break;
    }
    expect([sent, sentLate]).toEqual([1, 0]);
    expect(clock.waiting).toBe(0);
  });

  it('never leak: after any requests and aborts the bucket has exactly its budget again', async () => {
    const step = fc.record({
      weight: fc.integer({ min: 1, max: 5 }),
      priority: fc.constantFrom('high', 'normal', 'low'),
      /** Turns of promises until the abort; or it comes while it waits, or never. */
      abortAfter: fc.option(fc.oneof(fc.nat(12), fc.constant(1000)), { nil: undefined }),
      gapMs: fc.constantFrom(0, 0, 0, 10, 700),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.constantFrom('futures', 'rated'),
        async (steps, bucket) => {
          const buckets = { ...WINDOWS, rated: { permitsPerSecond: 100 / 60, burst: 100 } };
          let weightSent = 0;
          const { clock, fetch, toWindow, throttle } = windowed(
            ({ weight = 1 }) => {
              weightSent += weight;
              return answer();
            },
            { buckets, options: { maxWaitMs: 1e9 } },
          );
          await toWindow();
          const ask = (weight: number, signal?: AbortSignal) =>
            fetch({ ...REQUEST, bucket, weight }, context(signal)).catch(() => undefined);
          for (const { weight, abortAfter, gapMs } of steps) {
            const stop = new AbortController();
            void ask(weight, stop.signal);
            if (abortAfter !== undefined && abortAfter < 1000)
              for (let tick = 0; tick < abortAfter; tick += 1) await Promise.resolve();
            await (abortAfter === undefined || abortAfter < 1000 ? undefined : clock.advance(1));
            if (abortAfter !== undefined) stop.abort(new CryptodlError('interrupted', 'ended by SIGINT'));
            await clock.advance(gapMs);
          }
          await clock.advance(10 * MINUTE_MS);
          expect(clock.waiting).toBe(0);
          await toWindow();
          weightSent = 0;
          const { waits } = throttle.figures;
          const all = Array.from({ length: 100 }, () => ask(1));
          await clock.advance(bucket === 'futures' ? 59_999 : 0);
          expect(weightSent).toBe(100);
          if (bucket === 'rated') expect(throttle.figures.waits).toBe(waits);
          void ask(1);
          await clock.advance(0);
          expect(weightSent).toBe(100);
          await clock.advance(MINUTE_MS);
          await Promise.all(all);
          expect(weightSent).toBe(101);
        },
      ),
      { numRuns: 40 },
    );
  });
});
