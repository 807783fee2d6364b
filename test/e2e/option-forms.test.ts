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
});

describe('other names of markets and intervals', () => {
  const expected = ['2026-11-20', '2026-11-20'];
  const one = ['vision', '--symbols', 'BTCUSDT', '--days', '1'];

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
});
