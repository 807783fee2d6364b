/** An export that is killed at each of its renames, or finds the disk full, leaves no half file, and the next export completes it. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl, cryptodlProcess } from '../helpers/cli.js';
import type { CliOptions } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { MISSING, mounted, strace } from '../helpers/local-faults.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-25', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT', 'SOLUSDT'] }],
});
const why = MISSING.strace === undefined ? '' : ` (skipped: ${MISSING.strace})`;

/** Names and digests of the files, without the record. */
function contentOf(target: string): Record<string, string> {
  if (!existsSync(target)) return {};
  return Object.fromEntries(
    filesBelow(target)
      .filter((path) => !path.startsWith('.cryptodl-export/'))
      .map((path) => [
        path,
        createHash('sha256')
          .update(readFileSync(join(target, path)))
          .digest('hex'),
      ]),
  );
}

describe.skipIf(MISSING.strace !== undefined)(`an export under strace${why}`, () => {
  it.each(['freqtrade', 'csv', 'lean'])(
    'of %s may be killed at each of its renames and syncs',
    async (engine) => {
      const flags = '--interval 1h --symbols all';
      const { lake } = await scene.vision(`${flags} --from 2026-10-25 --to 2026-11-05`);
      const run = (target: string, options?: CliOptions) =>
        (options === undefined ? cryptodl : cryptodlProcess)(
          ['export', engine, '--out', lake, '--target', target],
          options,
        );
      const earlier = join(scene.newFolder(), 'earlier');
      await run(earlier);
      const before = contentOf(earlier);
      // A further day: each file of the target is replaced.
      const continued = { lake: lake.slice(scene.scratch.length + 1) };
      const targets = await Promise.resolve(
        Array.from({ length: 12 }, () => join(scene.newFolder(), 'target')),
      );
      for (const target of targets) await run(target);
      await scene.vision(`${flags} --from 2026-10-25 --to 2026-11-07`, continued);
      const whole = join(scene.newFolder(), 'whole');
      await run(whole);
      const after = contentOf(whole);
      expect(Object.keys(after)).toHaveLength(3);
      const kills = { rename: 0, fsync: 0 };
      for (const [at, target] of targets.entries()) {
        const call = (['rename', 'fsync'] as const)[at % 2] ?? 'rename';
        const fault = `${call}:signal=KILL:when=${Math.floor(at / 2) + 1}`;
        const killed = await run(target, strace(fault));
        if (killed.code === null || killed.code > 128) kills[call] += 1;
        for (const [file, digest] of Object.entries(contentOf(target)))
          expect([before[file], after[file]]).toContain(digest);
        const again = await run(target);
        expect([again.code, again.stdout]).toEqual([0, '']);
        expect(contentOf(target)).toEqual(after);
        expect(filesBelow(target).filter((path) => path.includes('staged'))).toEqual([]);
        const third = await cryptodl(['export', engine, '--out', lake, '--target', target, '--json']);
        expect(third.events.filter(({ event }) => event === 'file').map(({ outcome }) => outcome)).toEqual([
          'unchanged',
          'unchanged',
          'unchanged',
        ]);
      }
      // Before a file or its state is on the disk, and before it has its name.
      for (const number of Object.values(kills)) expect(number).toBeGreaterThan(2);
    },
    300_000,
  );
});

const whyFull = MISSING.mount === undefined ? '' : ` (skipped: ${MISSING.mount})`;

describe.skipIf(MISSING.mount !== undefined)(`an export on a full disk${whyFull}`, () => {
  it('ends with one line, and leaves whole files and no staged ones', async () => {
    const { lake } = await scene.vision('--interval 1h --symbols all --from 2026-10-25 --to 2026-11-05');
    const whole = join(scene.newFolder(), 'whole');
    await cryptodl(['export', 'csv', '--out', lake, '--target', whole]);
    const sizes = filesBelow(whole).map((path) => statSync(join(whole, path)).size);
    const target = join(mounted(`size=${Math.ceil((Math.max(...sizes) * 2.2) / 4096) * 4}k`), 'target');
    const full = await cryptodl(['export', 'csv', '--out', lake, '--target', target]);
    expect([full.code, full.stdout]).toEqual([1, '']);
    expect(full.stderr).toContain('the disk is full');
    expect(full.stderr).not.toMatch(/\n\s+at /);
    const kept = contentOf(target);
    for (const [file, digest] of Object.entries(kept)) expect(contentOf(whole)[file]).toBe(digest);
    expect(Object.keys(kept).length).toBeLessThan(3);
    expect(filesBelow(target).filter((path) => path.includes('staged'))).toEqual([]);
  });
});
