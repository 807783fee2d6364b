/** What the archive has not got, `repair` asks of REST, and what came from REST it asks there again. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { publishKlines } from '../helpers/metrics-archive.js';
import { joinedScene, rowsOf } from '../helpers/metrics-scene.js';
import type { JoinedScene } from '../helpers/metrics-scene.js';
import type { VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const open: JoinedScene[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((opened) => opened.close()));
});
async function scene(): Promise<JoinedScene> {
  const opened = await joinedScene(scratch, { symbols: [BTC] });
  open.push(opened);
  return opened;
}

describe('repair', () => {
  it('fills a hole of the archive from REST, without symbols and flags', async () => {
    const { run, lake, folder } = await scene();
    for (const day of ['2026-11-16', '2026-11-18'])
      publishKlines(folder, BTC, '1h', 3_600_000, Date.parse(day));
    const range = ['--from', '2026-11-16', '--to', '2026-11-18'];
    const line = ['vision', '--interval', '1h', '--symbols', 'BTCUSDT', ...range];
    expect((await run(line)).stderr).toContain('1 absent, hole');
    const series = 'um/klines/interval=1h/symbol=BTCUSDT';
    expect(await rowsOf(lake, series)).toHaveLength(48);
    const repaired = await run(['repair']);
    expect([repaired.code, repaired.stderr]).toEqual([0, expect.stringMatching(/1 period from REST/)]);
    const times = (await rowsOf(lake, series)).map((row) => (row['open_time'] as Date).getTime());
    expect([times.length, new Set(times).size]).toEqual([72, 72]);
    expect((await run(['repair'])).stderr).toContain('to fetch   nothing');
    expect((await cryptodl(['verify', '--deep', '--out', lake])).code).toBe(0);
  });

  it('asks REST again for a file of REST that is gone', async () => {
    const { run, lake } = await scene();
    const series = 'um/openInterestHist/interval=5m/symbol=BTCUSDT';
    await run(['metrics', '--dataset', 'openInterestHist', '--symbols', 'BTCUSDT', '--days', '4']);
    const rows = await rowsOf(lake, series);
    rmSync(join(lake, 'binance', series, '2026-11.parquet'));
    expect((await run(['repair'])).code).toBe(0);
    expect(await rowsOf(lake, series)).toEqual(rows);
    rmSync(join(lake, 'binance', series, '_manifest.jsonl'));
    expect((await run(['repair'])).code).toBe(0);
    expect(await rowsOf(lake, series)).toEqual(rows);
    expect((await cryptodl(['verify', '--deep', '--out', lake])).code).toBe(0);
  });
});
