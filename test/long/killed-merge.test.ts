/** A merge that is killed at each of its renames, or finds the disk full, leaves a sound lake, and the next merge completes it. */
import { createHash } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl, cryptodlProcess } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { MISSING, strace } from '../helpers/local-faults.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-25', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'] }],
});
const why = MISSING.strace === undefined ? '' : ` (skipped: ${MISSING.strace})`;

function contentOf(lake: string): string[] {
  return filesBelow(lake)
    .filter((path) => /^(binance|data|_manifests)\//.test(path))
    .map(
      (path) =>
        `${path} ${createHash('sha256')
          .update(readFileSync(join(lake, path)))
          .digest('hex')}`,
    );
}

describe.skipIf(MISSING.strace !== undefined)(`a merge under strace${why}`, () => {
  it.each(['parquet', 'zip'])(
    'of %s files may be killed at each of its renames',
    async (format) => {
      const first = `--interval 1h --symbols all --from 2026-10-25 --to 2026-11-05 --format ${format}`;
      const { lake } = await scene.vision(first);
      const base = join(scene.newFolder(), 'base');
      await cryptodl(['merge', lake, '--out', base]);
      // A further day: files of the target are replaced.
      await scene.vision(`--interval 1h --symbols all --from 2026-10-25 --to 2026-11-07 --format ${format}`, {
        lake: lake.slice(scene.scratch.length + 1),
      });
      let kills = 0;
      for (let at = 1; ; at += format === 'zip' ? 3 : 1) {
        const out = join(scene.newFolder(), 'joined');
        await cryptodl(['merge', base, '--out', out]);
        const killed = await cryptodlProcess(
          ['merge', lake, '--out', out],
          strace(`rename:signal=KILL:when=${at}`),
        );
        if (killed.code === 0) break;
        kills += 1;
        const found = await cryptodl(['verify', '--out', out, '--json']);
        const kinds = found.events.flatMap(({ event, kind }) => (event === 'finding' ? [kind] : []));
        // A zip without its manifest line is a file that the next merge takes.
        const allowed = format === 'zip' ? ['leftover', 'unlisted', 'sidecar'] : ['leftover', 'damaged'];
        expect(kinds.filter((kind) => !allowed.includes(String(kind)))).toEqual([]);
        const again = await cryptodl(['merge', lake, '--out', out]);
        expect([again.code, again.stdout]).toEqual([0, '']);
        expect((await cryptodl(['verify', '--out', out, '--deep'])).code).toBe(0);
        const whole = join(scene.newFolder(), 'whole');
        await cryptodl(['merge', lake, '--out', whole]);
        expect(contentOf(out).filter((line) => !line.startsWith('_manifests'))).toEqual(
          contentOf(whole).filter((line) => !line.startsWith('_manifests')),
        );
        rmSync(out, { recursive: true });
      }
      expect(kills).toBeGreaterThan(format === 'zip' ? 2 : 5);
    },
    240_000,
  );

  it.each(['fsync', 'rename', 'write'])(
    'that cannot %s on a full disk ends with one line, and the next merge completes it',
    async (call) => {
      const { lake } = await scene.vision('--interval 1h --symbols all --days 3');
      const out = join(scene.newFolder(), 'joined');
      // The renames of the lock and of files of the journal come first.
      const inject = `${call}:error=ENOSPC:when=${call === 'rename' ? '3' : '1'}`;
      const paths =
        call === 'write' ? [join(out, '_manifests/binance/um/klines/interval=1h/symbol=BTCUSDT.jsonl')] : [];
      const full = await cryptodlProcess(['merge', lake, '--out', out], strace(inject, ...paths));
      expect([full.code, full.stderr]).toEqual([
        1,
        expect.stringContaining('cryptodl: the disk is full: ENOSPC'),
      ]);
      expect((await cryptodl(['merge', lake, '--out', out])).code).toBe(0);
      expect((await cryptodl(['verify', '--out', out, '--deep'])).code).toBe(0);
    },
    60_000,
  );
});
