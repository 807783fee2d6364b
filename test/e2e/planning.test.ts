/** What a run plans to fetch, by the listing of the archive and by what the lake holds. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBelow } from '../helpers/lake.js';
import { isListing, useScene } from '../helpers/scene.js';
import type { SceneRun } from '../helpers/scene.js';

const KLINES = 'data/futures/um/daily/klines';
const SERIES = 'um/klines/interval=1h/symbol=BTCUSDT';

describe('the plan', () => {
  const scene = useScene({
    archive: [
      { symbols: ['BTCUSDT', '币安人生USDT'], from: '2026-09-01', to: '2026-11-20' },
      { symbols: ['NEWUSDT'], from: '2026-11-10', to: '2026-11-20' },
      { symbols: ['NEWUSDT'], from: '2026-11-10', to: '2026-11-20', dataset: 'trades' },
      { symbols: ['GONEUSDC'], from: '2026-08-01', to: '2026-09-15' },
      { cadence: 'monthly', from: '2026-09-01', to: '2026-10-31' },
      { dataset: 'fundingRate', cadence: 'monthly', from: '2026-08-01', to: '2026-10-31' },
    ],
    change: (folder) => {
      const series = join(folder, KLINES, 'BTCUSDT/1h');
      writeFileSync(join(series, 'part-00000-0fae7358-c000.zip'), 'stray');
      for (const ending of ['', '.CHECKSUM']) rmSync(join(series, `BTCUSDT-1h-2026-11-15.zip${ending}`));
    },
    flags: '--interval 1h',
  });

  /** Decision and period of each line of `--dry-run`. */
  const periods = ({ stdout }: SceneRun): string[] =>
    linesOf(stdout).map(
      (line) => `${line.split('\t')[0] ?? ''} ${/(\d{4}-\d{2}(?:-\d{2})?)\.zip$/.exec(line)?.[1] ?? ''}`,
    );
  async function dryRun(flags: string): Promise<SceneRun> {
    const result = await scene.vision(`${flags} --dry-run`);
    expect([result.code, result.stderr]).toEqual([0, expect.not.stringContaining('cryptodl:')]);
    return result;
  }

  it('leaves out a listed symbol whose name is too long for a folder, and names it', async () => {
    const listed = join(scene.folder, KLINES, 'X'.repeat(250));
    mkdirSync(join(listed, '1h'), { recursive: true });
    writeFileSync(join(listed, '1h/x.zip'), 'x');
    const { code, stderr } = await scene.vision('--symbols all --days 1');
    rmSync(listed, { recursive: true });
    const warning = `left out of the archive, because the name is too long for a folder: ${'X'.repeat(40)}…`;
    expect([code, stderr]).toEqual([0, expect.stringContaining(warning)]);
  });

  it('prints fetch or absent, bytes and key of every object on stdout, and nothing else', async () => {
    const result = await dryRun('--symbols BTCUSDT --days 7');
    expect(periods(result)).toEqual([
      'fetch 2026-11-14',
      'absent 2026-11-15',
      ...['16', '17', '18', '19', '20'].map((day) => `fetch 2026-11-${day}`),
    ]);
    expect(linesOf(result.stdout)[0]).toMatch(
      /^fetch\t\d{3,}\tdata\/futures\/um\/daily\/klines\/BTCUSDT\/1h\/BTCUSDT-1h-2026-11-14\.zip$/,
    );
    expect(
      filesBelow(scene.scratch).filter((path) => join(scene.scratch, path).startsWith(result.lake)),
    ).toEqual([]);
  });

  it('requests no object that the listing does not have', async () => {
    const { summary } = await scene.vision(
      '--symbols NEWUSDT,BTCUSDT --from 2026-11-05 --to 2026-11-20 --json',
    );
    expect(summary).toMatchObject({
      outcomes: { ok: 26, absent: 6 },
      absent: { 'not-listed-yet': 5, hole: 1 },
    });
    expect(scene.archive.objectRequests()).toHaveLength(26 * 2);
    const marker = `marker=${KLINES}/BTCUSDT/1h/BTCUSDT-1h-2026-11-01`;
    expect(scene.archive.requests.filter(isListing).some((path) => path.includes(marker))).toBe(true);
  });

  it('continues a lake from where each series ends, with the settings of the series', async () => {
    const settings = '--format csv --timestamps ms';
    await scene.vision(`--symbols BTCUSDT --from 2026-11-16 --to 2026-11-17 ${settings}`, {
      lake: 'continued',
    });
    const { code, summary, lake } = await scene.vision('--json', { lake: 'continued', sceneFlags: [] });
    expect([code, summary]).toMatchObject([0, { outcomes: { ok: 3 } }]);
    const lines = linesOf(readFileSync(join(lake, 'binance', SERIES, '2026-11.csv'), 'utf8'));
    expect(lines).toHaveLength(1 + 5 * 24);
    expect(lines[1]).toMatch(/^\d{13},/);
  });

  it('is refused above --max-bytes, before the first request of an object', async () => {
    const { code, stderr, lake } = await scene.vision('--symbols BTCUSDT --days 7 --max-bytes 1kB');
    const message = /the plan is .* kB, more than --max-bytes 1.0 kB/;
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
    expect([scene.archive.objectRequests(), existsSync(join(lake, '_failures'))]).toEqual([[], false]);
  });

  it('counts the bytes of each object of a file that is rewritten, also of those that were not listed', async () => {
    const lake = { lake: 'rewritten' };
    const first = await scene.vision('--symbols NEWUSDT --to 2026-11-20 --json', lake);
    const bytes = Number(first.summary['bytes']);
    const fetchedIn = ({ stdout }: SceneRun): number =>
      linesOf(stdout)
        .map((line) => line.split('\t'))
        .reduce((sum, [action, size]) => sum + (action === 'fetch' ? Number(size) : 0), 0);
    const last = '--symbols NEWUSDT --days 1';
    expect(fetchedIn(await scene.vision(`${last} --force --dry-run`, lake))).toBe(bytes);
    const limited = await scene.vision(`${last} --force --max-bytes ${bytes - 1}`, lake);
    expect([limited.code, limited.stderr]).toEqual([2, expect.stringContaining('more than --max-bytes')]);
    scene.refuse(isListing, 403, '<Error><Code>AccessDenied</Code></Error>');
    expect(fetchedIn(await scene.vision(`${last} --force --dry-run`, lake))).toBe(bytes);
    scene.reset();
    rmSync(join(first.lake, 'binance/um/klines/interval=1h/symbol=NEWUSDT/2026-11.parquet'));
    expect(fetchedIn(await scene.vision(`${last} --dry-run`, lake))).toBe(bytes);
    const run = await scene.vision(`${last} --json --max-bytes ${bytes}`, lake);
    expect([run.code, run.summary['bytes']]).toEqual([0, bytes]);
  });
});

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}
