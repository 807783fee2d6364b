/** `--timestamps utc`: Parquet columns with the time zone UTC, in each step of the life of a series. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { filesBelow, parquetMetadata, readCsv, readParquet } from '../helpers/lake.js';
import type { LakeRow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const FILE = `${SERIES}/2026-11.parquet`;
const UTC = '--timestamps utc';

/** Whether each time column of a file has the time zone UTC, by name. */
async function zonesIn(file: string): Promise<Record<string, boolean>> {
  const { schema } = await parquetMetadata(file);
  return Object.fromEntries(
    schema.flatMap(({ name, logical_type: type }) =>
      type?.type === 'TIMESTAMP' ? [[name, type.isAdjustedToUTC]] : [],
    ),
  );
}

async function ask(
  lake: string,
  query: string,
  env: Readonly<Record<string, string>> = {},
): Promise<object[]> {
  const { stdout } = await cryptodl(['sql', query, '--out', lake, '--json'], { env });
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
}

const ZONED = { open_time: true, close_time: true };

describe('--timestamps utc', () => {
  const scene = useScene({
    archive: [
      { from: '2026-11-01', to: '2026-11-20' },
      { from: '2026-11-01', to: '2026-11-20', symbols: ['ETHUSDT'] },
      { from: '2026-11-14', to: '2026-11-20', dataset: 'metrics' },
      { from: '2026-11-18', to: '2026-11-20', dataset: 'trades', rowsPerDay: 50 },
    ],
    flags: '--symbols BTCUSDT --interval 1h',
  });
  const rowsOf = (lake: string): Promise<LakeRow[]> => readParquet(join(lake, FILE));

  it('stays when days are added, when the lake is continued, and when it is repaired', async () => {
    const { lake } = await scene.vision(`--from 2026-11-03 --to 2026-11-05 ${UTC}`, { lake: 'life' });
    expect((await scene.vision(`--from 2026-11-08 --to 2026-11-09 ${UTC}`, { lake: 'life' })).code).toBe(0);
    expect(await zonesIn(join(lake, FILE))).toEqual(ZONED);
    expect(await rowsOf(lake)).toHaveLength(5 * 24);
    const continued = await scene.vision('', { lake: 'life', sceneFlags: '' });
    expect([continued.code, await zonesIn(join(lake, FILE))]).toEqual([0, ZONED]);
    rmSync(join(lake, FILE));
    const hosts = ['--archive-url', scene.archive.url, '--now', scene.now];
    expect((await cryptodl(['repair', '--out', lake, ...hosts])).code).toBe(0);
    expect(await zonesIn(join(lake, FILE))).toEqual(ZONED);
    expect(await rowsOf(lake)).toHaveLength(18 * 24);
    for (const check of [
      ['verify', '--deep'],
      ['coverage', '--min', '100', '--now', scene.now],
    ])
      expect([check, (await cryptodl([...check, '--out', lake])).code]).toEqual([check, 0]);
    const whole = await scene.vision('--from 2026-11-03 --to 2026-11-20');
    expect(await rowsOf(lake)).toEqual(await rowsOf(whole.lake));
  });

  it('is refused for a series without it, and so is another unit for a series with it; --force rewrites', async () => {
    const { lake } = await scene.vision('--days 3', { lake: 'mixed' });
    const refused = await scene.vision(`--days 5 ${UTC}`, { lake: 'mixed' });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringContaining('was written with timestamps us, but --timestamps is utc'),
    ]);
    expect((await scene.vision(`--days 5 ${UTC} --force`, { lake: 'mixed' })).code).toBe(0);
    expect([await zonesIn(join(lake, FILE)), (await rowsOf(lake)).length]).toEqual([ZONED, 5 * 24]);
    const kept = await scene.vision('--days 6', { lake: 'mixed' });
    expect([kept.code, await zonesIn(join(lake, FILE))]).toEqual([0, ZONED]);
    const back = await scene.vision('--days 6 --timestamps us', { lake: 'mixed' });
    expect([back.code, back.stderr]).toEqual([
      2,
      expect.stringContaining('was written with timestamps utc, but --timestamps is us'),
    ]);
  });

  it.each(['month', 'day'])(
    'has the rows of a lake without it in the same order, by %s',
    async (partition) => {
      for (const dataset of ['klines', 'metrics', 'trades']) {
        const flags = `--dataset ${dataset} --days 3 --partition ${partition}`;
        const [naive, zoned] = [await scene.vision(flags), await scene.vision(`${flags} ${UTC}`)];
        const below = `binance/um/${dataset}`;
        const rows = await scene.rows(zoned, `um/${dataset}`);
        expect([dataset, rows.length > 10, rows]).toEqual([
          dataset,
          true,
          await scene.rows(naive, `um/${dataset}`),
        ]);
        for (const file of filesBelow(join(zoned.lake, below), '.parquet'))
          expect(Object.values(await zonesIn(join(zoned.lake, below, file)))).not.toContain(false);
      }
    },
  );

  it('is ISO 8601 with Z in CSV', async () => {
    const { lake } = await scene.vision(`--days 2 --format csv ${UTC}`, { lake: 'csv' });
    expect((await scene.vision('--days 3 --format csv --timestamps iso', { lake: 'csv' })).code).toBe(0);
    const rows = readCsv(join(lake, SERIES, '2026-11.csv'));
    expect([rows.length, rows[0]?.['open_time']]).toEqual([72, '2026-11-18T00:00:00.000000Z']);
    expect((await cryptodl(['verify', '--deep', '--out', lake])).code).toBe(0);
    const [counted] = await ask(lake, 'SELECT count(*) AS n, min(open_time) AS first FROM um_klines');
    expect(counted).toEqual({ n: 72, first: '2026-11-18T00:00:00.000000Z' });
  });

  it('keeps its days in cryptodl sql, also beside series without it and in every local time zone', async () => {
    const { lake } = await scene.vision(`--days 5 ${UTC}`, { lake: 'asked' });
    const byDay =
      'SELECT CAST(open_time AS DATE) AS day, count(*) AS n FROM um_klines GROUP BY ALL ORDER BY ALL';
    const days = (n: number): object[] =>
      ['2026-11-16', '2026-11-17', '2026-11-18', '2026-11-19', '2026-11-20'].map((day) => ({ day, n }));
    const typeOf = 'SELECT DISTINCT typeof(open_time) AS type FROM um_klines';
    expect(await ask(lake, typeOf)).toEqual([{ type: 'TIMESTAMP WITH TIME ZONE' }]);
    for (const TZ of ['Asia/Tokyo', 'America/New_York'])
      expect(await ask(lake, byDay, { TZ })).toEqual(days(24));
    await scene.vision('--days 5', {
      lake: 'asked',
      sceneFlags: '--symbols ETHUSDT --interval 1h --timestamps us',
    });
    expect(await ask(lake, typeOf)).toEqual([{ type: 'TIMESTAMP' }]);
    expect(await ask(lake, byDay)).toEqual(days(48));
    const apart = `SELECT count(*) AS n FROM um_klines a JOIN um_klines b USING (open_time) WHERE a.symbol < b.symbol`;
    expect(await ask(lake, apart)).toEqual([{ n: 5 * 24 }]);
  });

  it.each([
    ['Asia/Tokyo', ''],
    ['America/New_York', '--partition day'],
  ])('makes the same files in every local time zone: %s %s', async (TZ, flags) => {
    const lakes: string[] = [];
    for (const env of [{}, { TZ }]) {
      const lake = `zone ${flags} ${lakes.length}`;
      for (const days of ['--from 2026-11-01 --to 2026-11-04', '--from 2026-11-03 --to 2026-11-06'])
        expect((await scene.vision(`${days} ${flags} ${UTC}`, { lake, env })).code).toBe(0);
      lakes.push(join(scene.scratch, lake));
      expect((await cryptodl(['verify', '--deep', '--out', lakes.at(-1) ?? ''], { env })).code).toBe(0);
    }
    const file = flags === '' ? '2026-11.parquet' : '2026-11-05.parquet';
    const [usual, other] = lakes.map((lake) => readFileSync(join(lake, SERIES, file), 'base64'));
    expect(other === usual).toBe(true);
    expect((await readParquet(join(lakes[1] ?? '', SERIES, file)))[0]?.['open_time']).toEqual(
      new Date(flags === '' ? '2026-11-01T00:00:00Z' : '2026-11-05T00:00:00Z'),
    );
  });
});
