/** Forms of dates, markets and intervals that mean the same, in every source of options. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { vision } from '../../src/library.js';
import { cryptodlOk } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({ archive: [{ from: '2026-10-30', to: '2026-11-20' }] });
const cwd = scene.scratch;
const NOW = '2026-11-21T12:00:00Z';

/** First and last day of the plan. */
async function planned(args: readonly string[], env: Record<string, string> = {}): Promise<string[]> {
  const { stdout } = await cryptodlOk([...args, '--archive-url', scene.archive.url, '--dry-run'], {
    cwd,
    env: { CRYPTODL_NOW: NOW, ...env },
  });
  const days = [...stdout.matchAll(/BTCUSDT-1h-(\d{4}-\d{2}-\d{2})\.zip/g)].map(([, day = '']) => day).sort();
  return [days[0] ?? '', days.at(-1) ?? ''];
}

const BARS = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h'];

describe('words for dates', () => {
  it.each([
    ['2026-11-19', 'yesterday', '2026-11-19', '2026-11-20'],
    ['20261119', 'today', '2026-11-19', '2026-11-20'],
    ['yesterday', 'now', '2026-11-20', '2026-11-20'],
    ['2026-11', '2026-11', '2026-11-01', '2026-11-20'],
    ['2026-10-31', '2026-10', '2026-10-31', '2026-10-31'],
    ['2026-11-01', '2026', '2026-11-01', '2026-11-20'],
  ])('--from %s --to %s', async (from, to, first, last) => {
    expect(await planned([...BARS, '--from', from, '--to', to])).toEqual([first, last]);
  });

  it('mean the same in the environment, a config file and a job', async () => {
    const expected = ['2026-11-01', '2026-11-20'];
    expect(await planned(BARS, { CRYPTODL_FROM: '2026-11', CRYPTODL_TO: 'yesterday' })).toEqual(expected);
    writeFileSync(join(cwd, 'my.yaml'), 'from: 20261101\nto: today\n');
    expect(await planned([...BARS, '--config', 'my.yaml'])).toEqual(expected);
    writeFileSync(
      join(cwd, 'jobs.yaml'),
      'jobs:\n  bars: { verb: vision, symbols: BTCUSDT, interval: 1h, from: 2026-11, to: 2026 }\n',
    );
    expect(await planned(['run', 'jobs.yaml'])).toEqual(expected);
  });

  it('mean the same in the library', async () => {
    const options = { symbols: 'BTCUSDT', interval: '1h', archiveUrl: scene.archive.url, now: NOW };
    const out = join(cwd, 'from-library');
    const run = vision({ ...options, out, from: '2026-11', to: 'yesterday', stateDir: join(cwd, 'state') });
    expect((await run.summary()).outcomes.ok).toBe(20);
  });

  it('of a month or year are shown as their day by --print-options, and other words as they are', async () => {
    const { stdout } = await cryptodlOk([...BARS, '--from', '2024', '--to', 'Yesterday', '--print-options']);
    expect(stdout).toMatch(/^from +2024-01-01 {2}\(flag\)$/m);
    expect(stdout).toMatch(/^to +yesterday {2}\(flag\)$/m);
    const month = await cryptodlOk([...BARS, '--to', '2024-02', '--print-options']);
    expect(month.stdout).toMatch(/^to +2024-02-29 {2}\(flag\)$/m);
  });
});

describe('other names of markets and intervals', () => {
  const expected = ['2026-11-20', '2026-11-20'];
  const one = ['vision', '--symbols', 'BTCUSDT', '--days', '1'];

  it.each([
    ['usdm', '60m'],
    ['USD-M', '1H'],
    ['futures', '1hour'],
    ['perp,um', '60min,1h'],
  ])('--market %s --interval %s', async (market, interval) => {
    expect(await planned([...one, '--market', market, '--interval', interval])).toEqual(expected);
  });

  it('mean the same in the environment, a config file, a job and the library', async () => {
    expect(await planned(one, { CRYPTODL_MARKET: 'usdm', CRYPTODL_INTERVAL: '60m' })).toEqual(expected);
    writeFileSync(join(cwd, 'names.yaml'), 'market: linear\ninterval: 60m\n');
    expect(await planned([...one, '--config', 'names.yaml'])).toEqual(expected);
    writeFileSync(
      join(cwd, 'names-jobs.yaml'),
      'jobs:\n  a: { verb: vision, symbols: BTCUSDT, market: futures, interval: 1hour, days: 1 }\n',
    );
    expect(await planned(['run', 'names-jobs.yaml'])).toEqual(expected);
    const options = { symbols: 'BTCUSDT', days: 1, archiveUrl: scene.archive.url, now: NOW };
    const out = join(cwd, 'names-library');
    const given = { market: 'usdm' as 'um', interval: '60m', stateDir: join(cwd, 'state') };
    expect((await vision({ ...options, ...given, out }).summary()).outcomes.ok).toBe(1);
    expect(filesBelow(join(out, 'binance'), '.parquet')).toEqual([
      'um/klines/interval=1h/symbol=BTCUSDT/2026-11.parquet',
    ]);
  });

  it('select series of the lake, and are shown by their own names', async () => {
    const lake = ['--market', 'futures', '--interval', '60min', '--out', 'names-library'];
    const env = { CRYPTODL_NOW: NOW };
    const covered = await cryptodlOk(['coverage', ...lake], { cwd, env });
    expect(covered.stdout).toMatch(/^um klines 1h /);
    await cryptodlOk(['verify', ...lake], { cwd, env });
    const { stdout } = await cryptodlOk(['vision', ...lake, '--print-options'], { cwd });
    expect(stdout).toMatch(/^market +um {2}\(flag\)$/m);
    expect(stdout).toMatch(/^interval +1h {2}\(flag\)$/m);
  });
});
