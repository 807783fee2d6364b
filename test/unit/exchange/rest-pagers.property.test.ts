import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endAnchored, idAnchored, startAnchored } from '../../../src/exchange/binance/series-pages.js';
import type { PageQuery } from '../../../src/exchange/binance/series-pages.js';
import type { Page, TimeSpan } from '../../../src/exchange/rest-rows.js';
import { refusal } from '../../helpers/requests.js';
import { allPages, modelServer, routeOf } from '../../helpers/rest-rows.js';
import type { ModelServer } from '../../helpers/rest-rows.js';

const HOUR = 3_600_000;
const STEP = 300_000;
const BASE = Date.UTC(2026, 8, 1);

const FUNDING = routeOf('um', 'fundingRate');
const INTEREST = routeOf('um', 'openInterestHist');
const TRADES = routeOf('um', 'aggTrades');

interface Known {
  readonly at: number;
  readonly id: number;
}

/** As the routes name them; some times are texts. */
const funding = ({ at }: Known): object => ({
  fundingRate: '0.0001',
  fundingTime: at % 3 === 0 ? String(at) : at,
});
const point = ({ at }: Known): object => ({ sumOpenInterest: '1.0', timestamp: at });
const trade = ({ at, id }: Known): object => ({ T: at, a: id, p: '1.0' });

/** Rows whose times lie so far apart, the first one so long after the base. */
function rowsWith(delays: readonly number[], firstId = 1): Known[] {
  let at = BASE;
  return delays.map((delay, index) => {
    at += delay;
    return { at, id: firstId + index };
  });
}

const within = (rows: readonly Known[], { fromMs, toMs }: TimeSpan): Known[] =>
  rows.filter(({ at }) => at >= fromMs && at < toMs);

/** Both ends of the times are included. */
function asked(rows: readonly Known[], query: PageQuery): Known[] {
  return 'fromId' in query
    ? rows.filter(({ id }) => id >= query.fromId)
    : rows.filter(({ at }) => at >= query.startTime && at <= query.endTime);
}

/** Every row of the span came once and in order, and what a page calls known had come by then. */
function expectAll(pages: readonly Page[], rows: readonly Known[], span: TimeSpan): void {
  const expected = within(rows, span).map(({ at }) => at);
  const came: number[] = [];
  let before = span.fromMs;
  for (const page of pages) {
    came.push(...page.rows.map(({ atMs }) => atMs));
    const known = Math.min(page.knownMs, span.toMs);
    expect(known).toBeGreaterThanOrEqual(before);
    expect(came.filter((at) => at < known)).toEqual(expected.filter((at) => at < known));
    before = known;
  }
  expect(came).toEqual(expected);
  expect(before).toBe(span.toMs);
}

const span = fc
  .tuple(fc.nat(60 * HOUR), fc.integer({ min: 1, max: 90 * HOUR }))
  .map(([start, length]): TimeSpan => ({ fromMs: BASE + start, toMs: BASE + start + length }));

describe('from a start on', () => {
  const cases = fc.record({
    span,
    rows: fc.array(fc.oneof(fc.constant(1000), fc.integer({ min: 1000, max: 9 * HOUR })), { maxLength: 60 }),
    firstAfter: fc.nat(80 * HOUR),
    // Whatever the limit says: the venue has been seen to answer 1000 with 500.
    cap: fc.integer({ min: 1, max: 12 }),
  });

  it('every row of the span comes once, in order, and only an empty page says that there are no more', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ span: wanted, rows: delays, firstAfter, cap }) => {
        const rows = rowsWith([firstAfter, ...delays]);
        const most = Math.ceil(within(rows, wanted).length / cap) + 1;
        const server = modelServer(FUNDING, most, (query) => asked(rows, query).slice(0, cap).map(funding));
        expectAll(await allPages(startAnchored(server.get, wanted)), rows, wanted);
        for (const query of server.asked) expect(query).toMatchObject({ endTime: wanted.toMs - 1 });
      }),
    );
  });

  it('a host that answers each question with a row at its start is not asked for ever', async () => {
    const wanted = { fromMs: BASE, toMs: BASE + 1000 * HOUR };
    const server = modelServer(FUNDING, 100, (query) =>
      'startTime' in query ? [funding({ at: query.startTime, id: 0 })] : [],
    );
    expect(await refusal(allPages(startAnchored(server.get, wanted)))).toMatchObject({ code: 'page-wrong' });
    expect(server.asked.length).toBeLessThan(4);
  });
});

describe('to an end', () => {
  const cases = fc.record({
    there: fc.array(fc.boolean(), { minLength: 1, maxLength: 60 }),
    from: fc.nat(70),
    steps: fc.integer({ min: 1, max: 60 }),
    limit: fc.integer({ min: 1, max: 9 }),
    longest: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
  });

  it('every point of the span comes once, in order, and no request is about more points than fit', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ there, from, steps, limit, longest }) => {
        const rows = there.flatMap((is, index) => (is ? [{ at: BASE + (index + 8) * STEP, id: 0 }] : []));
        const wanted = { fromMs: BASE + from * STEP, toMs: BASE + (from + steps) * STEP };
        const longestMs = longest === undefined ? Number.POSITIVE_INFINITY : longest * STEP - 1;
        const perWindow = Math.min(limit, longest ?? limit);
        const server = modelServer(INTEREST, Math.ceil(steps / perWindow), (query) =>
          asked(rows, query).slice(-limit).map(point),
        );
        const window = { limit, stepMs: STEP, longestMs };
        expectAll(await allPages(endAnchored(server.get, wanted, window)), rows, wanted);
        for (const query of server.asked) {
          if ('fromId' in query) throw new Error('asked by id');
          const length = query.endTime - query.startTime;
          expect(Math.floor(length / STEP) + 1).toBeLessThanOrEqual(limit);
          expect(length).toBeLessThanOrEqual(longestMs);
          expect(query.endTime).toBeLessThan(wanted.toMs);
        }
      }),
    );
  });
});

describe('by id', () => {
  const cases = fc.record({
    span,
    rows: fc.array(fc.oneof(fc.constant(0), fc.constant(1), fc.integer({ min: 0, max: 5 * HOUR })), {
      maxLength: 60,
    }),
    firstAfter: fc.nat(80 * HOUR),
    firstId: fc.integer({ min: 1, max: 3_477_868_380 }),
    cap: fc.integer({ min: 1, max: 12 }),
  });

  it('every trade of the span comes once, in order, also several of one millisecond', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ span: wanted, rows: delays, firstAfter, firstId, cap }) => {
        const rows = rowsWith([firstAfter, ...delays], firstId);
        const hours = Math.ceil((wanted.toMs - wanted.fromMs) / HOUR);
        const most = hours + Math.ceil((within(rows, wanted).length + 1) / cap) + 1;
        const server = modelServer(TRADES, most, (query) => asked(rows, query).slice(0, cap).map(trade));
        expectAll(await allPages(idAnchored(server.get, wanted)), rows, wanted);
        // An hour with both its ends is refused.
        const lengths = server.asked.map((query) =>
          'fromId' in query ? 0 : query.endTime - query.startTime,
        );
        expect(Math.max(0, ...lengths)).toBeLessThan(HOUR);
      }),
    );
  });

  it('a quiet day costs one request an hour', async () => {
    const server = modelServer(TRADES, 24, () => []);
    const pages = await allPages(idAnchored(server.get, { fromMs: BASE, toMs: BASE + 24 * HOUR }));
    expect(server.asked).toHaveLength(24);
    expect(pages.at(-1)).toEqual({ rows: [], knownMs: BASE + 24 * HOUR });
  });
});

/** Wrong pages, made of the right one and of the one before it. */
const FAULTS: Readonly<
  Record<string, (right: readonly Known[], before: readonly Known[], all: readonly Known[]) => Known[]>
> = {
  'the page before again': (_, before) => [...before],
  'the last row of the page before again': (right, before) => [...before.slice(-1), ...right],
  'rows that go backwards': (right) => right.toReversed(),
  'one row twice': (right) => right.flatMap((row, index) => (index === 1 ? [row, row] : [row])),
  'rows that go backwards in the middle': ([first, second, third, ...others]) =>
    [first, third, second, ...others].filter((row) => row !== undefined),
  // What /futures/data does with a window that it does not like.
  "today's rows": (_, _before, all) => all.slice(-5),
};

interface Pager {
  readonly start: (server: ModelServer, wanted: TimeSpan) => AsyncIterable<Page>;
  readonly serve: (most: number, answer: (query: PageQuery) => readonly Known[]) => ModelServer;
  /** Of the page asked for. */
  readonly cut: (rows: readonly Known[]) => Known[];
}

const CAP = 5;
const PAGERS: Readonly<Record<'start' | 'end' | 'id', Pager>> = {
  start: {
    start: ({ get }, wanted) => startAnchored(get, wanted),
    serve: (most, answer) => modelServer(FUNDING, most, (query) => answer(query).map(funding)),
    cut: (rows) => rows.slice(0, CAP),
  },
  end: {
    start: ({ get }, wanted) =>
      endAnchored(get, wanted, { limit: CAP, stepMs: STEP, longestMs: Number.POSITIVE_INFINITY }),
    serve: (most, answer) => modelServer(INTEREST, most, (query) => answer(query).map(point)),
    cut: (rows) => rows.slice(-CAP),
  },
  id: {
    start: ({ get }, wanted) => idAnchored(get, wanted),
    serve: (most, answer) => modelServer(TRADES, most, (query) => answer(query).map(trade)),
    cut: (rows) => rows.slice(0, CAP),
  },
};

/** A row at every step, for two days after the span as well. */
const DENSE = rowsWith(Array.from({ length: 1000 }, () => STEP));
const WANTED: TimeSpan = { fromMs: BASE + STEP, toMs: BASE + STEP * 401 };

async function ofWrongServer(pager: Pager, fault: keyof typeof FAULTS, wrongPage: number) {
  let before: readonly Known[] = [];
  const server = pager.serve(wrongPage, (query) => {
    const right = pager.cut(asked(DENSE, query));
    if (server.asked.length === wrongPage) return FAULTS[fault]?.(right, before, DENSE) ?? [];
    before = right;
    return right;
  });
  return refusal(allPages(pager.start(server, WANTED)));
}

describe.each(['start', 'end', 'id'] as const)('a server that is asked by %s', (name) => {
  const faults = Object.keys(FAULTS)
    // An id says only where to begin.
    .filter((fault) => name !== 'id' || fault !== "today's rows");
  it.each(faults)('and answers %s is refused on that page', async (fault) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 2, max: 60 }), async (wrongPage) => {
        expect((await ofWrongServer(PAGERS[name], fault, wrongPage)).code).toBe('page-wrong');
      }),
      { numRuns: 10 },
    );
  });

  it("and answers today's rows at once is refused", async () => {
    expect((await ofWrongServer(PAGERS[name], "today's rows", 1)).code).toBe('page-wrong');
  });

  it('and never gets on is refused on the second page', async () => {
    const pager = PAGERS[name];
    const stuck = DENSE.slice(0, CAP);
    const server = pager.serve(2, () => stuck);
    expect((await refusal(allPages(pager.start(server, WANTED)))).code).toBe('page-wrong');
    expect(server.asked).toHaveLength(2);
  });
});

describe('trades whose times go backwards from page to page', () => {
  it('are refused, and not left out', async () => {
    const rows = DENSE.map(({ at, id }) => ({ id, at: id > CAP * 2 ? at - STEP * CAP * 2 : at }));
    const server = PAGERS.id.serve(9, (query) => PAGERS.id.cut(asked(rows, query)));
    const error = await refusal(allPages(PAGERS.id.start(server, WANTED)));
    expect(error.code).toBe('page-wrong');
  });
});
