import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Page, RestRow } from '../../../src/exchange/rest-rows.js';
import { JoinedRows, SpanRows } from '../../../src/exchange/rest-rows.js';
import { refusal } from '../../helpers/requests.js';

const rowAt = (atMs: number, cells: RestRow['cells'] = {}): RestRow => ({ atMs, id: 0, cells });
const page = (knownMs: number, ...times: number[]): Page => ({ knownMs, rows: times.map((at) => rowAt(at)) });
const timesOf = ({ rows }: { readonly rows: readonly RestRow[] }): number[] => rows.map(({ atMs }) => atMs);

/** Pages as a pager gives them; an error in their place is thrown. Counts how many were asked for. */
function pager(pages: readonly (Page | Error)[]) {
  const state = { asked: 0 };
  async function* run(): AsyncGenerator<Page> {
    for (const next of pages) {
      state.asked += 1;
      await new Promise((resolve) => setImmediate(resolve));
      if (next instanceof Error) throw next;
      yield next;
    }
  }
  return { state, pages: run() };
}

const PAGES = [page(4, 0, 1, 3), page(5, 4), page(12, 7, 11), page(20)];

describe('periods of a span', () => {
  it('ask for no page before one of them needs it', async () => {
    const { state, pages } = pager(PAGES);
    const rows = new SpanRows(pages, 0);
    expect(state.asked).toBe(0);
    await rows.take({ fromMs: 0, toMs: 4 });
    expect(state.asked).toBe(1);
    await rows.take({ fromMs: 4, toMs: 5 });
    expect(state.asked).toBe(2);
    await rows.take({ fromMs: 5, toMs: 6 });
    await rows.take({ fromMs: 6, toMs: 12 });
    expect(state.asked).toBe(3);
  });

  it('may end after the last page', async () => {
    const { pages } = pager(PAGES);
    const rows = new SpanRows(pages, 0);
    expect(timesOf(await rows.take({ fromMs: 0, toMs: 99 }))).toEqual([0, 1, 3, 4, 7, 11]);
    expect(await rows.take({ fromMs: 99, toMs: 100 })).toMatchObject({ rows: [], isBeforeFirst: false });
  });

  it('hold more rows than a call may have arguments', async () => {
    const many = Array.from({ length: 300_000 }, (_, at) => rowAt(at));
    const { pages } = pager([{ rows: many, knownMs: 300_000 }]);
    expect((await new SpanRows(pages, 0).take({ fromMs: 0, toMs: 300_000 })).rows).toHaveLength(300_000);
  });

  it('get each row once and in order, in all orders and sizes of the parts', async () => {
    const scene = fc.record({
      delays: fc.array(fc.nat(5), { maxLength: 40 }),
      cuts: fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 12 }),
      pageSize: fc.integer({ min: 1, max: 7 }),
      order: fc.array(fc.tuple(fc.nat(), fc.boolean()), { minLength: 12, maxLength: 12 }),
    });
    await fc.assert(
      fc.asyncProperty(scene, async ({ delays, cuts, pageSize, order }) => {
        let at = 0;
        const times = delays.map((delay) => (at += delay + 1));
        const pages: Page[] = [];
        for (let from = 0; from < times.length; from += pageSize) {
          const some = times.slice(from, from + pageSize);
          pages.push(page((some.at(-1) ?? 0) + 1, ...some));
        }
        let start = 0;
        const periods = cuts.map((length) => ({ fromMs: start, toMs: (start += length) }));
        const shuffled = periods
          .map((period, index) => ({ period, order: order[index] ?? [0, false] }))
          .sort((a, b) => a.order[0] - b.order[0]);
        const source = pager([...pages, page(start)]);
        const rows = new SpanRows(source.pages, 0);
        const taken: Promise<void>[] = [];
        for (const { period, order: rank } of shuffled) {
          const take = rows.take(period).then((found) => {
            expect(timesOf(found)).toEqual(
              times.filter((time) => time >= period.fromMs && time < period.toMs),
            );
            expect(found.isBeforeFirst).toBe((times[0] ?? Number.POSITIVE_INFINITY) >= period.toMs);
          });
          if (rank[1]) await take;
          else taken.push(take);
        }
        await Promise.all(taken);
        expect(source.state.asked).toBeLessThanOrEqual(pages.length + 1);
      }),
    );
  });
});

describe('an error', () => {
  const lost = new CryptodlError('connection-lost', 'said by the test');

  it('rejects every period that waits, and every one to come, without another page', async () => {
    const { state, pages } = pager([page(4, 1), lost, page(20)]);
    const rows = new SpanRows(pages, 0);
    const waiting = [
      rows.take({ fromMs: 0, toMs: 8 }),
      rows.take({ fromMs: 8, toMs: 12 }),
      rows.take({ fromMs: 12, toMs: 16 }),
    ];
    for (const take of waiting) expect(await refusal(take)).toBe(lost);
    expect(await refusal(rows.take({ fromMs: 16, toMs: 20 }))).toBe(lost);
    expect(state.asked).toBe(2);
  });

  it('does not remove earlier rows', async () => {
    const { pages } = pager([page(4, 1), lost]);
    const rows = new SpanRows(pages, 0);
    const first = rows.take({ fromMs: 0, toMs: 4 });
    const second = refusal(rows.take({ fromMs: 4, toMs: 8 }));
    expect(timesOf(await first)).toEqual([1]);
    expect(await second).toBe(lost);
  });
});

describe('joined routes', () => {
  const of = (knownMs: number, rows: Readonly<Record<number, RestRow['cells']>>): AsyncGenerator<Page> =>
    pager([{ knownMs, rows: Object.entries(rows).map(([at, cells]) => rowAt(Number(at), cells)) }]).pages;

  it('have one row per time, with empty cells for missing values', async () => {
    const joined = new JoinedRows(
      [
        ['interest', of(40, { 10: { timestamp: 10, sum: 'a' }, 30: { timestamp: 30, sum: 'c' } })],
        ['ratio', of(40, { 20: { timestamp: '20', ratio: 'B' }, 30: { timestamp: '30', ratio: 'C' } })],
      ],
      0,
    );
    expect((await joined.take({ fromMs: 0, toMs: 40 })).rows).toEqual([
      { atMs: 10, id: 0, cells: { timestamp: 10, 'interest.timestamp': 10, 'interest.sum': 'a' } },
      { atMs: 20, id: 0, cells: { timestamp: 20, 'ratio.timestamp': '20', 'ratio.ratio': 'B' } },
      {
        atMs: 30,
        id: 0,
        cells: {
          timestamp: 30,
          'interest.timestamp': 30,
          'interest.sum': 'c',
          'ratio.timestamp': '30',
          'ratio.ratio': 'C',
        },
      },
    ]);
  });

  it('come in the order of their times, whichever of them has a time', async () => {
    const joined = new JoinedRows(
      [
        ['a', of(40, { 30: {} })],
        ['b', of(40, { 5: {}, 35: {} })],
        ['c', of(40, {})],
      ],
      0,
    );
    expect(timesOf(await joined.take({ fromMs: 0, toMs: 32 }))).toEqual([5, 30]);
    expect(timesOf(await joined.take({ fromMs: 32, toMs: 40 }))).toEqual([35]);
  });

  it('are before the first row when all of them are', async () => {
    const joined = new JoinedRows(
      [
        ['a', of(40, { 30: {} })],
        ['b', of(40, { 15: {} })],
      ],
      0,
    );
    expect((await joined.take({ fromMs: 0, toMs: 10 })).isBeforeFirst).toBe(true);
    expect((await joined.take({ fromMs: 10, toMs: 20 })).isBeforeFirst).toBe(false);
    expect((await joined.take({ fromMs: 20, toMs: 30 })).isBeforeFirst).toBe(false);
  });

  it('are refused together', async () => {
    const lost = new CryptodlError('before-history', 'said by the test');
    const joined = new JoinedRows(
      [
        ['a', of(40, { 30: {} })],
        ['b', pager([lost]).pages],
      ],
      0,
    );
    expect(await refusal(joined.take({ fromMs: 0, toMs: 10 }))).toBe(lost);
    expect(await refusal(joined.take({ fromMs: 10, toMs: 40 }))).toBe(lost);
  });
});
