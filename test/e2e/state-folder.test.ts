/** The folder that the runs of a machine share is a help: without it a run goes on. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { MISSING } from '../helpers/local-faults.js';

const scratch = scratchFolder();
let archive: TestArchive;
beforeAll(async () => {
  makeArchive(join(scratch, 'archive'), {
    market: 'um',
    dataset: 'metrics',
    symbols: ['BTCUSDT'],
    from: '2026-10-01',
    to: '2026-10-02',
    cadence: 'daily',
  });
  archive = await startArchive(join(scratch, 'archive'));
});
afterAll(() => archive.close());

const command = (...flags: string[]): string[] => [
  ...'vision --dataset metrics --symbols BTCUSDT --from 2026-10-01 --to 2026-10-02'.split(' '),
  '--archive-url',
  archive.url,
  ...FAST,
  ...flags,
];

/** Node's own `mkdir -p` never ends below /proc. */
describe.skipIf(process.platform !== 'linux')(
  'below /proc',
  () => {
    const wrap = ['timeout', '--signal=KILL', '50'];

    it('a state folder costs one warning, not the run', async () => {
      const out = join(scratch, 'state');
      const result = await cryptodl(command('--out', out, '--state-dir', '/proc/.local/state'), { wrap });
      expect([result.code, result.signal]).toEqual([0, null]);
      expect(result.stderr.match(/^warning: .*\/proc\/.local\/state/gm)).toHaveLength(1);
    });

    it.each([
      ['--out', ['--out', '/proc/lake/of/mine']],
      ['--temp-dir', ['--out', join(scratch, 'temp'), '--temp-dir', '/proc/spool']],
    ])('a folder for data is refused by its name: %s', async (flag, flags) => {
      const result = await cryptodl(command(...flags), { wrap });
      expect([result.code, result.signal]).toEqual([1, null]);
      expect(result.stderr).toMatch(new RegExp(`^cryptodl: ${flag} /proc/.* cannot be used`, 'm'));
    });

    it('a log file ends the run', async () => {
      const flags = ['--out', join(scratch, 'log'), '--log-file', '/proc/of/mine/run.log'];
      const result = await cryptodl(command(...flags), { wrap });
      expect([result.code, result.signal]).toEqual([1, null]);
      expect(result.stderr).toContain("mkdir '/proc/of'");
    });
  },
  120_000,
);

it.skipIf(MISSING.user !== undefined)(
  'without HOME, and for a user without an account, a folder must be given',
  async () => {
    const wrap = ['env', '-u', 'CRYPTODL_STATE_DIR', 'setpriv', '--reuid=54321', '--clear-groups'];
    const out = join(scratch, 'homeless');
    const result = await cryptodl(command('--out', out), { wrap });
    expect([result.code, result.stderr]).toEqual([
      2,
      expect.stringMatching(
        /^cryptodl: HOME is not set, and no home folder of this user is known \(\w+\)\n.*--state-dir DIR\n/,
      ),
    ]);
    expect(existsSync(out)).toBe(false);
  },
);
