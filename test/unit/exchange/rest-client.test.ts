import { describe, expect, it } from 'vitest';
import type { FetchRequest } from '../../../src/model/fetch.js';
import { exchangeInfo, readExchangeInfo, weightBucket } from '../../../src/exchange/binance/exchange-info.js';
import type { RestRequest } from '../../../src/exchange/binance/rest-client.js';
import { clientOf, sayOf, URLS } from '../../helpers/rest-client.js';
import { answer, refusal } from '../../helpers/requests.js';
import { html404, json, restricted } from '../../helpers/rest-venue-answers.js';
import type { Host, VenueAnswer } from '../../helpers/rest-venue-types.js';
import { RestVenue } from '../../helpers/rest-venue.js';

const NOW = Date.UTC(2026, 9, 7, 12);
const ELSEWHERE = 'https://data.test';

const TIME: Readonly<Record<Host, RestRequest>> = {
  fapi: { host: 'fapi', path: '/fapi/v1/time', query: {}, bucket: 'futures', weight: 1 },
  dapi: { host: 'dapi', path: '/dapi/v1/time', query: {}, bucket: 'futures', weight: 1 },
  spot: { host: 'spot', path: '/api/v3/time', query: {}, bucket: 'spot', weight: 1 },
};

const same = (content: unknown): unknown => content;

/** Hosts that do not serve our place, and those that do. */
function placeOf(...refused: readonly string[]): (url: URL) => VenueAnswer {
  return (url) => (refused.includes(url.origin) ? restricted() : json(`{"from":"${url.host}"}`));
}

const hostsOf = (asked: readonly FetchRequest[]): string[] => asked.map(({ url }) => new URL(url).host);

describe('a place that a host does not serve', () => {
  it('is asked about once for each host', async () => {
    const { client, asked, warnings } = clientOf(placeOf(URLS.fapi));
    const first = await refusal(client.get(TIME.fapi, same));
    expect(first).toMatchObject({ code: 'location-restricted', retryable: false });
    expect(await refusal(client.get({ ...TIME.fapi, path: '/fapi/v1/ping' }, same))).toBe(first);
    expect(hostsOf(asked)).toEqual(['fapi.test']);
    expect(await client.get(TIME.dapi, same)).toEqual({ from: 'dapi.test' });
    expect(await refusal(client.get(TIME.fapi, same))).toBe(first);
    expect(hostsOf(asked)).toEqual(['fapi.test', 'dapi.test']);
    expect(warnings).toEqual([]);
  });

  it('has spot from elsewhere, which is said once, also when many ask at a time', async () => {
    const { client, asked, warnings } = clientOf(placeOf(URLS.spot), { otherSpotUrl: ELSEWHERE });
    const answers = await Promise.all([1, 2, 3].map(() => client.get(TIME.spot, same)));
    expect(answers).toEqual([1, 2, 3].map(() => ({ from: 'data.test' })));
    expect(await client.get(TIME.spot, same)).toEqual({ from: 'data.test' });
    const hosts = hostsOf(asked);
    expect(hosts.filter((host) => host === 'spot.test')).toHaveLength(3);
    expect(hosts.slice(-1)).toEqual(['data.test']);
    expect(warnings).toEqual([
      'spot.test answered 451: it does not serve the location of this IP address: requests go to https://data.test instead',
    ]);
  });

  it('has spot from elsewhere with the same question', async () => {
    const { client, asked } = clientOf(placeOf(URLS.spot), { otherSpotUrl: ELSEWHERE });
    await client.get({ ...TIME.spot, query: { symbol: 'BTCUSDT', limit: 5 } }, same);
    expect(asked.map(({ url }) => url)).toEqual([
      'https://spot.test/api/v3/time?symbol=BTCUSDT&limit=5',
      'https://data.test/api/v3/time?symbol=BTCUSDT&limit=5',
    ]);
  });

  it('has no spot where elsewhere does not serve it either, and asks neither again', async () => {
    const { client, asked } = clientOf(placeOf(URLS.spot, ELSEWHERE), { otherSpotUrl: ELSEWHERE });
    const first = await refusal(client.get(TIME.spot, same));
    expect(first.code).toBe('location-restricted');
    expect(first.message).toContain('data.test');
    expect(await refusal(client.get(TIME.spot, same))).toBe(first);
    expect(hostsOf(asked)).toEqual(['spot.test', 'data.test']);
  });

  it('has no spot where there is no elsewhere', async () => {
    const { client, asked } = clientOf(placeOf(URLS.spot));
    const first = await refusal(client.get(TIME.spot, same));
    expect(await refusal(client.get(TIME.spot, same))).toBe(first);
    expect(hostsOf(asked)).toEqual(['spot.test']);
  });

  it('does not have futures from the elsewhere of spot', async () => {
    const { client, asked } = clientOf(placeOf(URLS.fapi), { otherSpotUrl: ELSEWHERE });
    expect((await refusal(client.get(TIME.fapi, same))).code).toBe('location-restricted');
    expect(hostsOf(asked)).toEqual(['fapi.test']);
  });
});

describe('another refusal', () => {
  it('is not remembered', async () => {
    const said = [json('{"code":-1121,"msg":"Invalid symbol."}'), json('{}')];
    let answers = 0;
    const { client, asked } = clientOf(() => {
      const next = said[answers] ?? json('{}');
      answers += 1;
      return answers === 1 ? { ...next, status: 400 } : next;
    });
    expect((await refusal(client.get(TIME.fapi, same))).code).toBe('symbol-unknown');
    expect(await client.get(TIME.fapi, same)).toEqual({});
    expect(asked).toHaveLength(2);
  });
});

describe('a path that is not there', () => {
  it.each<[string, string]>([
    ['a page for people', html404().body],
    ['JSON', '{"code":-5000,"msg":"Path is invalid."}'],
    ['nothing', ''],
  ])('answered with %s tells which host was meant', async (_, body) => {
    const { client } = clientOf(() => ({ ...html404(), body }));
    expect(await refusal(client.get(TIME.dapi, same))).toMatchObject({
      code: 'http-refused',
      message: 'dapi.test has no /dapi/v1/time',
      hint: 'check --dapi-url',
    });
  });
});

describe('an answer', () => {
  it.each<[string, string, string]>([
    ['a page for people', '<!DOCTYPE html><HTML>', '"<!DOCTYPE html><HTML>"'],
    ['JSON that was cut', '[{"symbol":"BTCUSDT"},{"sy', '"[{\\"symbol\\":\\"BTCUSDT\\"},{\\"sy"'],
    ['nothing', '', '""'],
  ])('that is %s is malformed, and may be asked for again', async (_, body, start) => {
    const { client } = clientOf(() => ({ status: 200, body }));
    expect(await refusal(client.get(TIME.fapi, same))).toMatchObject({
      code: 'answer-malformed',
      message: `/fapi/v1/time did not answer in JSON: the answer starts with ${start}`,
      retryable: true,
      rounds: true,
    });
  });

  it('is read on every attempt: an error of the reader is the error of the request', async () => {
    let attempts = 0;
    const bodies = ['<html>', '{"n":1}', '{"n":2}'];
    const { client } = clientOf(() => ({ status: 200, body: '' }), {
      // As the retry layer: one request, several attempts.
      fetch: async (request) => {
        for (;;) {
          const response = answer(bodies[attempts]);
          attempts += 1;
          try {
            request.expect?.check?.(response);
            return await Promise.resolve(response);
          } catch (error) {
            if (attempts === bodies.length) throw error;
          }
        }
      },
    });
    const read = (content: unknown): number => {
      const { n } = content as { n: number };
      if (n === 1) throw new RangeError('not this one');
      return n;
    };
    expect(await client.get(TIME.fapi, read)).toBe(2);
    expect(attempts).toBe(3);
  });
});

describe('a request', () => {
  it('takes its permits, has an end to its body, and is for its priority', async () => {
    const { client, asked } = clientOf(() => json('[]'), { priority: 'high' });
    await client.get({ ...TIME.fapi, bucket: 'futuresData', weight: 20 }, same);
    expect(asked[0]).toMatchObject({
      bucket: 'futuresData',
      weight: 20,
      priority: 'high',
      maxBytes: 67_108_864,
    });
  });

  it('has its parameters percent-encoded', async () => {
    const { client, asked } = clientOf(() => json('[]'));
    const query = { symbol: '币安人生USDT', startTime: 1_790_000_000_000, odd: 'a&b=c d/é' };
    await client.get({ ...TIME.fapi, query }, same);
    expect(asked[0]?.url).toBe(
      'https://fapi.test/fapi/v1/time?symbol=%E5%B8%81%E5%AE%89%E4%BA%BA%E7%94%9FUSDT&startTime=1790000000000&odd=a%26b%3Dc%20d%2F%C3%A9',
    );
    expect(new URL(asked[0]?.url ?? '').searchParams.get('symbol')).toBe('币安人生USDT');
  });

  it('has no question mark without parameters', async () => {
    const { client, asked } = clientOf(() => json('{}'));
    await client.get(TIME.spot, same);
    expect(asked[0]?.url).toBe('https://spot.test/api/v3/time');
  });
});

describe('exchangeInfo', () => {
  const venue = new RestVenue({
    now: () => NOW,
    symbols: [
      { symbol: 'BTCUSDT', host: 'fapi' },
      { symbol: '币安人生USDT', host: 'fapi', status: 'SETTLING' },
      { symbol: 'ETHUSD_PERP', host: 'dapi', status: 'DELIVERING', contractType: 'PERPETUAL DELIVERING' },
      { symbol: 'ETHBTC', host: 'spot', status: 'BREAK' },
    ],
    budgetFactor: 0.5,
  });

  it('has the symbols of each host, and its limit', async () => {
    const { client } = clientOf(sayOf(venue));
    const spotLimit = { limit: 3000, windowMs: 60_000 };
    const futuresLimit = { limit: 1200, windowMs: 60_000 };
    expect(await exchangeInfo(client, 'um')).toEqual({
      symbols: [
        { symbol: 'BTCUSDT', status: 'TRADING', contractType: 'PERPETUAL' },
        { symbol: '币安人生USDT', status: 'SETTLING', contractType: 'PERPETUAL' },
      ],
      weight: futuresLimit,
    });
    expect(await exchangeInfo(client, 'cm')).toEqual({
      symbols: [{ symbol: 'ETHUSD_PERP', status: 'DELIVERING', contractType: 'PERPETUAL DELIVERING' }],
      weight: futuresLimit,
    });
    expect(await exchangeInfo(client, 'spot')).toEqual({
      symbols: [{ symbol: 'ETHBTC', status: 'BREAK', contractType: '' }],
      weight: spotLimit,
    });
    expect(['spot', 'um', 'cm'].map((market) => weightBucket(market as 'spot'))).toEqual([
      'spot',
      'futures',
      'futures',
    ]);
  });

  it('of options is not asked for', async () => {
    const { client, asked } = clientOf(sayOf(venue));
    expect((await refusal(exchangeInfo(client, 'option'))).code).toBe('bug');
    expect(asked).toEqual([]);
  });

  it.each<[string, unknown]>([
    ['a list', []],
    ['nothing', null],
    ['no symbols', {}],
    ['symbols in an object', { symbols: { BTCUSDT: {} } }],
    ['a symbol that is none', { symbols: [7] }],
    ['a symbol without a name', { symbols: [{ symbol: '', status: 'TRADING' }] }],
  ])('that is %s is malformed', (_, content) => {
    expect(() => readExchangeInfo(content)).toThrowError(
      expect.objectContaining({ code: 'answer-malformed' }) as Error,
    );
  });

  it('may have unknown statuses and limits', () => {
    const limits = (...rateLimits: object[]) => readExchangeInfo({ symbols: [], rateLimits }).weight;
    const weight = { rateLimitType: 'REQUEST_WEIGHT', interval: 'MINUTE', intervalNum: 1, limit: 2400 };
    expect(limits({}, { ...weight, rateLimitType: 'ORDERS' }, weight)).toEqual({
      limit: 2400,
      windowMs: 60_000,
    });
    expect(limits({ ...weight, interval: 'SECOND', intervalNum: 10 })).toEqual({
      limit: 2400,
      windowMs: 10_000,
    });
    expect(limits({ ...weight, interval: 'WEEK' })).toBeUndefined();
    expect(limits({ ...weight, limit: '2400' })).toBeUndefined();
    expect(limits({ ...weight, limit: 0 })).toBeUndefined();
    expect(readExchangeInfo({ symbols: [{ symbol: 'A', status: 7 }] })).toEqual({
      symbols: [{ symbol: 'A', status: '', contractType: '' }],
      weight: undefined,
    });
  });
});
