import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { manifestLines } from '../helpers/lake.js';
import {
  censusOfLake,
  censusOfVenue,
  expectWhole,
  fundingsOfLake,
  fundingsOfVenue,
  STATISTICS,
} from '../helpers/metrics-census.js';
import { metricsScene } from '../helpers/metrics-scene.js';
import type { MetricsScene } from '../helpers/metrics-scene.js';
import type { Asked, VenueSymbol } from '../helpers/rest-venue-types.js';
import { DAY_MS } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const SYMBOLS: readonly VenueSymbol[] = [
  { symbol: 'BTCUSDT', host: 'fapi' },
  { symbol: 'ETHUSDT', host: 'fapi', fundingHours: 4 },
];
const FIRST = Date.parse('2026-11-18');
const TODAY = Date.parse('2026-11-21');
const NEXT_MORNING = '2026-11-22T08:00:00.000Z';

let scene: MetricsScene;
beforeEach(async () => {
  scene = await metricsScene(scratch, { symbols: SYMBOLS });
});
afterEach(() => scene.close());

async function metrics(...flags: string[]): Promise<CliResult> {
  const result = await scene.run(['metrics', ...flags, '--json']);
  expect(result.code).toBe(0);
  return result;
}

/** Takes the requests since the last call out of the log of the venue. */
function asked(): { statistics: Asked[]; fundings: Asked[]; others: string[] } {
  const log = scene.venue.log.splice(0);
  const statistics = log.filter(({ path }) => path.startsWith('/futures/data/'));
  const fundings = log.filter(({ path }) => path === '/fapi/v1/fundingRate');
  const others = log.filter((one) => !statistics.includes(one) && !fundings.includes(one));
  return { statistics, fundings, others: others.map(({ path }) => path) };
}

/** Each pair of path and symbol, once. */
function seriesOf(requests: readonly Asked[]): Set<string> {
  return new Set(requests.map(({ path, query }) => `${path} ${query.get('symbol') ?? ''}`));
}

function earliestStart(requests: readonly Asked[]): number {
  return Math.min(...requests.map(({ query }) => Number(query.get('startTime'))));
}

const SERIES_COUNT = SYMBOLS.length * STATISTICS.length;

describe('cryptodl metrics, again', () => {
  it('asks for nothing but the symbols when it has everything', async () => {
    await metrics('--symbols', 'all', '--days', '3');
    expect(seriesOf(asked().statistics).size).toBe(SERIES_COUNT);
    const again = await metrics('--symbols', 'all', '--days', '3');
    expect(again.events.at(-1)).toMatchObject({ outcomes: { ok: 0, failed: 0, absent: 0 }, requests: 1 });
    expect(asked()).toEqual({ statistics: [], fundings: [], others: ['/fapi/v1/exchangeInfo'] });
    await expectWhole(scene.lake, SYMBOLS, { from: FIRST, to: TODAY });
  });

  it.each([
    ['with the same first day', ['--symbols', 'all', '--days', '4']],
    ['without --symbols', []],
  ])('a run on the next day, %s, asks once per statistic and symbol, for the new day', async (_, flags) => {
    await metrics('--symbols', 'all', '--days', '3');
    asked();
    scene.setNow(NEXT_MORNING);
    await metrics(...flags);
    const log = asked();
    expect(log.statistics).toHaveLength(SERIES_COUNT);
    expect(seriesOf(log.statistics).size).toBe(SERIES_COUNT);
    expect(earliestStart(log.statistics)).toBe(TODAY);
    // One page for each symbol. It begins a day earlier: the settlement before a row tells the hours of its interval.
    expect(log.fundings).toHaveLength(SYMBOLS.length);
    expect(earliestStart(log.fundings)).toBe(TODAY - DAY_MS);
    expect(log.others).toEqual(['/fapi/v1/exchangeInfo']);
    await expectWhole(scene.lake, SYMBOLS, { from: FIRST, to: TODAY + DAY_MS });
  });

  it('asks for nothing but the symbols in a second run without flags on the same day', async () => {
    await metrics('--symbols', 'all', '--days', '3');
    asked();
    await metrics();
    expect(asked()).toEqual({ statistics: [], fundings: [], others: ['/fapi/v1/exchangeInfo'] });
  });
});

describe('days before a symbol was listed', () => {
  const NEW: VenueSymbol = { symbol: 'NEWUSDT', host: 'fapi', from: TODAY - DAY_MS };
  const metricsOfNew = (...flags: string[]): Promise<CliResult> =>
    metrics('--symbols', 'NEWUSDT', '--dataset', 'openInterestHist', '--days', '3', ...flags);
  beforeEach(async () => {
    await scene.close();
    scene = await metricsScene(scratch, { symbols: [...SYMBOLS, NEW] });
  });

  it('are not asked for again on the same day, and are on the next morning', async () => {
    const first = await metricsOfNew();
    expect(first.events.at(-1)).toMatchObject({ outcomes: { ok: 1 }, absent: { unknown: 2 } });
    asked();
    const again = await metricsOfNew();
    expect(again.events.at(-1)).toMatchObject({ outcomes: { skipped: 1 }, absent: { unknown: 2 } });
    expect(asked().statistics).toEqual([]);
    scene.setNow(NEXT_MORNING);
    await metricsOfNew();
    // The order began with FIRST, which is before the three days of this run.
    expect(earliestStart(asked().statistics)).toBe(FIRST);
  });

  it('are asked for with --force', async () => {
    await metricsOfNew();
    asked();
    await metricsOfNew('--force');
    expect(earliestStart(asked().statistics)).toBe(FIRST);
  });
});

describe('a day of which REST lacked rows', () => {
  const BAD = Date.parse('2026-11-19');
  /** REST has no rows of these hours of the bad day. */
  let lacks: readonly number[] = [];
  beforeEach(async () => {
    await scene.close();
    lacks = [5, 6, 8, 9];
    const bad = (at: number): boolean =>
      at >= BAD && at < BAD + DAY_MS && lacks.includes(new Date(at).getUTCHours());
    scene = await metricsScene(scratch, {
      symbols: SYMBOLS.slice(0, 1),
      disturb: (request) => {
        if (!/openInterestHist|fundingRate/.test(request.path)) return undefined;
        const answer = scene.venue.usual(request);
        const rows = JSON.parse(answer.body) as { timestamp?: number; fundingTime?: number }[];
        const left = rows.filter(({ timestamp, fundingTime }) => !bad(timestamp ?? fundingTime ?? 0));
        return { ...answer, body: JSON.stringify(left) };
      },
    });
  });

  /** The exit code of the verdict, and what its orders lack. */
  async function verdict(now: string): Promise<unknown> {
    const { code, events } = await cryptodl(['check', '--out', scene.lake, '--json', '--now', now]);
    const orders = events.flatMap((event) => event['orders'] as { missing: unknown }[]);
    return [code, orders.map(({ missing }) => missing)];
  }

  it.each<[dataset: string, missing: unknown, again: string[]]>([
    ['openInterestHist', { rows: 4, days: 0 }, ['metrics', '--days', '3']],
    ['openInterestHist', { rows: 4, days: 0 }, ['metrics']],
    ['openInterestHist', { rows: 4, days: 0 }, ['repair']],
    ['fundingRate', { rows: 0, days: 1 }, ['metrics', '--days', '3']],
    ['fundingRate', { rows: 0, days: 1 }, ['metrics']],
    ['fundingRate', { rows: 0, days: 1 }, ['repair']],
  ])('of %s, with %j missing, is requested again by %j', async (dataset, missing, [verb = '', ...flags]) => {
    const layer = dataset === 'openInterestHist' ? ['--interval', '1h'] : [];
    const selection = ['--dataset', dataset, ...layer, '--symbols', 'BTCUSDT'];
    const first = await metrics(...selection, '--days', '3');
    expect(first.events.at(-1)).toMatchObject({ outcomes: { ok: 2, partial: 1 } });
    expect(await verdict('2026-11-22T12:00:00Z')).toEqual([3, [missing]]);
    // REST still lacks them, so the verdict is the same.
    const own = flags.length === 0 ? flags : [...selection, ...flags];
    expect((await scene.run([verb, ...own])).code).toBe(0);
    expect(await verdict('2026-11-22T12:00:00Z')).toEqual([3, [missing]]);
    lacks = [];
    scene.setNow(NEXT_MORNING);
    expect((await scene.run([verb, ...own])).code).toBe(0);
    expect(await verdict('2026-11-22T12:00:00Z')).toEqual([0, [{ rows: 0, days: 0 }]]);
  });

  it('cannot be had when REST keeps it no longer', async () => {
    await metrics('--dataset', 'openInterestHist', '--interval', '1h', '--symbols', 'BTCUSDT', '--days', '3');
    scene.setNow('2026-12-20T08:00:00.000Z');
    await metrics();
    expect(await verdict('2026-12-20T08:00:00Z')).toEqual([4, [{ rows: 4, days: 0 }]]);
    // Nor can the weeks in which nothing ran: REST has dropped most of them. They count as rows, not as days.
    scene.setNow('2027-02-08T08:00:00.000Z');
    await metrics();
    expect(await verdict('2027-02-08T08:00:00Z')).toMatchObject([4, [{ days: 0 }]]);
  });
});

describe('--include-today', () => {
  /** The days that the manifests below this folder of the lake mark as open, once per symbol. The last line of a day counts. */
  function openDays(folder: string): unknown[] {
    return SYMBOLS.flatMap(({ symbol }) => {
      const lines = manifestLines(join(scene.lake, 'binance', 'um', folder, `symbol=${symbol}`));
      const byDay = new Map(lines.map((line) => [line['period'], line['open']]));
      return [...byDay].filter(([, open]) => open === true).map(([day]) => day);
    });
  }

  it('has the rows of the running day so far, marked as open, and the next run replaces them', async () => {
    await metrics('--symbols', 'all', '--days', '3', '--include-today');
    asked();
    // The last statistic has the label 07:55. The funding of 08:00 is there only if its time is not some milliseconds later.
    const now = Date.parse('2026-11-21T08:00:00Z');
    for (const statistic of STATISTICS) {
      expect(await censusOfLake(scene.lake, statistic)).toEqual(
        censusOfVenue(statistic, SYMBOLS, { from: FIRST, to: now }),
      );
      expect(openDays(join(statistic.dataset, 'interval=5m'))).toEqual(['2026-11-21', '2026-11-21']);
    }
    expect(await fundingsOfLake(scene.lake)).toEqual(fundingsOfVenue(SYMBOLS, { from: FIRST, to: now + 1 }));
    expect(openDays('fundingRate')).toEqual(['2026-11-21', '2026-11-21']);

    scene.setNow(NEXT_MORNING);
    await metrics();
    const log = asked();
    expect(log.statistics).toHaveLength(SERIES_COUNT);
    expect(earliestStart(log.statistics)).toBe(TODAY);
    expect(log.fundings).toHaveLength(SYMBOLS.length);
    expect(earliestStart(log.fundings)).toBe(TODAY - DAY_MS);
    expect(openDays('fundingRate')).toEqual([]);
    await expectWhole(scene.lake, SYMBOLS, { from: FIRST, to: TODAY + DAY_MS });

    await metrics();
    expect(asked()).toEqual({ statistics: [], fundings: [], others: ['/fapi/v1/exchangeInfo'] });
  });

  it('has the whole day after a run of later days', async () => {
    const selection = ['--symbols', 'all', '--days'];
    await metrics(...selection, '3', '--include-today');
    scene.setNow('2026-11-24T08:00:00.000Z');
    await metrics(...selection, '1');
    expect(openDays('fundingRate')).toEqual([]);
    await expectWhole(scene.lake, SYMBOLS, { from: FIRST, to: TODAY + 3 * DAY_MS });
  });

  it('asks for the statistics of the running day again an hour later, and for none before it', async () => {
    await metrics('--symbols', 'all', '--days', '3', '--include-today');
    asked();
    scene.setNow('2026-11-21T09:00:00.000Z');
    await metrics('--include-today');
    const log = asked();
    expect(log.statistics).toHaveLength(SERIES_COUNT);
    expect(earliestStart(log.statistics)).toBe(TODAY);
    const now = Date.parse('2026-11-21T09:00:00Z');
    await expectWhole(scene.lake, SYMBOLS, { from: FIRST, to: now });
  });
});
