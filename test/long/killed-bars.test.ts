/** `cryptodl bars` that is killed at each of its renames leaves a sound lake, and the same command again gives the lake of an undisturbed run. */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk, cryptodlProcess } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { MISSING, strace } from '../helpers/local-faults.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-25', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'], interval: '1m' }],
});
const why = MISSING.strace === undefined ? '' : ` (skipped: ${MISSING.strace})`;

function barsOf(lake: string): string[] {
  return filesBelow(join(lake, 'binance/um/bars')).map(
    (path) => `${path} ${readFileSync(join(lake, 'binance/um/bars', path)).toString('base64')}`,
  );
}

describe.skipIf(MISSING.strace !== undefined)(`bars under strace${why}`, () => {
  it('may be killed at each rename and at each append of a manifest', async () => {
    const first = await scene.vision('--interval 1m --symbols all --from 2026-10-25 --to 2026-11-05', {
      lake: 'killed',
    });
    await cryptodlOk(['bars', '15m', '--out', first.lake]);
    // Further days: a file is replaced, and its rows of other days stay.
    const { lake } = await scene.vision('--interval 1m --symbols all --from 2026-10-25 --to 2026-11-08', {
      lake: 'killed',
    });
    const whole = join(scene.newFolder(), 'whole');
    cpSync(lake, whole, { recursive: true });
    await cryptodlOk(['bars', '15m', '--out', whole]);
    let kills = 0;
    for (let at = 1; ; at += 1) {
      const out = join(scene.newFolder(), 'lake');
      cpSync(lake, out, { recursive: true });
      const killed = await cryptodlProcess(
        ['bars', '15m', '--out', out],
        strace(`rename,fsync:signal=KILL:when=${at}`),
      );
      if (killed.code === 0) break;
      kills += 1;
      const found = await cryptodl(['verify', '--out', out, '--json']);
      const kinds = found.events.flatMap(({ event, kind }) => (event === 'finding' ? [kind] : []));
      expect(kinds.filter((kind) => kind !== 'leftover')).toEqual([]);
      await cryptodlOk(['bars', '15m', '--out', out]);
      expect((await cryptodl(['verify', '--out', out, '--deep'])).code).toBe(0);
      expect(barsOf(out)).toEqual(barsOf(whole));
      rmSync(out, { recursive: true });
    }
    expect(kills).toBeGreaterThan(3);
  }, 240_000);

  it('that finds the disk full ends with one line, and the next run completes it', async () => {
    const { lake } = await scene.vision('--interval 1m --symbols BTCUSDT --days 3');
    const full = await cryptodlProcess(['bars', '15m', '--out', lake], strace('fsync:error=ENOSPC:when=1'));
    expect([full.code, full.stderr.split('\n').length]).toEqual([1, expect.any(Number)]);
    expect(full.stderr).toContain('full');
    await cryptodlOk(['bars', '15m', '--out', lake]);
    expect((await cryptodl(['verify', '--out', lake, '--deep'])).code).toBe(0);
  });
});
