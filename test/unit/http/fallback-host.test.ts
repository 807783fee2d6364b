import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { ErrorCode } from '../../../src/model/errors.js';
import type { Fetch, FetchRequest } from '../../../src/model/fetch.js';
import { breakerLayer } from '../../../src/http/retry/breaker.js';
import { fallbackLayer } from '../../../src/http/retry/fallback-host.js';
import { answer, context, refusal, REQUEST } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const FIRST = 'http://archive.test/data.vision';
const OTHER = 'http://origin.test:8080/bucket';
const URL_ = `${FIRST}/data/a%20b.zip?x=1`;
const ELSEWHERE = `${OTHER}/data/a%20b.zip?x=1`;

type Says = 200 | ErrorCode | CryptodlError;

/** Two hosts of the same objects. */
function hosts(first: Says, other: Says) {
  const asked: FetchRequest[] = [];
  const host: Fetch = (request) => {
    asked.push(request);
    const says = request.url.startsWith(OTHER) ? other : first;
    if (says === 200) return Promise.resolve(answer('x'));
    return Promise.reject(typeof says === 'string' ? new CryptodlError(says, 'said by the test') : says);
  };
  const layer = fallbackLayer(FIRST, OTHER)(host);
  const fetch = (url = URL_) => layer({ ...REQUEST, url }, context());
  return { asked, fetch, urls: () => asked.map(({ url }) => url) };
}

const leftAlone = (code: ErrorCode, retryAfterMs?: number): CryptodlError =>
  new CryptodlError(code, `${code} for ${retryAfterMs}`, retryAfterMs === undefined ? {} : { retryAfterMs });

describe('the other host of the same objects', () => {
  it.each<ErrorCode>(['breaker-open', 'wait-too-long'])(
    'is asked while the first is left alone: %s',
    async (code) => {
      const { asked, fetch, urls } = hosts(code, 200);
      expect((await fetch()).status).toBe(200);
      expect(urls()).toEqual([URL_, ELSEWHERE]);
      expect(asked[1]).toEqual({ ...REQUEST, url: ELSEWHERE });
    },
  );

  it.each<ErrorCode>([
    'http-server-error',
    'connect-failed',
    'rate-limited',
    'checksum-mismatch',
    'unreachable',
  ])('is not asked when the first itself was asked and said %s', async (code) => {
    const { fetch, urls } = hosts(code, 200);
    expect((await refusal(fetch())).code).toBe(code);
    expect(urls()).toEqual([URL_]);
  });

  it.each([
    'http://listing.test/?prefix=x',
    'http://archive.test/data.visionary/a.zip',
    'http://archive.test/a',
  ])('gets no requests for other things than these objects: %s', async (url) => {
    const { fetch, urls } = hosts('breaker-open', 200);
    expect((await refusal(fetch(url))).code).toBe('breaker-open');
    expect(urls()).toEqual([url]);
  });

  it('reports its own errors, so that they are retried as usual', async () => {
    const { fetch } = hosts('breaker-open', 'connection-lost');
    expect((await refusal(fetch())).code).toBe('connection-lost');
  });

  it.each<[string, CryptodlError, CryptodlError, 'first' | 'other']>([
    ['both are left alone', leftAlone('breaker-open', 5000), leftAlone('breaker-open', 9000), 'first'],
    [
      'the other is open again sooner',
      leftAlone('breaker-open', 90_000),
      leftAlone('breaker-open', 5000),
      'other',
    ],
    ['the first is stopped for good', leftAlone('wait-too-long'), leftAlone('breaker-open', 5000), 'other'],
    ['the other is stopped for good', leftAlone('breaker-open', 5000), leftAlone('wait-too-long'), 'first'],
    ['both are stopped', leftAlone('wait-too-long'), leftAlone('wait-too-long'), 'first'],
  ])(
    'the time of the next attempt is that of the host that is free first: %s',
    async (_, first, other, expected) => {
      const { fetch } = hosts(first, other);
      expect(await refusal(fetch())).toBe(expected === 'first' ? first : other);
    },
  );

  it('does not exist where none is configured', () => {
    const host: Fetch = () => Promise.reject(new CryptodlError('breaker-open', 'said by the test'));
    expect(fallbackLayer(FIRST)(host)).toBe(host);
    expect(fallbackLayer(FIRST, FIRST)(host)).toBe(host);
  });

  it('each of the two has its own breaker, and the first is used again after its open time', async () => {
    const clock = new VirtualClock();
    const asked: string[] = [];
    let isDown = true;
    const host: Fetch = ({ url }) => {
      asked.push(new URL(url).host);
      return isDown && url.startsWith(FIRST)
        ? Promise.reject(new CryptodlError('http-server-error', 'down'))
        : Promise.resolve(answer());
    };
    const guarded = breakerLayer({
      clock,
      breakerOpenMs: 30_000,
      blockedWaitMs: 60_000,
      breakerFailures: 5,
      breakerSuccesses: 3,
    })(host);
    const fetch = fallbackLayer(FIRST, OTHER)(guarded);
    const ask = () => fetch({ ...REQUEST, url: URL_ }, context()).catch(() => undefined);
    for (let time = 0; time < 8; time += 1) await ask();
    expect(asked).toEqual([
      ...Array<string>(5).fill('archive.test'),
      ...Array<string>(3).fill('origin.test:8080'),
    ]);
    isDown = false;
    await clock.advance(30_000);
    await ask();
    await ask();
    expect(asked.slice(8)).toEqual(['archive.test', 'archive.test']);
  });
});
