/** The folder that the runs of a machine share is a help: without it a run goes on. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempPath } from '../../src/files/temp-files.js';
import { FAST, argv, cryptodl } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { MISSING } from '../helpers/local-faults.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ dataset: 'metrics', from: '2026-10-01', to: '2026-10-02' }],
});
const { scratch } = scene;

const command = (
  ...flags: string[]
): string[] => argv`vision --dataset metrics --symbols BTCUSDT --from 2026-10-01 --to 2026-10-02 --archive-url
  ${scene.archive.url} ${FAST} ${flags}`;

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
      expect([result.code, result.signal]).toEqual([2, null]);
      expect(result.stderr).toContain(
        '--log-file /proc/of/mine/run.log cannot be written (no such file or folder)',
      );
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

/** A run with a state folder and a lake of its own. */
function place(): { state: string; run: (...flags: string[]) => Promise<CliResult> } {
  const root = mkdtempSync(join(scratch, 'in-'));
  const state = join(root, 'state');
  const where = ['--out', join(root, 'lake'), '--state-dir', state];
  const wrap = process.platform === 'linux' ? ['timeout', '--signal=KILL', '50'] : [];
  return { state, run: (...flags) => cryptodl(command(...where, ...flags), { wrap }) };
}

const MONTH_AGO = Date.now() / 1000 - 31 * 86_400;

describe('a file in the state folder that the tool did not write', () => {
  const FOREIGN = ['notes.txt', 'mine.json.gz', '12-notes.json.gz', `${'a'.repeat(40)}.json.gz.old`];
  const OWN = `${'0'.repeat(40)}.json.gz`;
  /** The name of a copy that a killed process was writing: no process has this number. */
  const STAGED = tempPath('', 'copy').replace(`.${process.pid}.`, '.4194305.');

  const fill = (folder: string): void => {
    mkdirSync(folder, { recursive: true });
    for (const name of [...FOREIGN, OWN, STAGED]) {
      writeFileSync(join(folder, name), 'x');
      utimesSync(join(folder, name), MONTH_AGO, MONTH_AGO);
    }
    writeFileSync(join(folder, 'large.bin'), '');
    truncateSync(join(folder, 'large.bin'), 300e6);
    utimesSync(join(folder, 'large.bin'), MONTH_AGO, MONTH_AGO);
    writeFileSync(join(folder, 'pruned'), 'mine');
    utimesSync(join(folder, 'pruned'), MONTH_AGO, MONTH_AGO);
  };

  it('stays in the cache, however old or large it is; copies that are old go', async () => {
    const { state, run } = place();
    fill(join(state, 'cache'));
    expect((await run()).code).toBe(0);
    const left = readdirSync(join(state, 'cache'));
    expect(left).toEqual(expect.arrayContaining([...FOREIGN, 'large.bin']));
    expect([left.includes(OWN), left.includes(STAGED)]).toEqual([false, false]);
    expect(readFileSync(join(state, 'cache/pruned'), 'utf8')).toBe('mine');
  });

  it('stays in a folder that a symbolic link in place of the cache leads to', async () => {
    const { state, run } = place();
    const elsewhere = `${state}-elsewhere`;
    fill(elsewhere);
    mkdirSync(state);
    symlinkSync(elsewhere, join(state, 'cache'));
    expect((await run()).code).toBe(0);
    expect(readdirSync(elsewhere)).toEqual(expect.arrayContaining([...FOREIGN, 'large.bin', OWN, STAGED]));
  });
});

describe.skipIf(process.platform === 'win32')('a pipe without a writer in the state folder', () => {
  it('in place of the bans costs a warning, not the run; doctor ends as well', async () => {
    const { state, run } = place();
    mkdirSync(state);
    execFileSync('mkfifo', [join(state, 'bans')]);
    const result = await run();
    expect([result.code, result.signal]).toEqual([0, null]);
    expect(result.stderr).toMatch(/^warning: the bans in .*bans cannot be read/m);
    const hosts = ['--archive-url', scene.archive.url, '--listing-url', scene.archive.url];
    const doctor = await cryptodl(['doctor', '--state-dir', state, ...hosts, '--json'], {
      wrap: ['timeout', '--signal=KILL', '50'],
    });
    expect([doctor.signal, doctor.events.some(({ check }) => check === 'bans')]).toEqual([null, true]);
    expect(existsSync(join(state, 'bans'))).toBe(true);
  }, 120_000);

  it('in place of a copy counts as none', async () => {
    const { state, run } = place();
    expect((await run()).code).toBe(0);
    const cache = join(state, 'cache');
    for (const name of readdirSync(cache).filter((each) => each.endsWith('.json.gz'))) {
      rmSync(join(cache, name));
      execFileSync('mkfifo', [join(cache, name)]);
    }
    scene.archive.fault = (path, request) => {
      if (!path.startsWith('/?')) return false;
      request.socket.destroy();
      return true;
    };
    const result = await run('--force');
    expect([result.code, result.signal]).toEqual([0, null]);
  }, 120_000);
});
