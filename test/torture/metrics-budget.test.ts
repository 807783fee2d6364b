/** In simulated time: thousands of requests (17,000 in full) of which 1000 may be asked in five minutes. */
import { describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { expectWhole, STATISTICS } from '../helpers/metrics-census.js';
import { DAY_MS } from '../helpers/rest-venue-types.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';
import { virtualMetrics } from '../helpers/virtual-metrics.js';
import { SIZE } from './size.js';

const SYMBOLS: readonly VenueSymbol[] = Array.from({ length: SIZE.symbols }, (_, index) => ({
  symbol: `S${String(index).padStart(3, '0')}USDT`,
  host: 'fapi',
  fundingHours: [8, 4, 1][index % 3] ?? 8,
  // Every twentieth one is listed in the middle of the range, in the middle of a day.
  ...(index % 20 === 7 ? { from: Date.parse('2026-11-05T12:00:00Z') } : {}),
}));
const DAYS = { from: Date.parse('2026-10-23'), to: Date.parse('2026-11-21') };
const WINDOW_MS = 300_000;
const BUDGET = 1000;

describe(`${SIZE.symbols} symbols × 29 days of all metrics`, () => {
  const scratch = scratchFolder();

  it('come in the time that the budget allows, without a single refusal, every row once', async () => {
    const { venue, lake, warnings, run } = virtualMetrics(scratch, { symbols: SYMBOLS });
    const summary = await run({ symbols: ['all'], days: ['29'] });
    expect(summary).toMatchObject({ exitCode: 0, failed: {}, retries: 0 });
    expect(warnings).toEqual([]);
    expect({ refused: venue.refused, banned: venue.banned }).toEqual({ refused: 0, banned: 0 });

    const asked = venue.log.filter(({ path }) => path.startsWith('/futures/data/')).length;
    const tookMs = (venue.log.at(-1)?.at ?? Number.NaN) - (venue.log[0]?.at ?? Number.NaN);
    const pages = Math.ceil(((DAYS.to - DAYS.from) / DAY_MS) * (288 / 500));
    expect(asked).toBe(SYMBOLS.length * STATISTICS.length * pages);
    expect(tookMs).toBeLessThanOrEqual(1.1 * (asked / BUDGET) * WINDOW_MS);

    await expectWhole(lake, SYMBOLS, DAYS);
  });
});
