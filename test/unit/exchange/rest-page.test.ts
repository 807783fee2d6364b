import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { readRestPage } from '../../../src/exchange/binance/series-pages.js';
import type { PageQuery } from '../../../src/exchange/binance/series-pages.js';
import type { RestRow } from '../../../src/exchange/rest-rows.js';
import type { RouteSpec } from '../../../src/exchange/facts.js';
import { routeOf } from '../../helpers/rest-rows.js';

const INTEREST = routeOf('um', 'openInterestHist');
const KLINES = routeOf('um', 'klines');
const TRADES = routeOf('um', 'aggTrades');

const OF = { symbol: 'BTCUSD_PERP' };
const AT = Date.UTC(2026, 8, 1);
const ALL: PageQuery = { startTime: 0, endTime: 4_133_404_800_000 };

const read = (content: unknown, query: PageQuery = ALL, route: RouteSpec = INTEREST): RestRow[] =>
  readRestPage(content, route, query, OF);

function refusalOf(content: unknown, query: PageQuery = ALL, route: RouteSpec = INTEREST): CryptodlError {
  try {
    readRestPage(content, route, query, OF);
  } catch (error) {
    if (error instanceof CryptodlError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('a row', () => {
  it.each([
    ['symbol', 'ZZZ', 'BTCUSD_PERP'],
    ['symbol', 'BTCUSD_261225', 'BTCUSD_PERP'],
    ['symbol', null, 'BTCUSD_PERP'],
    ['pair', 'ETHUSD', 'BTCUSD'],
  ])('of another contract is refused: %s %s', (field, said, expected) => {
    const route = routeOf('cm', 'openInterestHist');
    const rows = [
      { timestamp: AT, [field]: expected },
      { timestamp: AT + 1, [field]: said },
    ];
    expect(read(rows.slice(0, 1), ALL, route)).toHaveLength(1);
    const refusal = refusalOf(rows, ALL, route);
    expect(refusal.code).toBe('page-wrong');
    expect(refusal.message).toContain(
      `a row has the ${field} ${JSON.stringify(said)} instead of ${expected}`,
    );
  });

  it('has its time as a number or as a text, and keeps its cells as they were', () => {
    const cells = { sumOpenInterest: '1.50', timestamp: `${AT}` };
    expect(read([cells, { timestamp: AT + 1 }])).toEqual([
      { atMs: AT, id: 0, cells },
      { atMs: AT + 1, id: 0, cells: { timestamp: AT + 1 } },
    ]);
  });

  it('has its keys in any order', () => {
    const rows: unknown = JSON.parse(
      `[{"timestamp":${AT},"pair":"BTCUSD"},{"pair":"BTCUSD","timestamp":${AT + 1}}]`,
    );
    expect(read(rows).map(({ atMs }) => atMs)).toEqual([AT, AT + 1]);
  });

  it('may be a list, whose fields are found by position', () => {
    const row = [AT, '1.0', '2.0', '0.5', '1.5', '10', AT + 59_999];
    const [found] = read([row], ALL, KLINES);
    expect(found?.atMs).toBe(AT);
    expect([found?.cells['4'], found?.cells['6'], found?.cells['11']]).toEqual([
      '1.5',
      AT + 59_999,
      undefined,
    ]);
  });

  it('of a trade has an id, also as a text', () => {
    const rows = read(
      [
        { T: AT, a: 7 },
        { T: `${AT}`, a: '8' },
      ],
      ALL,
      TRADES,
    );
    expect(rows.map(({ atMs, id }) => [atMs, id])).toEqual([
      [AT, 7],
      [AT, 8],
    ]);
  });

  it.each<[string, unknown, string]>([
    ['no time', { pair: 'A' }, 'timestamp is missing'],
    ['a time that is nothing', { timestamp: null }, 'timestamp is null'],
    ['an empty time', { timestamp: '' }, 'timestamp is ""'],
    ['a time with a fraction', { timestamp: 1.5 }, 'timestamp is 1.5'],
    ['a time before 1970', { timestamp: -1 }, 'timestamp is -1'],
    ['a text as time', { timestamp: '2026-09-01' }, 'timestamp is "2026-09-01"'],
    ['a time in nanoseconds', { timestamp: 1.7e18 }, 'timestamp is 1700000000000000000'],
    ['a time after all dates', { timestamp: 8_900_000_000_000_000 }, 'timestamp is 8900000000000000'],
    ['its time in a list', { timestamp: [AT] }, `timestamp is [${AT}]`],
  ])('with %s is malformed', (_, row, said) => {
    expect(refusalOf([row])).toMatchObject({
      code: 'answer-malformed',
      message: `/futures/data/openInterestHist answered with a row whose ${said}`,
    });
  });

  it('of a trade without an id is malformed, and it is the id that is missed', () => {
    expect(refusalOf([{ T: AT }], ALL, TRADES)).toMatchObject({
      code: 'answer-malformed',
      message: '/fapi/v1/aggTrades answered with a row whose a is missing',
    });
  });

  it.each([[null], [7], ['text'], [true]])('that is %j is malformed', (row) => {
    expect(refusalOf([row]).code).toBe('answer-malformed');
  });
});

describe('a page', () => {
  it.each<[string, unknown]>([
    ['an object', { code: 0, msg: '' }],
    ['nothing', null],
    ['a text', '[]'],
    ['a number', 7],
  ])('that is %s is malformed', (_, content) => {
    expect(refusalOf(content)).toMatchObject({
      code: 'answer-malformed',
      message: '/futures/data/openInterestHist did not answer with a list',
    });
  });

  it('may be empty', () => {
    expect(read([])).toEqual([]);
  });

  it('may have both ends of the requested span, and nothing beyond them', () => {
    const query = { startTime: AT, endTime: AT + 10 };
    const times = (...rows: number[]): object[] => rows.map((timestamp) => ({ timestamp }));
    expect(read(times(AT, AT + 10), query)).toHaveLength(2);
    expect(refusalOf(times(AT - 1, AT), query).code).toBe('page-wrong');
    expect(refusalOf(times(AT, AT + 11), query)).toMatchObject({
      code: 'page-wrong',
      message:
        '/futures/data/openInterestHist: row 2026-09-01T00:00:00.011Z is outside of the requested 2026-09-01T00:00:00.000Z to 2026-09-01T00:00:00.010Z',
    });
  });

  it('by id begins with it or after it', () => {
    const page = [{ T: AT, a: 100 }];
    expect(read(page, { fromId: 100 }, TRADES)).toHaveLength(1);
    expect(read(page, { fromId: 90 }, TRADES)).toHaveLength(1);
    expect(refusalOf(page, { fromId: 101 }, TRADES)).toMatchObject({
      code: 'page-wrong',
      message: '/fapi/v1/aggTrades: row 100 is before the requested row 101',
    });
  });

  it('has no row twice and none before another', () => {
    expect(refusalOf([{ timestamp: AT }, { timestamp: AT }]).code).toBe('page-wrong');
    expect(refusalOf([{ timestamp: AT + 5 }, { timestamp: AT }])).toMatchObject({
      code: 'page-wrong',
      message:
        '/futures/data/openInterestHist: row 2026-09-01T00:00:00.000Z comes after 2026-09-01T00:00:00.005Z',
    });
  });

  it('may have several trades of one millisecond, in the order of their ids', () => {
    const page = (...ids: number[]): object[] => ids.map((a) => ({ T: AT, a }));
    expect(read(page(1, 2, 3), ALL, TRADES)).toHaveLength(3);
    expect(refusalOf(page(1, 1), ALL, TRADES).code).toBe('page-wrong');
    expect(refusalOf(page(2, 1), ALL, TRADES).code).toBe('page-wrong');
  });

  it('has no later trade with an earlier time', () => {
    const page = [
      { T: AT + 1, a: 1 },
      { T: AT, a: 2 },
    ];
    expect(refusalOf(page, ALL, TRADES).code).toBe('page-wrong');
  });
});

it('every answer is read, or refused with a typed error', () => {
  const cell = fc.oneof(fc.integer({ min: AT, max: AT + 50 }), fc.double(), fc.string(), fc.jsonValue());
  const row = fc.oneof(
    fc.record({ timestamp: cell, T: cell, a: cell }, { requiredKeys: [] }),
    fc.array(cell),
    fc.jsonValue(),
  );
  const query = fc.constantFrom<PageQuery>(ALL, { startTime: AT, endTime: AT + 20 }, { fromId: 3 });
  const page = fc.oneof(fc.array(row, { maxLength: 6 }), fc.jsonValue());
  fc.assert(
    fc.property(page, query, fc.constantFrom(INTEREST, KLINES, TRADES), (content, asked, route) => {
      try {
        const rows = readRestPage(content, route, asked, OF);
        for (const [index, { atMs, id }] of rows.entries()) {
          const before = rows[index - 1];
          if (before === undefined) continue;
          expect(atMs + id).toBeGreaterThan(before.atMs + before.id);
        }
      } catch (error) {
        expect(error).toBeInstanceOf(CryptodlError);
        expect((error as CryptodlError).code).toMatch(/^(answer-malformed|page-wrong)$/);
      }
    }),
    { numRuns: 1000 },
  );
});
