import { afterEach, describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { expectWhole, STATISTICS } from '../helpers/metrics-census.js';
import { metricsScene } from '../helpers/metrics-scene.js';
import type { MetricsScene } from '../helpers/metrics-scene.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const SYMBOLS: readonly VenueSymbol[] = Array.from({ length: 10 }, (_, index) => ({
  symbol: `S${index}USDT`,
  host: 'fapi',
  fundingHours: [8, 4, 1][index % 3] ?? 8,
  ...(index === 7 ? { from: Date.parse('2026-11-05T12:00:00Z') } : {}),
}));
const DAYS = { from: Date.parse('2026-10-23'), to: Date.parse('2026-11-21') };
const PAGES = 17;

let scene: MetricsScene | undefined;
afterEach(() => scene?.close());

describe('10 symbols × 29 days of all metrics over sockets', () => {
  it('come without a refusal, every row once and every page once', async () => {
    const opened: MetricsScene = await metricsScene(scratch, {
      symbols: SYMBOLS,
      budgetFactor: 100,
      // The next window begins before the program has to slow down for its own idea of the budget.
      disturb: ({ number }) => {
        if (number === 600) opened.setNow('2026-11-21T08:05:00.000Z');
        return undefined;
      },
    });
    scene = opened;
    const { venue, lake, run } = opened;
    const result = await run(['metrics', '--symbols', 'all', '--days', '29', '--json']);
    expect(result.code).toBe(0);
    expect({ refused: venue.refused, banned: venue.banned }).toEqual({ refused: 0, banned: 0 });
    expect(result.events.at(-1)).toMatchObject({ event: 'summary', failed: {}, retries: 0 });

    const asked = venue.log
      .filter(({ path }) => path.startsWith('/futures/data/'))
      .map(({ path, query }) => `${path}?${query.toString()}`);
    expect(asked).toHaveLength(SYMBOLS.length * STATISTICS.length * PAGES);
    expect(new Set(asked).size).toBe(asked.length);

    await expectWhole(lake, SYMBOLS, DAYS);
  }, 120_000);
});
