import { afterEach, describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { publishFunding } from '../helpers/metrics-archive.js';
import { joinedScene, metricsScene, rowsOf } from '../helpers/metrics-scene.js';
import type { MetricsScene } from '../helpers/metrics-scene.js';
import { fundingEvents } from '../helpers/rest-venue-rows.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const FROM = Date.parse('2019-11-21');
const TO = Date.parse('2026-11-21');
const MARK_PRICES_FROM = Date.parse('2023-10-31T08:00Z');
const HOUR_MS = 3_600_000;
/** Events of the day before, which tell how long the first interval was. */
const LOOK_BACK = 3;

let scene: MetricsScene | undefined;
afterEach(() => scene?.close());

describe('seven years of fundings', () => {
  it('are complete with pages of 500 of them, at any limit, in few requests', async () => {
    const fundingPage = 500;
    scene = await metricsScene(scratch, { symbols: [BTC], fundingPage });
    const { venue, lake, run } = scene;
    const what = ['--dataset', 'fundingRate', '--symbols', 'BTCUSDT', '--from', '2019-11-21'];
    const result = await run(['metrics', ...what, '--json']);
    expect(result.code).toBe(0);

    const events = fundingEvents(BTC, FROM, TO - 1);
    expect(events.length).toBeGreaterThan(7000);
    const rows = await rowsOf(lake, 'um/fundingRate/symbol=BTCUSDT');
    const times = rows.map((row) => (row['calc_time'] as Date).getTime());
    expect(times).toEqual(events.map(({ fundingTime }) => fundingTime));
    expect(times.filter((at) => at % HOUR_MS !== 0).length).toBeGreaterThan(3000);
    expect(rows.map((row) => row['last_funding_rate'])).toEqual(
      events.map(({ fundingRate }) => Number(fundingRate)),
    );
    expect(new Set(rows.map((row) => Number(row['funding_interval_hours'])))).toEqual(new Set([8]));
    const prices = rows.map((row) => row['mark_price']);
    expect(prices).toEqual(events.map(({ markPrice }) => (markPrice === '' ? null : Number(markPrice))));
    // Not only what the venue says of them, but what is known of the real one.
    expect(prices.map((price) => typeof price === 'number')).toEqual(
      times.map((at) => at >= MARK_PRICES_FROM),
    );

    expect(result.events.at(-1)).toMatchObject({ event: 'summary', rows: events.length, retries: 0 });
    const pages = venue.log.filter(({ path }) => path === '/fapi/v1/fundingRate');
    expect(pages.length).toBeLessThanOrEqual((events.length + LOOK_BACK) / fundingPage + 2);
    expect({ refused: venue.refused, banned: venue.banned }).toEqual({ refused: 0, banned: 0 });
    const checked = await cryptodl(['check', '--out', lake, '--now', new Date(TO).toISOString()]);
    expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining('complete')]);
  });
});

describe('vision with funding rates of the current month', () => {
  it('tells that they are by month, and has them from REST with --fill', async () => {
    const opened = await joinedScene(scratch, { symbols: [BTC] });
    scene = opened;
    const { folder, run, lake } = opened;
    const month = Date.parse('2026-10-01');
    publishFunding(folder, BTC, month);
    const line = ['vision', '--dataset', 'fundingRate', '--symbols', 'BTCUSDT'];
    const { code, stderr } = await run([...line, '--days', '7']);
    expect([code, stderr]).toEqual([0, expect.stringContaining('monthly    fundingRate: every month ')]);
    const filled = await run([...line, '--days', '7', '--fill', 'rest']);
    expect(filled.code).toBe(0);
    expect(await rowsOf(lake, 'um/fundingRate/symbol=BTCUSDT')).toHaveLength(20 * 3);
  });
});
