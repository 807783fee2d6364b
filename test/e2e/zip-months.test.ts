/** A lake of zips whose months and days replace each other: no row of a held zip is left out. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [
    { from: '2026-10-01', to: '2026-11-20', symbols: ['BTCUSDT', 'HOLEUSDT'] },
    { from: '2026-10-01', to: '2026-10-31', symbols: ['BTCUSDT', 'HOLEUSDT'], cadence: 'monthly' },
  ],
  change: (folder) => {
    const day = join(folder, 'data/futures/um/daily/klines/HOLEUSDT/1h/HOLEUSDT-1h-2026-10-15.zip');
    for (const path of [day, `${day}.CHECKSUM`]) rmSync(path);
  },
  flags: '--interval 1h --format zip --from 2026-10-01 --to 2026-11-05',
});

const DAYS = '--force --cadence daily';
const zipsOf = (lake: string, cadence: string): number =>
  filesBelow(join(lake, 'data')).filter((path) => path.includes(`/${cadence}/`) && path.endsWith('.zip'))
    .length;

async function codesOf(lake: string): Promise<readonly (number | null)[]> {
  const check = await cryptodl(['check', '--out', lake, '--now', scene.now]);
  return [check.code, (await cryptodl(['verify', '--deep', '--out', lake])).code];
}

describe('the zip of a month', () => {
  it('stays when its days lack one of its days', async () => {
    const shared = { lake: 'hole' };
    const { lake, code } = await scene.vision('--symbols HOLEUSDT', shared);
    expect([code, zipsOf(lake, 'monthly'), ...(await codesOf(lake))]).toEqual([0, 1, 0, 0]);
    const days = await scene.vision(`--symbols HOLEUSDT ${DAYS}`, shared);
    expect(days.code).toBe(3);
    expect(days.stderr).toContain('744 rows');
    expect([zipsOf(lake, 'monthly'), ...(await codesOf(lake))]).toEqual([1, 0, 0]);
  });

  it('is replaced by all its days when a run asks for a part of them', async () => {
    const shared = { lake: 'part' };
    const { lake } = await scene.vision('--symbols BTCUSDT', shared);
    const part = await scene.vision(`--symbols BTCUSDT ${DAYS} --from 2026-10-20`, shared);
    expect([part.code, zipsOf(lake, 'daily'), ...(await codesOf(lake))]).toEqual([0, 36, 0, 0]);
  });

  it('is removed when all its days replace it, and these when it replaces them', async () => {
    const shared = { lake: 'both' };
    const { lake } = await scene.vision('--symbols BTCUSDT', shared);
    expect((await scene.vision(`--symbols BTCUSDT ${DAYS}`, shared)).code).toBe(0);
    expect([zipsOf(lake, 'monthly'), zipsOf(lake, 'daily'), ...(await codesOf(lake))]).toEqual([0, 36, 0, 0]);
    expect((await scene.vision('--symbols BTCUSDT --force --cadence monthly', shared)).code).toBe(0);
    expect([zipsOf(lake, 'monthly'), zipsOf(lake, 'daily'), ...(await codesOf(lake))]).toEqual([1, 5, 0, 0]);
  });
});
