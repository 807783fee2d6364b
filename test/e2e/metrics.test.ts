import { afterEach, describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { daysBetween, metricsScene, rowsOf, statisticsOf } from '../helpers/metrics-scene.js';
import type { MetricsScene, SceneOptions } from '../helpers/metrics-scene.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const ETH: VenueSymbol = { symbol: 'ETHUSDT', host: 'fapi', fundingHours: 4 };

const scenes: MetricsScene[] = [];
async function scene(options: Partial<SceneOptions> = {}): Promise<MetricsScene> {
  const opened = await metricsScene(scratch, { symbols: [BTC, ETH], ...options });
  scenes.push(opened);
  return opened;
}
afterEach(async () => {
  await Promise.all(scenes.splice(0).map((opened) => opened.close()));
});

describe('cryptodl metrics', () => {
  it('brings every row of every default dataset, each once', async () => {
    const { run, lake } = await scene();
    const result = await run(['metrics', '--symbols', 'BTCUSDT,ETHUSDT', '--days', '3']);
    expect(result.code).toBe(0);
    const days = daysBetween('2026-11-18', '2026-11-21');
    const rows = await rowsOf(lake, 'um/openInterestHist/interval=5m/symbol=BTCUSDT');
    const found = rows.map((row) => [(row['timestamp'] as Date).getTime(), row['sum_open_interest']]);
    expect(found).toEqual(statisticsOf('openInterestHist', 'sumOpenInterest', BTC, days));
  });
});
