/** `check` names objects that were lost before the days that a run without symbols continues, and the command that fetches them. */
import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-30', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'] }],
});

it('names the command that fetches lost objects, until they are fetched', async () => {
  const shared = { lake: 'lost', sceneFlags: '' };
  const flags = '--interval 1h --cadence daily --format csv --partition day --symbols BTCUSDT,ETHUSDT';
  const { lake } = await scene.vision(`${flags} --from 2026-11-15 --to 2026-11-19`, shared);
  // The first day of one series, and all days of the other one.
  for (const [symbol, days] of [['BTCUSDT', [15]] as const, ['ETHUSDT', [15, 16, 17, 18, 19]] as const])
    for (const day of days)
      truncateSync(join(lake, `binance/um/klines/interval=1h/symbol=${symbol}/2026-11-${day}.csv`), 100);
  expect((await cryptodl(['verify', '--fix', '--out', lake])).code).toBe(4);

  expect((await scene.vision('', shared)).code).toBe(0);
  const check = ['check', '--json', '--now', scene.now, '--out', lake];
  const { code, events } = await cryptodl(check);
  expect([code, events[0]?.['verdict']]).toEqual([3, 'incomplete']);
  const next = String(events[0]?.['next']).split(' ').slice(1);
  await cryptodl([...next, '--archive-url', scene.archive.url, '--now', scene.now]);
  expect((await cryptodl(check)).code).toBe(0);
});
