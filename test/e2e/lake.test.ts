import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import {
  filesBelow,
  manifestLines,
  parquetDigests,
  parquetMetadata,
  readCsv,
  readParquet,
} from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/metrics/symbol=BTCUSDT';

describe('the lake', () => {
  const scene = useScene({
    archive: [
      { dataset: 'metrics', from: '2026-06-01', to: '2026-06-30' },
      { market: 'spot', from: '2024-12-30', to: '2025-01-02' },
    ],
  });
  const { scratch } = scene;

  const args = (
    out: string,
    from: string,
    to: string,
    flags: readonly string[] = [],
  ): string[] => argv`vision --dataset metrics --symbols BTCUSDT --from 2026-06-${from} --to 2026-06-${to} --archive-url
    ${scene.archive.url} --out ${join(scratch, out)} --json ${FAST} ${flags}`;
  const run = (out: string, from: string, to: string, flags: readonly string[] = []): Promise<CliResult> =>
    cryptodlOk(args(out, from, to, flags));
  const spot = (out: string, flags: readonly string[]): Promise<CliResult> =>
    cryptodlOk(argv`vision --market spot --interval 1h --symbols BTCUSDT --from 2024-12-30 --to 2025-01-02
      --archive-url ${scene.archive.url} --out ${join(scratch, out)} ${FAST} ${flags}`);

  it.each([
    [[]],
    [['--as-published']],
    [['--format', 'csv']],
    [['--format', 'csv', '--as-published', '--timestamps', 'iso']],
    [['--numbers', 'string']],
  ])('days that come in any order make the same partition as all at once: %s', async (flags) => {
    const name = flags.join('');
    for (const [from, to] of [
      ['22', '24'],
      ['18', '19'],
      ['28', '30'],
      ['20', '27'],
    ] as const)
      await run(`pieces${name}`, from, to, flags);
    await run(`whole${name}`, '18', '30', flags);
    const ending = flags.includes('csv') ? 'csv' : 'parquet';
    const read = (out: string): Promise<unknown[]> | unknown[] =>
      ending === 'csv'
        ? readCsv(join(scratch, out, SERIES, '2026-06.csv'))
        : readParquet(join(scratch, out, SERIES, '2026-06.parquet'));
    expect(await read(`pieces${name}`)).toEqual(await read(`whole${name}`));
    expect(await read(`whole${name}`)).toHaveLength(13 * 288);
  });

  it('sorts by time, keeps both rows of the label seam, and keeps the published order when asked', async () => {
    await run('sorted', '24', '26');
    await run('published', '24', '26', ['--as-published']);
    const times = async (out: string): Promise<number[]> =>
      (await readParquet(join(scratch, out, SERIES, '2026-06.parquet'))).map((row) =>
        (row['create_time'] as Date).getTime(),
      );
    const sorted = await times('sorted');
    expect(sorted).toEqual([...sorted].sort((a, b) => a - b));
    expect(sorted.filter((time) => time === Date.UTC(2026, 5, 25))).toHaveLength(2);
    const published = await times('published');
    expect(published).not.toEqual(sorted);
    expect([...published].sort((a, b) => a - b)).toEqual(sorted);
  });

  it('remembers every object with its digest, rows and times', async () => {
    await run('remembers', '29', '30');
    const [line] = manifestLines(join(scratch, 'remembers', SERIES));
    expect(line).toMatchObject({
      v: 1,
      kind: 'object',
      cadence: 'daily',
      period: '2026-06-29',
      rows: 288,
      duplicates: 0,
      verified: 'sidecar',
      first: '2026-06-29T00:00:00Z',
      last: '2026-06-29T23:55:00Z',
      file: '2026-06.parquet',
    });
    expect(line?.['fileBytes']).toBe(statSync(join(scratch, 'remembers', SERIES, '2026-06.parquet')).size);
    const metadata = await parquetMetadata(join(scratch, 'remembers', SERIES, '2026-06.parquet'));
    const provenance = metadata.key_value_metadata?.find(({ key }) => key === 'cryptodl')?.value ?? '';
    expect(JSON.parse(provenance)).toMatchObject({
      market: 'um',
      dataset: 'metrics',
      symbol: 'BTCUSDT',
      period: '2026-06',
      objects: [{ key: line?.['key'], sha256: line?.['sha256'] }, {}],
    });
  });

  it('a snapshot of hard links stays as it was when the lake goes on, as Parquet, CSV and zips', async () => {
    for (const format of ['parquet', 'csv', 'zip']) {
      const lake = `linked-${format}`;
      await cryptodlOk(args(lake, '01', '03', ['--format', format]));
      const snapshot = join(scratch, `${lake}-snapshot`);
      execFileSync('cp', ['-al', join(scratch, lake), snapshot]);
      const before = filesBelow(snapshot).map((file) => readFileSync(join(snapshot, file), 'base64'));
      await cryptodlOk(args(lake, '02', '05', ['--format', format, '--force']));
      for (const place of [snapshot, join(scratch, lake)])
        expect((await cryptodl(['verify', '--out', place])).stderr).toContain('all sound');
      expect(new Set(manifestLines(join(scratch, lake, SERIES)).map(({ key }) => key)).size).toBe(5);
      expect(filesBelow(snapshot).map((file) => readFileSync(join(snapshot, file), 'base64'))).toEqual(
        before,
      );
    }
  });

  it('other settings than the series holds are refused with the folder; --force rewrites the series; another format stands beside', async () => {
    const out = 'settings';
    await run(out, '01', '04');
    const refused = await cryptodl(args(out, '04', '05', ['--partition', 'day']));
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(join(scratch, out, SERIES));
    expect(refused.stderr).toContain('was written with partition month, but --partition is day');
    await run(out, '04', '05', ['--format', 'csv']);
    await run(out, '04', '05', ['--partition', 'day', '--force']);
    expect(filesBelow(join(scratch, out, SERIES))).toEqual([
      '2026-06-01.parquet',
      '2026-06-02.parquet',
      '2026-06-03.parquet',
      '2026-06-04.parquet',
      '2026-06-05.parquet',
      '2026-06.csv',
    ]);
    const back = await run(out, '01', '05', ['--partition', 'month', '--force']);
    expect(back.events.at(-1)).toMatchObject({ outcomes: { ok: 5 } });
    expect(filesBelow(join(scratch, out, SERIES), '.parquet')).toEqual(['2026-06.parquet']);
    await run('settings-plain', '01', '05');
    expect(await parquetDigests(join(scratch, out))).toEqual(
      await parquetDigests(join(scratch, 'settings-plain')),
    );
  });

  it('one time unit for all years: ms before 2025 and us after it come out as one', async () => {
    await spot('us', ['--format', 'csv']);
    await spot('ms', ['--format', 'csv', '--timestamps', 'ms']);
    await spot('iso', ['--format', 'csv', '--timestamps', 'iso']);
    const series = 'binance/spot/klines/interval=1h/symbol=BTCUSDT';
    const column = (out: string, month: string, name: string): (string | undefined)[] =>
      readCsv(join(scratch, out, series, `${month}.csv`)).map((row) => row[name]);
    expect(column('us', '2024-12', 'open_time')[0]).toBe('1735516800000000');
    expect(column('us', '2024-12', 'close_time')[0]).toBe('1735520399999000');
    expect(column('us', '2025-01', 'open_time')[0]).toBe('1735689600000000');
    expect(column('us', '2025-01', 'close_time')[0]).toBe('1735693199999999');
    expect(column('ms', '2025-01', 'open_time')[0]).toBe('1735689600000');
    expect(column('iso', '2025-01', 'close_time')[0]).toBe('2025-01-01T00:59:59.999999Z');
  });

  it('the zips of --format zip can be served, and give the same lake', async () => {
    await run('raw', '01', '03', ['--format', 'zip']);
    expect(filesBelow(join(scratch, 'raw', 'data'))).toHaveLength(6);
    const kept = await startArchive(join(scratch, 'raw'));
    await cryptodlOk(argv`vision --dataset metrics --symbols all --from 2026-06-01 --to 2026-06-03 --archive-url ${kept.url}
      --out ${join(scratch, 'from-raw')} ${FAST}`);
    await kept.close();
    await run('direct', '01', '03');
    expect(await parquetDigests(join(scratch, 'from-raw'))).toEqual(
      await parquetDigests(join(scratch, 'direct')),
    );
    scene.archive.requests.length = 0;
    await run('raw', '01', '03', ['--format', 'zip']);
    expect(scene.archive.objectRequests()).toEqual([]);
  });

  it('SQL over the whole lake has symbol and interval as columns', async () => {
    await spot('sql', []);
    const { DuckDBInstance } = await import('@duckdb/node-api');
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const reader = await connection.runAndReadAll(
      `SELECT symbol, interval, count(*)::INT AS n, min(open_time)::VARCHAR AS first FROM read_parquet('${join(scratch, 'sql')}/binance/spot/klines/**/*.parquet', hive_partitioning = true) GROUP BY ALL`,
    );
    expect(reader.getRowObjectsJson()).toEqual([
      { symbol: 'BTCUSDT', interval: '1h', n: 96, first: '2024-12-30 00:00:00' },
    ]);
    connection.closeSync();
  });
});
