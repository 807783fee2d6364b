/** REST keeps statistics of 30 days, and the oldest of them go while a run goes on. */
import { afterEach, describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { censusOfLake, censusOfVenue, OPEN_INTEREST } from '../helpers/metrics-census.js';
import { metricsScene } from '../helpers/metrics-scene.js';
import type { MetricsScene } from '../helpers/metrics-scene.js';
import { DAY_MS } from '../helpers/rest-venue-types.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const FIRST: VenueSymbol = { symbol: 'AAAUSDT', host: 'fapi' };
const SECOND: VenueSymbol = { symbol: 'BBBUSDT', host: 'fapi' };
const FROM = Date.parse('2026-10-23');
const TO = Date.parse('2026-11-21');
const MIDNIGHT = '2026-11-22T00:10:00.000Z';

let scene: MetricsScene | undefined;
afterEach(() => scene?.close());

describe('a day that goes while the run goes on', () => {
  it.each(['1', '10'])(
    'costs its own rows only, with %s in flight',
    async (concurrency) => {
      const opened: MetricsScene = await metricsScene(scratch, {
        symbols: [FIRST, SECOND],
        // The second symbol is asked for after the exchange's midnight.
        disturb: (asked) => {
          if (asked.query.get('symbol') !== SECOND.symbol) return undefined;
          opened.setNow(MIDNIGHT);
          return opened.venue.usual({ ...asked, at: Date.parse(MIDNIGHT) });
        },
      });
      scene = opened;
      opened.setNow('2026-11-21T22:50:00.000Z');
      const what = ['--symbols', 'all', '--days', '29', '--dataset', 'openInterestHist'];
      const result = await opened.run(['metrics', ...what, '--concurrency', concurrency, '--json']);
      expect(result.code).toBe(0);
      expect(result.events.at(-1)).toMatchObject({ absent: { 'before-history': 1 } });
      expect(await censusOfLake(opened.lake, OPEN_INTEREST)).toEqual([
        ...censusOfVenue(OPEN_INTEREST, [FIRST], { from: FROM, to: TO }),
        ...censusOfVenue(OPEN_INTEREST, [SECOND], { from: FROM + DAY_MS, to: TO }),
      ]);
    },
    30_000,
  );
});
