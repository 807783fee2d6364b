/** `--failures FILE`: what may lie at that path, and what becomes of it. */
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { MISSING } from '../helpers/local-faults.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({ archive: [{ from: '2026-11-19', to: '2026-11-20' }] });
const { scratch } = scene;
const KEY = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-20.zip';
const WANTED = ['--symbols', 'BTCUSDT', '--interval', '1h', '--days', '1', '--out', 'lake'];
const NOTES = 'my notes\nof a year\n';
let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(scratch, 'in-'));
});

const env = (): Record<string, string> => ({
  CRYPTODL_ARCHIVE_URL: scene.archive.url,
  CRYPTODL_NOW: '2026-11-21T12:00:00Z',
});
const cli = (argv: readonly string[]): Promise<CliResult> =>
  cryptodl([...argv, ...FAST], { cwd, env: env() });
const vision = (failures: string): Promise<CliResult> => cli(['vision', ...WANTED, '--failures', failures]);

function failing(): void {
  scene.archive.fault = (path, _request, response) => {
    if (path !== `/${KEY}`) return false;
    response.writeHead(503).end();
    return true;
  };
}

describe('a file that is no failure report is refused before the run', () => {
  it('a file with other content, a symbolic link, a folder', async () => {
    writeFileSync(join(cwd, 'notes.txt'), NOTES);
    symlinkSync('notes.txt', join(cwd, 'link'));
    mkdirSync(join(cwd, 'reports'));
    for (const [path, problem] of [
      ['notes.txt', 'is not a failure report, and is not replaced'],
      ['link', 'is a link, and is not replaced'],
      ['reports', 'is a folder, and is not replaced'],
    ] as const) {
      const result = await vision(path);
      expect([result.code, result.stderr.split('\n')[0]]).toEqual([
        2,
        `cryptodl: --failures ${path} ${problem}`,
      ]);
    }
    expect(existsSync(join(cwd, 'lake/binance'))).toBe(false);
    expect(readFileSync(join(cwd, 'notes.txt'), 'utf8')).toBe(NOTES);
    expect(lstatSync(join(cwd, 'link')).isSymbolicLink()).toBe(true);
  });

  it.skipIf(MISSING.user !== undefined)('a folder that another user has', async () => {
    chmodSync(scratch, 0o755);
    chmodSync(cwd, 0o755);
    mkdirSync(join(cwd, 'lake'));
    chownSync(join(cwd, 'lake'), 65534, 65534);
    const wrap = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    for (const [name, content] of [['report.jsonl'], ['empty', '']]) {
      if (content !== undefined) writeFileSync(join(cwd, name ?? ''), content, { mode: 0o644 });
      const argv = ['vision', ...WANTED, '--failures', name ?? '', ...FAST];
      const result = await cryptodl(argv, { cwd, env: env(), wrap });
      expect([result.code, result.stderr]).toEqual([
        2,
        expect.stringContaining(`--failures ${name ?? ''} cannot be written (no permission)`),
      ]);
    }
    expect(existsSync(join(cwd, 'lake/binance'))).toBe(false);
  });

  it('a file in the place of the folder that has the reports of runs without --failures', async () => {
    mkdirSync(join(cwd, 'lake'));
    writeFileSync(join(cwd, 'lake/_failures'), NOTES);
    const result = await cli(['vision', ...WANTED]);
    expect([result.code, result.stderr]).toEqual([2, expect.stringContaining('failures is not a folder')]);
    expect(existsSync(join(cwd, 'lake/binance'))).toBe(false);
  });

  it('also of a run of jobs, and of a retry', async () => {
    writeFileSync(join(cwd, 'notes.txt'), NOTES);
    const job = 'jobs: { a: { verb: vision, symbols: BTCUSDT, interval: 1h, days: 1, out: lake } }';
    writeFileSync(join(cwd, 'jobs.yaml'), job);
    writeFileSync(join(cwd, 'notes-a.txt'), NOTES);
    const jobs = await cli(['run', 'jobs.yaml', '--failures', 'notes.txt']);
    expect([jobs.code, jobs.stderr]).toEqual([
      2,
      expect.stringContaining('failures notes-a.txt is not a failure report'),
    ]);
    failing();
    await vision('report.jsonl');
    scene.archive.fault = undefined;
    expect((await cli(['retry', 'report.jsonl', '--failures', 'notes.txt'])).code).toBe(2);
    expect(readFileSync(join(cwd, 'notes.txt'), 'utf8')).toBe(NOTES);
    writeFileSync(join(cwd, 'report.jsonl.partial'), NOTES);
    expect((await cli(['retry', 'report.jsonl'])).code).toBe(0);
    expect(readFileSync(join(cwd, 'report.jsonl.partial'), 'utf8')).toBe(NOTES);
  });
});

describe('--log-file', () => {
  const logged = (file: string): Promise<CliResult> => {
    const wrap = process.platform === 'linux' ? ['timeout', '--signal=KILL', '50'] : [];
    const asked = ['vision', ...WANTED, '--log-file', file, '--log-level', 'trace', ...FAST];
    return cryptodl(asked, { cwd, env: env(), wrap });
  };

  it.skipIf(process.platform !== 'linux')('that takes nothing costs one warning, not the run', async () => {
    const result = await logged('/dev/full');
    expect(result.code).toBe(0);
    expect(result.stderr.match(/^warning: --log-file \/dev\/full .*ENOSPC/gm)).toHaveLength(1);
  });
});

describe('files that the report may replace', () => {
  it('an empty file takes the report, and stays when nothing fails', async () => {
    writeFileSync(join(cwd, 'empty'), '');
    expect((await vision('empty')).code).toBe(0);
    expect(readFileSync(join(cwd, 'empty'), 'utf8')).toBe('');
    writeFileSync(join(cwd, 'other'), '');
    failing();
    expect((await cli(['vision', ...WANTED, '--force', '--failures', 'other'])).code).toBe(3);
    expect(readFileSync(join(cwd, 'other'), 'utf8')).toContain(KEY);
  });

  it('the link to a report is retried: without a failure, the file behind the link is removed', async () => {
    failing();
    await vision('report.jsonl');
    symlinkSync('report.jsonl', join(cwd, 'latest'));
    scene.archive.fault = undefined;
    expect((await cli(['retry', 'latest'])).code).toBe(0);
    expect(lstatSync(join(cwd, 'latest')).isSymbolicLink()).toBe(true);
    expect(existsSync(join(cwd, 'report.jsonl'))).toBe(false);
  });
});
