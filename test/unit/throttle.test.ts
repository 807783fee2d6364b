import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../src/errors.js';
import type { Fetch } from '../../src/fetch.js';
import { Throttle } from '../../src/throttle/throttle.js';
import { answer, context, refusal, REQUEST } from '../helpers/requests.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const LISTING = { ...REQUEST, bucket: 'listing' };
const PLENTY = { permitsPerSecond: 1000, burst: 1000 };

/** Two buckets in front of a host whose next refusals are told. */
function throttled(refusals: CryptodlError[], maxWaitMs = 3_600_000) {
  const clock = new VirtualClock();
  const sent: string[] = [];
  const host: Fetch = (request) => {
    const error = refusals.shift();
    if (error !== undefined) return Promise.reject(error);
    sent.push(request.bucket);
    return Promise.resolve(answer());
  };
  const throttle = new Throttle({ clock, buckets: { archive: PLENTY, listing: PLENTY }, maxWaitMs });
  return { clock, sent, throttle, fetch: throttle.layer(host) };
}

const slowDown = (retryAfterMs?: number): CryptodlError =>
  new CryptodlError('rate-limited', 'host answered 429', retryAfterMs === undefined ? {} : { retryAfterMs });

describe('throttle', () => {
  it('pauses the whole bucket for the Retry-After of a 429, and no other bucket (N24)', async () => {
    const { clock, sent, fetch } = throttled([slowDown(7000)]);
    expect((await refusal(fetch(REQUEST, context()))).code).toBe('rate-limited');
    void fetch(REQUEST, context());
    void fetch(REQUEST, context());
    await fetch(LISTING, context());
    await clock.advance(6999);
    expect(sent).toEqual(['listing']);
    await clock.advance(1);
    expect(sent).toEqual(['listing', 'archive', 'archive']);
  });

  it('D16 pauses a second after a 429 that names no time, and twice as long while it goes on', async () => {
    const { clock, sent, fetch } = throttled([slowDown(), slowDown(), slowDown()]);
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

  it('D16 begins with a second again once something was taken', async () => {
    const { clock, sent, fetch } = throttled([slowDown(), slowDown()]);
    for (const pauseMs of [0, 1000]) {
      const refused = refusal(fetch(REQUEST, context()));
      await clock.advance(pauseMs);
      await refused;
    }
    const taken = fetch(REQUEST, context());
    await clock.advance(2000);
    await taken;
    expect(sent).toHaveLength(1);
  });

  it('D17 takes a burst of 429 for one refusal', async () => {
    const { clock, sent, throttle, fetch } = throttled(Array.from({ length: 50 }, () => slowDown()));
    await Promise.all(Array.from({ length: 50 }, () => refusal(fetch(REQUEST, context()))));
    expect(throttle.figures.refusals).toBe(1);
    void fetch(REQUEST, context());
    await clock.advance(1000);
    expect(sent).toEqual(['archive']);
  });

  it('is not paused by any other failure, whatever time it names', async () => {
    const { clock, sent, fetch } = throttled([
      new CryptodlError('http-server-error', 'host answered 503', { retryAfterMs: 9000 }),
    ]);
    await refusal(fetch(REQUEST, context()));
    void fetch(REQUEST, context());
    await clock.advance(0);
    expect(sent).toEqual(['archive']);
  });

  it('ends requests with wait-too-long when the 429 asks for more than --max-wait (N25)', async () => {
    const { sent, fetch } = throttled([slowDown(1e12)], 60_000);
    expect((await refusal(fetch(REQUEST, context()))).code).toBe('wait-too-long');
    expect((await refusal(fetch(REQUEST, context()))).code).toBe('wait-too-long');
    expect(sent).toEqual([]);
  });

  it('calls a bucket that nobody configured a bug, and sends nothing', async () => {
    const { sent, fetch } = throttled([]);
    const error = await refusal(fetch({ ...REQUEST, bucket: 'spot' }, context()));
    expect(error.code).toBe('bug');
    expect(error.message).toContain('spot');
    expect(sent).toEqual([]);
  });

  it('takes a permit for every request, failed ones too', async () => {
    const clock = new VirtualClock();
    let sent = 0;
    const failing: Fetch = () => {
      sent += 1;
      return Promise.reject(new CryptodlError('http-server-error', 'host answered 500'));
    };
    const buckets = { archive: { permitsPerSecond: 1, burst: 2 } };
    const fetch = new Throttle({ clock, buckets, maxWaitMs: 60_000 }).layer(failing);
    for (let request = 0; request < 4; request += 1) fetch(REQUEST, context()).catch(() => undefined);
    await clock.advance(999);
    expect(sent).toBe(2);
    await clock.advance(1001);
    expect(sent).toBe(4);
  });
});
