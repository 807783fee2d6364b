/** Settings that are not given come from the series that the lake holds, also with named symbols. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesBelow, manifestLines, parquetMetadata } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [
    { from: '2026-11-14', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'] },
    { from: '2026-10-01', to: '2026-10-31', cadence: 'monthly' },
  ],
  flags: '--interval 1h',
});
const BTC = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const ETH = 'binance/um/klines/interval=1h/symbol=ETHUSDT';

function filesOf(lake: string, folder: string): string[] {
  return filesBelow(join(lake, folder)).sort();
}

/** Name, physical and logical type of each column. */
async function columnTypes(file: string): Promise<unknown> {
  const { schema } = await parquetMetadata(file);
  return schema.map(({ name, type, logical_type }) => [name, type, logical_type]);
}

describe('a run with named symbols', () => {
  it('keeps partition, unit of times and format of each series', async () => {
    const shared = { lake: 'each' };
    await scene.vision('--symbols BTCUSDT --days 1 --format csv --partition day --timestamps iso', shared);
    await scene.vision('--symbols ETHUSDT --days 1', shared);
    const { code, lake, stderr } = await scene.vision('--symbols BTCUSDT,ETHUSDT --days 2', shared);
    expect([code, stderr]).toEqual([0, expect.stringContaining('partitions of csv and parquet')]);
    expect(filesOf(lake, BTC)).toEqual(['2026-11-19.csv', '2026-11-20.csv']);
    expect(filesOf(lake, ETH)).toEqual(['2026-11.parquet']);
    expect(readFileSync(join(lake, BTC, '2026-11-19.csv'), 'utf8')).toContain('\n2026-11-19T00:00:00');
  });

  it('writes a new series with the column types of the other series of its dataset', async () => {
    const shared = { lake: 'column-types' };
    await scene.vision('--symbols BTCUSDT --days 1 --timestamps utc --numbers string', shared);
    const { code, lake } = await scene.vision('--symbols ETHUSDT --days 1 --partition day', shared);
    const typesOf = (folder: string): Promise<unknown> =>
      columnTypes(join(lake, folder, filesOf(lake, folder)[0] ?? ''));
    expect([code, filesOf(lake, ETH)]).toEqual([0, ['2026-11-20.parquet']]);
    expect(await typesOf(ETH)).toEqual(await typesOf(BTC));
    const given = await scene.vision('--symbols ETHUSDT --days 1 --timestamps us --force', shared);
    expect(given.code).toBe(0);
    expect(await typesOf(ETH)).not.toEqual(await typesOf(BTC));
  });

  it('keeps --cadence', async () => {
    const shared = { lake: 'monthly' };
    await scene.vision('--symbols BTCUSDT --from 2026-10-01 --to 2026-10-31 --cadence monthly', shared);
    const { code, lake } = await scene.vision('--symbols BTCUSDT --from 2026-10-01 --to 2026-11-20', shared);
    expect([code, filesOf(lake, BTC)]).toEqual([0, ['2026-10.parquet']]);
    expect(scene.archive.objectRequests().filter((path) => path.includes('/daily/'))).toEqual([]);
  });

  it('rewrites all held days with --force, also those before the given ones', async () => {
    const shared = { lake: 'forced' };
    await scene.vision('--symbols BTCUSDT --days 5 --partition day', shared);
    const { code, lake, stderr } = await scene.vision(
      '--symbols BTCUSDT --days 2 --numbers string --force',
      shared,
    );
    expect([code, stderr]).toEqual([0, expect.stringContaining('5 ok in ')]);
    expect(filesOf(lake, BTC)).toEqual(['16', '17', '18', '19', '20'].map((day) => `2026-11-${day}.parquet`));
    const rewritten = manifestLines(join(lake, BTC)).slice(-5);
    const isNew = expect.objectContaining({ numbers: 'string' }) as unknown;
    expect(rewritten.map((line) => line['settings'])).toEqual(rewritten.map(() => isNew));
    const again = await scene.vision('--symbols BTCUSDT --days 5', shared);
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('5 skipped')]);
  });

  it('writes another given format beside the held one, with its own settings', async () => {
    const shared = { lake: 'beside' };
    await scene.vision('--symbols BTCUSDT --days 1 --format csv --partition day', shared);
    const { lake } = await scene.vision('--symbols BTCUSDT --days 1 --format parquet', shared);
    expect(filesOf(lake, BTC)).toEqual(['2026-11-20.csv', '2026-11.parquet']);
    // Only Parquet has numbers as text, so this setting does not fit the held CSV.
    const other = await scene.vision('--symbols ETHUSDT --days 1 --format csv', shared);
    await scene.vision('--symbols ETHUSDT --days 1 --numbers string', shared);
    expect(filesOf(other.lake, ETH)).toEqual(['2026-11.csv', '2026-11.parquet']);
  });

  it('continues the files of the archive as files of the archive', async () => {
    const shared = { lake: 'zips' };
    await scene.vision('--symbols BTCUSDT --days 1 --format zip', shared);
    const { lake, stderr } = await scene.vision('--symbols BTCUSDT --days 2 --fill rest', shared);
    expect([filesOf(lake, BTC), filesBelow(join(lake, 'data'), '.zip')]).toEqual([
      [],
      [expect.stringContaining('2026-11-19.zip'), expect.stringContaining('2026-11-20.zip')],
    ]);
    expect(stderr).toMatch(/ data {7}\S*\/data\n/);
  });
});
