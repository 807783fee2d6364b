/** The traps of the fake exchange, so that a client that passes it has met them. */
import { afterEach, describe, expect, it } from 'vitest';
import { apiError, html403, serverError, tooMany } from '../helpers/rest-venue-answers.js';
import { aggTrade, aggTrades, kline } from '../helpers/rest-venue-market.js';
import { fundingEvents, statistic } from '../helpers/rest-venue-rows.js';
import { serveVenue } from '../helpers/rest-venue-server.js';
import type { ServedVenue } from '../helpers/rest-venue-server.js';
import { RestVenue } from '../helpers/rest-venue.js';
import type { RestVenueOptions } from '../helpers/rest-venue.js';
import type { Host, VenueAnswer, VenueSymbol } from '../helpers/rest-venue-types.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** On a border of all windows and candles, months and weeks aside. */
const NOON = Date.UTC(2026, 9, 7, 12);

const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const LIFE: VenueSymbol = { symbol: '币安人生USDT', host: 'fapi', fundingHours: 4 };
const GOLD: VenueSymbol = { symbol: 'XAUUSDT', host: 'fapi', contractType: 'TRADIFI_PERPETUAL' };
const QUARTER: VenueSymbol = { symbol: 'BTCUSDT_261225', host: 'fapi', contractType: 'CURRENT_QUARTER' };
const GONE: VenueSymbol = { symbol: 'LUNAUSDT', host: 'fapi', to: NOON - DAY };
const COIN: VenueSymbol = { symbol: 'BTCUSD_PERP', host: 'dapi' };
const ODD: VenueSymbol = { symbol: 'ETHUSD_PERP', host: 'dapi', contractType: 'PERPETUAL DELIVERING' };
const SPOT: VenueSymbol = { symbol: 'BTCUSDT', host: 'spot' };
const SYMBOLS = [BTC, LIFE, GOLD, QUARTER, GONE, COIN, ODD, SPOT];

type Parameters = Readonly<Record<string, string | number>>;

function scene(options: Partial<RestVenueOptions> = {}) {
  const clock = { now: NOON };
  const venue = new RestVenue({ now: () => clock.now, symbols: SYMBOLS, ...options });
  const ask = (host: Host, path: string, parameters: Parameters = {}): VenueAnswer =>
    venue.answer(host, path, new URLSearchParams({ ...parameters } as Record<string, string>));
  const rows = <Row = Readonly<Record<string, unknown>>>(
    host: Host,
    path: string,
    parameters: Parameters,
  ): Row[] => {
    const { status, body } = ask(host, path, parameters);
    if (status !== 200) throw new Error(`${status}: ${body}`);
    return JSON.parse(body) as Row[];
  };
  const refusal = (host: Host, path: string, parameters: Parameters): unknown => {
    const { status, body } = ask(host, path, parameters);
    return { status, ...(JSON.parse(body) as object) };
  };
  return { clock, venue, ask, rows, refusal };
}

const INTEREST = '/futures/data/openInterestHist';
const five = { symbol: 'BTCUSDT', period: '5m' };
const timesOf = (rows: readonly Readonly<Record<string, unknown>>[]): number[] =>
  rows.map((row) => Number(row['timestamp']));

describe('statistics', () => {
  const { clock, ask, rows, refusal } = scene();

  it('answer a start without an end with the newest rows', () => {
    const times = timesOf(rows('fapi', INTEREST, { ...five, startTime: NOON - 20 * DAY }));
    expect([times.length, times.at(-1)]).toEqual([30, NOON - 5 * MINUTE]);
  });

  it('have a point six seconds after its label', () => {
    const newest = (): number | undefined => timesOf(rows('fapi', INTEREST, five)).at(-1);
    clock.now = NOON + 5999;
    expect(newest()).toBe(NOON - 5 * MINUTE);
    clock.now = NOON + 6000;
    expect(newest()).toBe(NOON);
    clock.now = NOON;
  });

  it('are cut at the older end, and have both ends: 501 rows in 500 periods, and in no other case', () => {
    const asked = (periods: number, limit: number): number[] => {
      const startTime = NOON - DAY * 5;
      const endTime = startTime + periods * 5 * MINUTE;
      const times = timesOf(rows('fapi', INTEREST, { ...five, startTime, endTime, limit }));
      expect(times).toEqual(times.map((_, at) => endTime - (times.length - 1 - at) * 5 * MINUTE));
      return times;
    };
    expect([499, 500, 501].map((periods) => asked(periods, 500).length)).toEqual([500, 501, 500]);
    expect(asked(499, 499)).toHaveLength(499);
    expect(asked(30, 30)).toHaveLength(30);
  });

  it('end at a wall of 30 days, whichever time is behind it', () => {
    const at = (startTime: number, endTime: number) => ({ ...five, startTime, endTime });
    expect(rows('fapi', INTEREST, at(NOON - 30 * DAY, NOON - 30 * DAY + HOUR))).toHaveLength(13);
    const wall = (name: string) => ({ status: 400, code: -1130, msg: `parameter '${name}' is invalid.` });
    expect(refusal('fapi', INTEREST, at(NOON - 30 * DAY - 1, NOON))).toEqual(wall('startTime'));
    expect(refusal('fapi', INTEREST, { ...five, endTime: NOON - 31 * DAY })).toEqual(wall('endTime'));
    expect(rows('fapi', INTEREST, { ...five, period: '1d', limit: 500 })).toHaveLength(30);
  });

  it('refuse unknown requests', () => {
    expect(refusal('fapi', INTEREST, { ...five, period: '1m' })).toMatchObject({ code: -1130 });
    expect(refusal('fapi', INTEREST, { ...five, limit: 501 })).toMatchObject({ code: -1130 });
    expect(refusal('fapi', INTEREST, { ...five, symbol: 'NOUSDT' })).toMatchObject({ code: -1121 });
    const gold = { pair: 'XAUUSDT', contractType: 'PERPETUAL', period: '5m' };
    expect(refusal('fapi', '/futures/data/basis', gold)).toMatchObject({ code: -4104 });
    expect(refusal('dapi', INTEREST, { symbol: 'BTCUSD', period: '5m' })).toMatchObject({ code: -1102 });
    expect(ask('dapi', '/futures/data/takerlongshortRatio', five).status).toBe(404);
    expect(ask('spot', INTEREST, five).status).toBe(404);
  });

  it('have the rows that the generator tells, in any order of keys, with some times as text', () => {
    const { body } = ask('fapi', INTEREST, { ...five, limit: 500 });
    const found = JSON.parse(body) as Record<string, unknown>[];
    expect(found.map((row) => ({ ...row, timestamp: String(row['timestamp']) }))).toEqual(
      timesOf(found).map((at) => statistic('openInterestHist', BTC, at)),
    );
    expect(new Set(found.map((row) => Object.keys(row).join(','))).size).toBeGreaterThan(5);
    expect(new Set(found.map((row) => typeof row['timestamp']))).toEqual(new Set(['number', 'string']));
    expect(new Set(found.map((row) => row['sumOpenInterest'])).size).toBe(500);
  });

  it('of COIN-M are of pairs and contracts, under other names', () => {
    const coins = { pair: 'BTCUSD', contractType: 'ALL', period: '5m', limit: 1 };
    const [row] = rows('dapi', '/futures/data/takerBuySellVol', coins);
    const told = statistic('takerBuySellVol', { ...COIN, contractType: 'ALL' }, NOON - 5 * MINUTE);
    expect({ ...row, timestamp: String(row?.['timestamp']) }).toEqual(told);
    const [ratio] = rows('dapi', '/futures/data/topLongShortPositionRatio', coins);
    expect(Object.keys(ratio ?? {})).toEqual(expect.arrayContaining(['pair', 'longPosition']));
    const odd = { ...coins, pair: 'ETHUSD', contractType: 'PERPETUAL' };
    expect(rows('dapi', '/futures/data/basis', odd)[0]).toMatchObject({ annualizedBasisRate: '' });
    expect(rows('dapi', INTEREST, { ...coins, contractType: 'NEXT_QUARTER' })).toEqual([]);
  });

  it('of delisted symbols end', () => {
    expect(timesOf(rows('fapi', INTEREST, { ...five, symbol: 'LUNAUSDT' })).at(-1)).toBe(
      NOON - DAY - 5 * MINUTE,
    );
  });
});

describe('fundings', () => {
  const FUNDING = '/fapi/v1/fundingRate';
  const from = Date.UTC(2022, 0, 1);

  it.each([500, 1000] as const)('come in pages of %i at most, from the start on', (fundingPage) => {
    const { rows } = scene({ fundingPage });
    const page = rows('fapi', FUNDING, { symbol: 'BTCUSDT', startTime: from, limit: 1000 });
    expect(page).toHaveLength(fundingPage);
    const told = fundingEvents(BTC, from, NOON, fundingPage).map((event) => ({
      symbol: 'BTCUSDT',
      ...event,
    }));
    expect(page).toEqual(told);
  });

  it('are a few milliseconds late, both ends inclusive, without mark prices at first', () => {
    const { rows } = scene();
    const all = fundingEvents(LIFE, from, from + 100 * DAY);
    const late = all.map(({ fundingTime }) => fundingTime % (4 * HOUR));
    expect([Math.min(...late), Math.max(...late)]).toEqual([0, 47]);
    const startTime = all[3]?.fundingTime ?? 0;
    const endTime = all[5]?.fundingTime ?? 0;
    expect(rows('fapi', FUNDING, { symbol: LIFE.symbol, startTime, endTime })).toHaveLength(3);
    const border = Date.UTC(2023, 9, 31, 8);
    const around = fundingEvents(BTC, border - 9 * HOUR, border + HOUR);
    expect(around.map(({ markPrice }) => markPrice === '')).toEqual([true, false]);
  });

  it('are the newest hundred by default, and none for a contract with a day of delivery', () => {
    const { rows } = scene();
    const page = rows('fapi', FUNDING, { symbol: 'BTCUSDT' });
    expect([page.length, Math.floor(Number(page.at(-1)?.['fundingTime']) / HOUR)]).toEqual([
      100,
      (NOON - 4 * HOUR) / HOUR,
    ]);
    expect(rows('fapi', FUNDING, { symbol: 'BTCUSDT_261225' })).toEqual([]);
  });
});

describe('klines', () => {
  const hours = { interval: '1h', startTime: NOON - 100 * HOUR, endTime: NOON - HOUR, limit: 10 };
  const opensOf = (rows: readonly (readonly unknown[])[]): unknown[] => rows.map((row) => row[0]);

  it('start at the start on USD-M and spot, and end at the end on COIN-M', () => {
    const { rows } = scene();
    for (const [host, path] of [
      ['fapi', '/fapi/v1'],
      ['spot', '/api/v3'],
    ] as const) {
      const page = rows<unknown[]>(host, `${path}/klines`, { ...hours, symbol: 'BTCUSDT' });
      expect([page.length, page[0]?.[0]]).toEqual([10, NOON - 100 * HOUR]);
    }
    const page = rows<unknown[]>('dapi', '/dapi/v1/klines', { ...hours, symbol: 'BTCUSD_PERP' });
    expect([page.length, page.at(-1)?.[0]]).toEqual([10, NOON - HOUR]);
  });

  it('of COIN-M span 200 days at most, also where one end is missing', () => {
    const { rows, refusal } = scene();
    const days = { symbol: 'BTCUSD_PERP', interval: '1d', limit: 1500 };
    const startTime = NOON - 300 * DAY;
    const far = { ...days, startTime, endTime: startTime + 200 * DAY + 1 };
    expect(refusal('dapi', '/dapi/v1/klines', far)).toMatchObject({ status: 400, code: -4088 });
    expect(rows('dapi', '/dapi/v1/klines', { ...days, startTime })).toHaveLength(200);
    expect(rows('dapi', '/dapi/v1/klines', { ...days, endTime: NOON })).toHaveLength(200);
  });

  it('end with the open candle, whose values do not last', () => {
    const { clock, rows } = scene();
    clock.now = NOON + 10 * MINUTE;
    const page = rows<(number | string)[]>('fapi', '/fapi/v1/klines', {
      symbol: 'BTCUSDT',
      interval: '1h',
      limit: 2,
    });
    expect(opensOf(page)).toEqual([NOON - HOUR, NOON]);
    expect(page[0]?.map(String)).toEqual(kline(BTC, '1h', NOON - HOUR));
    expect(page[1]?.map(String)).not.toEqual(kline(BTC, '1h', NOON));
    expect(page[1]?.map((value) => typeof value === 'number')).toEqual(
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map((at) => [0, 6, 8].includes(at)),
    );
  });

  it('know months, weeks from Monday and, on spot only, seconds', () => {
    const { rows, refusal } = scene();
    const of = (interval: string) => ({ symbol: 'BTCUSDT', interval, limit: 2 });
    const months = rows<unknown[]>('spot', '/api/v3/klines', of('1M'));
    expect(opensOf(months)).toEqual([Date.UTC(2026, 8), Date.UTC(2026, 9)]);
    const weeks = rows<unknown[]>('spot', '/api/v3/klines', of('1w'));
    expect(opensOf(weeks)).toEqual([Date.UTC(2026, 8, 28), Date.UTC(2026, 9, 5)]);
    expect(rows('spot', '/api/v3/klines', of('1s'))).toHaveLength(2);
    expect(refusal('fapi', '/fapi/v1/klines', of('1s'))).toMatchObject({ status: 400, code: -1120 });
    const start = { ...of('1M'), startTime: Date.UTC(2026, 1, 2) };
    expect(opensOf(rows('fapi', '/fapi/v1/klines', start))).toEqual([Date.UTC(2026, 2), Date.UTC(2026, 3)]);
  });
});

describe('aggregate trades', () => {
  const FUTURES = '/fapi/v1/aggTrades';
  type Row = ReturnType<typeof aggTrade>;

  it('have numbers and trades without a hole, some at the same instant', () => {
    const all = [...aggTrades(SPOT, NOON - HOUR, NOON)];
    const first = all[0]?.a ?? 0;
    expect(all.map(({ a }) => a)).toEqual(all.map((_, at) => first + at));
    const pairs = all.slice(1).map((trade, at) => [all[at], trade] as const);
    expect(pairs.every(([left, right]) => right.f === (left?.l ?? 0) + 1 && right.T >= (left?.T ?? 0))).toBe(
      true,
    );
    expect(pairs.some(([left, right]) => right.T === left?.T)).toBe(true);
    expect([all.length > 700, (all.at(-1)?.T ?? 0) <= NOON]).toEqual([true, true]);
  });

  it('are found by time and by number, and up to now only', () => {
    const { rows } = scene();
    const window = { symbol: 'BTCUSDT', startTime: NOON - HOUR, endTime: NOON, limit: 1000 };
    const told = [...aggTrades(SPOT, NOON - HOUR, NOON)];
    expect(rows<Row>('spot', '/api/v3/aggTrades', window)).toEqual(told);
    const from = { symbol: 'BTCUSDT', fromId: told[10]?.a ?? 0, limit: 5 };
    expect(rows<Row>('spot', '/api/v3/aggTrades', from)).toEqual(told.slice(10, 15));
    expect(rows<Row>('spot', '/api/v3/aggTrades', { symbol: 'BTCUSDT', limit: 3 })).toEqual(told.slice(-3));
    const behind = { symbol: 'BTCUSDT', fromId: (told.at(-1)?.a ?? 0) + 1 };
    expect(rows<Row>('spot', '/api/v3/aggTrades', behind)).toEqual([]);
    expect(rows<Row>('spot', '/api/v3/aggTrades', { symbol: 'BTCUSDT', fromId: 0 })[0]?.a).toBe(1);
  });

  it('of futures reach back 48 hours, by time and by number', () => {
    const { rows, refusal } = scene();
    const wall = NOON - 2 * DAY;
    const at = (startTime: number) => ({ symbol: 'BTCUSDT', startTime });
    expect(rows('fapi', FUTURES, at(wall))).toHaveLength(500);
    const old = { status: 400, code: -4166 };
    expect(refusal('fapi', FUTURES, at(wall - 1))).toMatchObject(old);
    const [first] = aggTrades(BTC, wall, wall + MINUTE);
    const from = (fromId: number) => ({ symbol: 'BTCUSDT', fromId });
    expect(rows('fapi', FUTURES, from(first?.a ?? 0))).toHaveLength(500);
    expect(refusal('fapi', FUTURES, from((first?.a ?? 0) - 2))).toMatchObject(old);
    expect(rows('spot', '/api/v3/aggTrades', at(NOON - 900 * DAY))).toHaveLength(500);
  });
});

describe('budgets', () => {
  const klines = (limit?: number): Parameters => ({
    symbol: 'BTCUSDT',
    interval: '1h',
    ...(limit === undefined ? {} : { limit }),
  });

  it('weigh klines by limits that are inclusive at the top, refused or not, and say so', () => {
    const { venue, ask } = scene();
    const weights = [99, 100, 101, 500, 501, 1000, 1001, 1500, undefined, 1501].map((limit) => {
      const before = venue.counted('futures-weight');
      const { headers } = ask('fapi', '/fapi/v1/klines', klines(limit));
      expect(headers['x-mbx-used-weight-1m']).toBe(String(venue.counted('futures-weight')));
      return venue.counted('futures-weight') - before;
    });
    expect(weights).toEqual([1, 1, 2, 2, 5, 5, 10, 10, 5, 10]);
  });

  it('are one pool for both futures hosts, which starts again in each minute of the clock', () => {
    const { clock, venue, ask } = scene();
    clock.now = NOON + 59_000;
    for (let times = 0; times < 60; times += 1) ask('fapi', '/fapi/v1/aggTrades', { symbol: 'BTCUSDT' });
    for (let times = 0; times < 60; times += 1) ask('dapi', '/dapi/v1/aggTrades', { symbol: 'BTCUSD_PERP' });
    expect([venue.counted('futures-weight'), venue.refused]).toEqual([2400, 0]);
    const { status, headers, body } = ask('fapi', '/fapi/v1/ping');
    expect([status, headers['retry-after'], headers['x-mbx-used-weight-1m']]).toEqual([
      429,
      undefined,
      '2401',
    ]);
    expect(body).toContain('-1003');
    expect(ask('spot', '/api/v3/ping').status).toBe(200);
    clock.now = NOON + 60_000;
    expect(ask('dapi', '/dapi/v1/ping').headers['x-mbx-used-weight-1m']).toBe('1');
    expect([venue.mostCounted('futures-weight'), venue.refused]).toEqual([2401, 1]);
  });

  it('of statistics and fundings are apart, shared, and told by no header', () => {
    const { venue, ask } = scene({ budgetFactor: 0.01 });
    const coins = { pair: 'BTCUSD', contractType: 'ALL', period: '5m' };
    const answers = [
      ...Array.from({ length: 6 }, () => ask('fapi', INTEREST, five)),
      ...Array.from({ length: 5 }, () => ask('dapi', INTEREST, coins)),
    ];
    expect(answers.map(({ status }) => status)).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    const fundings = [
      ask('fapi', '/fapi/v1/fundingRate', { symbol: 'BTCUSDT' }),
      ask('fapi', '/fapi/v1/fundingInfo'),
      ask('dapi', '/dapi/v1/fundingRate', { symbol: 'BTCUSD_PERP' }),
    ];
    const names = new Set([...answers, ...fundings].flatMap(({ headers }) => Object.keys(headers)));
    expect(names).toEqual(new Set(['date', 'content-type']));
    expect([venue.counted('funding'), venue.counted('futures-weight')]).toEqual([3, 0]);
    expect([venue.limit('statistics'), venue.limit('funding')]).toEqual([10, 5]);
  });

  it('ban both futures hosts when six more requests follow a 429, and longer each time', () => {
    const { clock, venue, ask } = scene({ budgetFactor: 0.001 });
    const ping = (host: 'fapi' | 'dapi' = 'fapi') => ask(host, `/${host}/v1/ping`);
    const statuses = Array.from({ length: 9 }, () => ping().status);
    expect(statuses).toEqual([200, 200, 429, 429, 429, 429, 429, 429, 418]);
    expect(ping('dapi').body).toContain(`banned until ${NOON + 120_000}.`);
    expect(ask('dapi', INTEREST).status).toBe(418);
    expect(ask('spot', '/api/v3/ping').status).toBe(200);
    clock.now += 120_000;
    for (let times = 0; times < 9; times += 1) ping('dapi');
    expect(ping().body).toContain(`banned until ${clock.now + 240_000}.`);
    expect([venue.refused, venue.banned]).toEqual([12, 5]);
  });

  it('of spot say when to come again', () => {
    const { clock, ask } = scene({ budgetFactor: 0.001 });
    clock.now = NOON + 48_500;
    ask('spot', '/api/v3/aggTrades', { symbol: 'BTCUSDT' });
    const { status, headers } = ask('spot', '/api/v3/aggTrades', { symbol: 'BTCUSDT' });
    expect([status, headers['retry-after'], headers['x-mbx-used-weight-1m']]).toEqual([429, '12', '8']);
    for (let times = 0; times < 5; times += 1) ask('spot', '/api/v3/ping');
    expect(ask('spot', '/api/v3/ping')).toMatchObject({ status: 418, headers: { 'retry-after': '120' } });
  });

  it('do not end a ban that a test has set', () => {
    const { clock, venue, ask } = scene();
    venue.ban(1000);
    expect(ask('dapi', '/dapi/v1/ping').status).toBe(418);
    clock.now += 1000;
    expect(ask('dapi', '/dapi/v1/ping').status).toBe(200);
    venue.scaleBudgets(1 / 2400);
    expect(ask('dapi', '/dapi/v1/ping').status).toBe(429);
  });
});

describe('exchangeInfo', () => {
  interface Info {
    readonly rateLimits: readonly { readonly rateLimitType: string; readonly limit: number }[];
    readonly symbols: readonly Readonly<Record<string, unknown>>[];
  }
  const { ask } = scene({ budgetFactor: 0.5 });
  const infoOf = (host: Host, path: string): Info => JSON.parse(ask(host, path).body) as Info;

  it('has the limits of now, and the listed symbols with the names of its host', () => {
    const futures = infoOf('fapi', '/fapi/v1/exchangeInfo');
    expect(futures.rateLimits[0]).toMatchObject({ rateLimitType: 'REQUEST_WEIGHT', limit: 1200 });
    expect(futures.symbols.map(({ symbol }) => symbol)).toEqual(
      [BTC, LIFE, GOLD, QUARTER].map(({ symbol }) => symbol),
    );
    expect(futures.symbols[3]).toMatchObject({ pair: 'BTCUSDT', deliveryDate: Date.UTC(2026, 11, 25, 8) });
    const [, odd] = infoOf('dapi', '/dapi/v1/exchangeInfo').symbols;
    expect(odd).toMatchObject({
      contractStatus: 'TRADING',
      contractType: 'PERPETUAL DELIVERING',
      pair: 'ETHUSD',
    });
    expect(odd).not.toHaveProperty('status');
    expect(infoOf('spot', '/api/v3/exchangeInfo').symbols[0]).not.toHaveProperty('contractType');
  });

  it('does not know everything of fundings', () => {
    const rows = JSON.parse(ask('fapi', '/fapi/v1/fundingInfo').body) as Record<string, unknown>[];
    expect(rows).toContainEqual(expect.objectContaining({ symbol: LIFE.symbol, fundingIntervalHours: 4 }));
    expect(rows.length).toBeLessThan(SYMBOLS.length);
  });
});

describe('disturbances', () => {
  it('come before everything else, are written down, and have the date of the venue', () => {
    const { venue, ask } = scene({
      restricted: ['spot'],
      disturb: ({ number }) =>
        [html403(), serverError(503), apiError(-1122, 'Invalid symbol status.'), tooMany()][number - 1],
    });
    const answers = Array.from({ length: 5 }, () => ask('fapi', '/fapi/v1/ping'));
    expect(answers.map(({ status }) => status)).toEqual([403, 503, 400, 429, 200]);
    expect(answers.map(({ headers }) => headers['date'])).toEqual(
      Array.from({ length: 5 }, () => 'Wed, 07 Oct 2026 12:00:00 GMT'),
    );
    expect([ask('spot', '/api/v3/ping').status, ask('fapi', '/fapi/v2/ping').status]).toEqual([451, 404]);
    expect([venue.log.length, venue.refused, venue.counted('futures-weight')]).toEqual([7, 1, 1]);
  });
});

describe('over sockets', () => {
  let served: ServedVenue | undefined;
  afterEach(async () => {
    await served?.close();
    served = undefined;
  });

  it('answers the same, in three places, for symbols of any script', async () => {
    const { venue } = scene();
    served = await serveVenue(venue);
    const query = `symbol=${encodeURIComponent(LIFE.symbol)}&period=5m&limit=1`;
    const response = await fetch(`${served.urlOf('fapi')}${INTEREST}?${query}`);
    expect(response.headers.get('date')).toBe('Wed, 07 Oct 2026 12:00:00 GMT');
    expect(await response.json()).toMatchObject([{ symbol: LIFE.symbol }]);
    expect((await fetch(`${served.urlOf('dapi')}/fapi/v1/ping`)).status).toBe(404);
    expect(await (await fetch(`${served.urlOf('spot')}/api/v3/time`)).json()).toEqual({ serverTime: NOON });
  });

  it('cuts an answer short, or lets it hang', async () => {
    const cuts = ['truncate', 'stall'] as const;
    const made = scene({
      disturb: (asked) => {
        const cut = cuts[asked.number - 1];
        return cut === undefined ? undefined : { ...made.venue.usual(asked), cut };
      },
    });
    served = await serveVenue(made.venue);
    const url = `${served.urlOf('fapi')}/fapi/v1/exchangeInfo`;
    await expect((await fetch(url)).text()).rejects.toThrow('terminated');
    const stalled = await fetch(url, { signal: AbortSignal.timeout(200) });
    await expect(stalled.text()).rejects.toThrow('timeout');
    expect((await fetch(url)).headers.get('x-mbx-used-weight-1m')).toBe('3');
  });
});
