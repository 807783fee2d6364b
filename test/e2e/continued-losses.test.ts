/** A run without symbols names the objects that were lost before the days that it continues. */
import { rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { manifestOf } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-30', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'] }],
});
const HOURS = 'binance/um/klines/interval=1h';

/** `verify --fix` drops the lines of damaged files, so their objects are lost. */
function damage(lake: string, symbol: string, ...days: string[]): void {
  for (const day of days) truncateSync(join(lake, HOURS, `symbol=${symbol}`, `2026-11-${day}.csv`), 100);
}

it('names lost objects with the line that fetches them, until they are fetched', async () => {
  const shared = { lake: 'lost', sceneFlags: '' };
  const flags = '--interval 1h --cadence daily --format csv --partition day --symbols BTCUSDT,ETHUSDT';
  const { lake } = await scene.vision(`${flags} --from 2026-11-15 --to 2026-11-19`, shared);
  // The first day of one series, and all days of the other one.
  const btc = manifestOf(join(lake, HOURS, 'symbol=BTCUSDT'));
  damage(lake, 'BTCUSDT', '15');
  damage(lake, 'ETHUSDT', '15', '16', '17', '18', '19');
  expect((await cryptodl(['verify', '--fix', '--out', lake])).code).toBe(4);

  const { code, stderr } = await scene.vision('', shared);
  expect([code, stderr]).toEqual([0, expect.stringContaining('1 ok, 4 skipped in ') as string]);
  const repair = ['repair', '--out', lake];
  expect(stderr).toContain(
    `warning: 6 objects of 2 series were lost, and this run does not fetch them; to fetch them again: cryptodl ${repair.join(' ')}\n`,
  );

  rmSync(join(lake, HOURS, 'symbol=BTCUSDT'), { recursive: true });
  rmSync(btc);
  const none = await scene.vision('', shared);
  expect([none.code, none.stderr]).toEqual([
    2,
    expect.stringContaining('5 objects of 1 series were lost') as string,
  ]);
  expect(none.stderr).toContain(`: cryptodl ${repair.join(' ')}\n`);

  const hosts = ['--archive-url', scene.archive.url, '--now', scene.now];
  expect((await cryptodl([...repair, ...hosts])).code).toBe(0);
  const again = await scene.vision('', shared);
  expect([again.code, again.stderr]).toEqual([0, expect.not.stringContaining('were lost') as string]);
});

it('names only losses before the days that it continues, of the series that have some', async () => {
  const shared = { lake: 'partly', sceneFlags: '' };
  const flags = '--interval 1h --cadence daily --format csv --partition day --symbols BTCUSDT,ETHUSDT';
  const { lake } = await scene.vision(`${flags} --from 2026-11-15 --to 2026-11-19`, shared);
  damage(lake, 'BTCUSDT', '15', '17');
  expect((await cryptodl(['verify', '--fix', '--out', lake])).code).toBe(4);
  const { code, stderr } = await scene.vision('', shared);
  // The run goes on with the 17th, and fetches the 20th of both.
  expect([code, stderr]).toEqual([0, expect.stringContaining('3 ok, ') as string]);
  expect(stderr).toContain('warning: 1 object of 1 series were lost');
});
