import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RestRow, TimeSpan } from '../../../src/exchange/rest-rows.js';
import { seriesPages } from '../../../src/exchange/binance/series-pages.js';
import { SpanRows } from '../../../src/exchange/rest-rows.js';
import type { Series } from '../../../src/model/task.js';
import type { RouteSpec } from '../../../src/exchange/facts.js';
import { clientOf, sayOf } from '../../helpers/rest-client.js';
import { allPages, routeOf } from '../../helpers/rest-rows.js';
import { fundingEvents } from '../../helpers/rest-venue-rows.js';
import type { VenueSymbol } from '../../helpers/rest-venue-types.js';
import { RestVenue } from '../../helpers/rest-venue.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const BASE = Date.UTC(2026, 8, 1);

const FUNDING = routeOf('um', 'fundingRate');
const SERIES: Series = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' };

/** A host that has these settlements, and answers with so many of them at once. */
function hostOf(times: readonly number[], cap = 1000) {
  return clientOf(({ searchParams }) => {
    const start = Number(searchParams.get('startTime'));
    const end = Number(searchParams.get('endTime'));
    const page = times.filter((at) => at >= start && at <= end).slice(0, cap);
    return { status: 200, body: JSON.stringify(page.map((fundingTime) => ({ fundingTime }))) };
  });
}

async function rowsOf(
  times: readonly number[],
  span: TimeSpan,
  cap?: number,
): Promise<[at: number, hours: unknown][]> {
  const pages = await allPages(seriesPages(hostOf(times, cap).client, FUNDING, SERIES, span));
  return pages.flatMap(({ rows }) =>
    rows.map(({ atMs, cells }): [number, unknown] => [atMs, cells['intervalHours']]),
  );
}

/** Settlements at these hours after the base, each some milliseconds late. */
const settlements = (...hours: readonly number[]): number[] =>
  hours.map((hour, index) => BASE + hour * HOUR + ((index * 13) % 48));

const hoursOf = (rows: readonly [number, unknown][]): unknown[] => rows.map(([, hours]) => hours);

describe('funding intervals', () => {
  const day: TimeSpan = { fromMs: BASE, toMs: BASE + DAY };

  it.each<[string, readonly number[], readonly number[]]>([
    ['8 hours', [-24, -16, -8, 0, 8, 16, 24], [8, 8, 8]],
    ['4 hours', [-8, -4, 0, 4, 8, 12, 16, 20, 24], [4, 4, 4, 4, 4, 4]],
    ['one hour', [-1, 0, 1, 2, 3], [1, 1, 1, 1]],
    ['a change from 8 to 4', [-8, 0, 8, 12, 16, 20, 24], [8, 8, 4, 4, 4]],
    ['a change from 4 to 8', [-4, 0, 4, 8, 16, 24], [4, 4, 4, 8]],
    ['the very first settlement, every 4 hours', [8, 12, 16], [4, 4, 4]],
    ['the very first settlement, at the end of the day', [20, 24], [4]],
    ['the very first settlement, with nothing behind it', [16], [8]],
    ['one that is missing, of 8 hours', [-8, 0, 16, 24], [8, 8]],
    ['some that are missing, of 4 hours', [-4, 0, 12, 16], [4, 4, 4]],
    ['some that are missing, at the end of the day', [-4, 0, 20, 24], [4, 4]],
    ['a day that is missing', [-32, 0, 4, 8], [4, 4, 4]],
  ])('of %s', async (_, hours, intervals) => {
    expect(hoursOf(await rowsOf(settlements(...hours), day))).toEqual(intervals);
  });

  it('do not change the times, and leave out rows outside the span', async () => {
    const times = settlements(-8, 0, 8, 16, 24);
    expect((await rowsOf(times, day)).map(([at]) => at)).toEqual(times.slice(1, 4));
  });

  it('keep the rows of the host', async () => {
    const row = { fundingRate: '-0.5', fundingTime: `${BASE}`, symbol: 'BTCUSDT' };
    let answers = 0;
    const { client } = clientOf(() => ({
      status: 200,
      body: (answers += 1) === 1 ? JSON.stringify([row]) : '[]',
    }));
    const pages = await allPages(seriesPages(client, FUNDING, SERIES, day));
    expect(pages.flatMap(({ rows }) => rows)).toEqual([
      { atMs: BASE, id: 0, cells: { ...row, intervalHours: 8 } },
    ]);
  });

  it('are the same however long the span is that a day is part of, and whatever the pages are', async () => {
    const scene = fc.record({
      delays: fc.array(fc.oneof(fc.constantFrom(1, 2, 4, 8), fc.integer({ min: 1, max: 40 })), {
        minLength: 1,
        maxLength: 50,
      }),
      lateMs: fc.nat(47),
      start: fc.integer({ min: 0, max: 60 }),
      asked: fc.tuple(fc.nat(3), fc.nat(3)),
      day: fc.nat(6),
      caps: fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })),
    });
    await fc.assert(
      fc.asyncProperty(scene, async ({ delays, lateMs, start, asked, day: number, caps }) => {
        let hour = start;
        const times = delays.map((delay, index) => BASE + (hour += delay) * HOUR + (index % 2) * lateMs);
        const alone: TimeSpan = { fromMs: BASE + number * DAY, toMs: BASE + (number + 1) * DAY };
        const longer: TimeSpan = { fromMs: alone.fromMs - asked[0] * DAY, toMs: alone.toMs + asked[1] * DAY };
        const isOfDay = ([at]: [number, unknown]): boolean => at >= alone.fromMs && at < alone.toMs;
        const found = await rowsOf(times, alone, caps[0]);
        expect(found.map(([at]) => at)).toEqual(times.filter((at) => at >= alone.fromMs && at < alone.toMs));
        expect((await rowsOf(times, longer, caps[1])).filter(isOfDay)).toEqual(found);
      }),
    );
  });

  it('cost no extra request, unless the span ends with the last available row', async () => {
    const times = settlements(...Array.from({ length: 40 }, (_, index) => index * 8 - 80));
    const requestsFor = async (span: TimeSpan): Promise<number> => {
      const { client, asked } = hostOf(times);
      const rows = new SpanRows(seriesPages(client, FUNDING, SERIES, span), span.fromMs);
      const { rows: found } = await rows.take(span);
      expect(found).toHaveLength(times.filter((at) => at >= span.fromMs && at < span.toMs).length);
      return asked.length;
    };
    expect(await requestsFor({ fromMs: BASE, toMs: BASE + DAY })).toBe(1);
    expect(await requestsFor({ fromMs: BASE, toMs: BASE + 90 * DAY })).toBe(2);
  });
});

describe('a series', () => {
  const NOW = Date.UTC(2026, 9, 7, 12);
  const LIFE: VenueSymbol = { symbol: '币安人生USDT', host: 'fapi', fundingHours: 4, from: BASE + 8 * HOUR };
  const COIN: VenueSymbol = { symbol: 'BTCUSD_PERP', host: 'dapi' };
  const SPOT: VenueSymbol = { symbol: 'BTCUSDT', host: 'spot' };
  const venue = new RestVenue({ now: () => NOW, symbols: [LIFE, COIN, SPOT], fundingPage: 500 });

  const found = async (
    route: RouteSpec,
    series: Series,
    span: TimeSpan,
  ): Promise<{ rows: RestRow[]; asked: string[] }> => {
    const { client, asked } = clientOf(sayOf(venue));
    const pages = await allPages(seriesPages(client, route, series, span));
    return { rows: pages.flatMap(({ rows }) => rows), asked: asked.map(({ url }) => url) };
  };

  it('of fundings comes whole, from its first settlement on', async () => {
    const series = { ...SERIES, symbol: LIFE.symbol };
    const { rows } = await found(FUNDING, series, { fromMs: BASE, toMs: BASE + 30 * DAY });
    const expected = fundingEvents(LIFE, BASE, BASE + 30 * DAY - 1);
    expect(rows.map(({ atMs, cells }) => [atMs, cells['fundingRate'], cells['intervalHours']])).toEqual(
      expected.map(({ fundingTime, fundingRate }) => [fundingTime, fundingRate, 4]),
    );
  });

  it('of three years of fundings is complete, though its pages have half of their limit', async () => {
    const { rows, asked } = await found(
      routeOf('cm', 'fundingRate'),
      { market: 'cm', dataset: 'fundingRate', symbol: 'BTCUSD_PERP' },
      { fromMs: Date.UTC(2022, 0, 1), toMs: Date.UTC(2025, 0, 1) },
    );
    expect(rows).toHaveLength(1096 * 3);
    expect(rows.every(({ cells }) => cells['intervalHours'] === 8)).toBe(true);
    expect(asked).toHaveLength(8);
  });

  it('of a statistic is requested in windows of a page', async () => {
    const series: Series = {
      market: 'cm',
      dataset: 'openInterestHist',
      interval: '5m',
      symbol: 'BTCUSD_PERP',
    };
    const span = { fromMs: BASE + 10 * DAY, toMs: BASE + 13 * DAY };
    const { rows, asked } = await found(routeOf('cm', 'openInterestHist'), series, span);
    expect(rows.map(({ atMs }) => atMs)).toEqual(
      Array.from({ length: 864 }, (_, index) => span.fromMs + index * 300_000),
    );
    const between = (from: number, to: number): string =>
      `startTime=${span.fromMs + from * 300_000}&endTime=${to === 864 ? span.toMs - 1 : span.fromMs + to * 300_000}`;
    const start =
      'https://dapi.test/futures/data/openInterestHist?pair=BTCUSD&contractType=PERPETUAL&period=5m';
    expect(asked).toEqual([
      `${start}&${between(0, 499)}&limit=500`,
      `${start}&${between(500, 864)}&limit=500`,
    ]);
  });

  it('of COIN-M klines is never asked for over more than 200 days', async () => {
    const series: Series = { market: 'cm', dataset: 'klines', interval: '1d', symbol: 'BTCUSD_PERP' };
    const span = { fromMs: Date.UTC(2024, 0, 1), toMs: Date.UTC(2026, 0, 1) };
    const { rows, asked } = await found(routeOf('cm', 'klines'), series, span);
    expect(rows).toHaveLength(731);
    expect(asked).toHaveLength(4);
  });

  it('of klines is asked for by its interval and limit', async () => {
    const series: Series = { market: 'spot', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' };
    const { rows, asked } = await found(routeOf('spot', 'klines'), series, {
      fromMs: BASE,
      toMs: BASE + DAY,
    });
    expect(rows).toHaveLength(24);
    expect(asked[0]).toBe(
      `https://spot.test/api/v3/klines?symbol=BTCUSDT&interval=1h&startTime=${BASE}&endTime=${BASE + DAY - 1}&limit=1000`,
    );
  });

  it('of months is asked for by the name that REST has for them', async () => {
    const series: Series = { market: 'spot', dataset: 'klines', interval: '1mo', symbol: 'BTCUSDT' };
    const span = { fromMs: Date.UTC(2026, 0, 1), toMs: Date.UTC(2026, 6, 1) };
    const { rows, asked } = await found(routeOf('spot', 'klines'), series, span);
    expect(rows).toHaveLength(6);
    expect(asked[0]).toContain('interval=1M&');
  });

  it('of trades is found by time and followed by id', async () => {
    const series: Series = { market: 'spot', dataset: 'aggTrades', symbol: 'BTCUSDT' };
    const span = { fromMs: BASE, toMs: BASE + 3 * HOUR };
    const { rows, asked } = await found(routeOf('spot', 'aggTrades'), series, span);
    expect(rows.at(-1)?.id).toBe((rows[0]?.id ?? 0) + rows.length - 1);
    expect(rows.length).toBeGreaterThan(2000);
    expect(asked.map((url) => url.includes('fromId'))).toEqual([false, true, true]);
  });
});
