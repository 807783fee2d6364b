/** Paths with characters that are patterns for DuckDB: a run reads its own files, and no file that such a pattern finds. */
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-11-11', to: '2026-11-20', symbols: ['BTCUSDT', 'BTC[U]SDT'] }],
  flags: '--interval 1h',
});

const ROWS =
  'SELECT symbol, count(*) AS rows, sum(close) AS sum FROM um_klines GROUP BY symbol ORDER BY symbol';
const rowsOf = async (lake: string): Promise<unknown> => {
  const { stdout } = await cryptodl(['sql', ROWS, '--out', lake, '--json']);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
};

describe('characters of patterns in a path', () => {
  it('of a lake and of a symbol are only characters', async () => {
    const whole = await scene.vision('--symbols all --days 10', { lake: 'lake' });
    const rows = await rowsOf(whole.lake);
    expect(rows).toMatchObject([
      { symbol: 'BTCUSDT', rows: 240 },
      { symbol: 'BTC[U]SDT', rows: 240 },
    ]);
    // The pattern of each of these names finds the folder of another one.
    for (const lake of ['la[k]e', 'la?e', 'l*e']) {
      await scene.vision('--symbols all --from 2026-11-11 --to 2026-11-14', { lake });
      const { code, lake: path } = await scene.vision('--symbols all --days 10', { lake });
      expect([lake, code, await rowsOf(path)]).toEqual([lake, 0, rows]);
      const verified = await cryptodl(['verify', '--deep', '--out', path]);
      expect([lake, verified.code]).toEqual([lake, 0]);
    }
  });
});
