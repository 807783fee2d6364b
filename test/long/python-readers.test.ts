/**
 * Readers of Python over a lake that the binary wrote: each block of docs/python.md, and the types and rows of a dataset folder that is read
 * by its name. The footers and DuckDB are checked without Python too.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodlProcess } from '../helpers/cli.js';
import { filesBelow, parquetMetadata, readParquet } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';
import { sql } from '../helpers/sql.js';

const DOCUMENT = readFileSync(new URL('../../docs/python.md', import.meta.url), 'utf8');
const BLOCKS = [...DOCUMENT.matchAll(/^## (.*)$|^```python\n([\s\S]*?)^```$/gm)]
  .reduce<{ title: string; code: string }[]>((blocks, [, title, code]) => {
    const last = blocks.at(-1)?.title ?? '';
    return [...blocks, { title: title ?? last, code: code ?? '' }];
  }, [])
  .filter(({ code }) => code !== '');

const [INSTALL = ''] = /pip install [^`]*/.exec(DOCUMENT) ?? [];
const PYTHON = process.env['CRYPTODL_TEST_PYTHON'] ?? 'python3';
const HAS_READERS = spawnSync(PYTHON, ['-c', 'import pandas, polars, pyarrow, duckdb']).status === 0;
const WHY = HAS_READERS ? '' : ` (skipped: ${PYTHON} lacks packages: ${INSTALL})`;

/** Bars of two symbols in two months, 24 a day. */
const DAYS = 30;
const ROWS = 2 * DAYS * 24;
const KLINES = 'binance/um/klines';

const scene = useScene({
  archive: [
    { from: '2026-10-22', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'] },
    { from: '2026-10-22', to: '2026-11-20', dataset: 'metrics' },
  ],
});
const lakeOf = (name: string): string => join(scene.scratch, name, 'data');

beforeAll(async () => {
  for (const [name, ...flags] of [['naive'], ['utc', '--timestamps', 'utc']]) {
    const lake = lakeOf(name ?? '');
    for (const what of ['--symbols BTCUSDT,ETHUSDT --interval 1h', '--dataset metrics --symbols BTCUSDT']) {
      const places = ['--archive-url', scene.archive.url, '--out', lake, '--now', scene.now, '--quiet'];
      const { code, stderr } = await cryptodlProcess([
        'vision',
        ...what.split(' '),
        '--days',
        `${DAYS}`,
        ...places,
        ...flags,
      ]);
      if (code !== 0) throw new Error(stderr);
    }
  }
}, 120_000);

/** The output of a Python program that runs beside `data`, in a local time zone that is not UTC. */
function python(code: string, lake: string): string {
  const { status, stdout, stderr } = spawnSync(PYTHON, ['-c', code], {
    cwd: join(scene.scratch, lake),
    encoding: 'utf8',
    env: { ...process.env, TZ: 'Asia/Tokyo' },
  });
  expect([stderr, status]).toEqual(['', 0]);
  return stdout.trim();
}

describe(`docs/python.md${WHY}`, { skip: !HAS_READERS }, () => {
  it.each(BLOCKS)('runs: $title', ({ code }) => {
    expect(python(code, 'naive')).toBe('');
  });

  it('reads the rows that it says', () => {
    const counts = (title: string, ...names: readonly string[]): number[] => {
      const code = BLOCKS.filter((block) => block.title === title).map((block) => block.code);
      const shown = `import json; print(json.dumps([len(x) for x in [${names.join(', ')}]]))`;
      return JSON.parse(python([...code, shown].join('\n'), 'naive')) as number[];
    };
    // The second block of pandas has the bars of one symbol.
    expect(counts('pandas', 'bars', 'btc', 'week', 'close', 'joined')).toEqual([720, 720, 168, 720, 720]);
    expect(counts('Polars', 'bars', 'week', 'joined')).toEqual([ROWS, 168, 168]);
    expect(counts('DuckDB', 'bars', 'days', 'joined')).toEqual([ROWS, 22, 720]);
    expect(counts('pyarrow', 'btc')).toEqual([720]);
    expect(counts('Manifests', 'objects')).toEqual([DAYS]);
    expect(counts('Time zones', 'bars', 'zoned')).toEqual([ROWS, ROWS]);
  });
});

const READERS = [
  {
    reader: 'pandas',
    code: `import pandas as pd; t = pd.read_parquet('data/${KLINES}'); print(len(t), t['open_time'].dtype, t['open_time'].min())`,
    naive: `${ROWS} datetime64[us] 2026-10-22 00:00:00`,
    utc: `${ROWS} datetime64[us, UTC] 2026-10-22 00:00:00+00:00`,
  },
  {
    reader: 'Polars',
    code: `import polars as pl; t = pl.scan_parquet('data/${KLINES}').collect(); print(len(t), t.schema['open_time'], t['open_time'].min())`,
    naive: `${ROWS} Datetime(time_unit='us', time_zone=None) 2026-10-22 00:00:00`,
    utc: `${ROWS} Datetime(time_unit='us', time_zone='UTC') 2026-10-22 00:00:00+00:00`,
  },
  {
    reader: 'pyarrow',
    code: `import pyarrow.parquet as pq; t = pq.read_table('data/${KLINES}'); print(len(t), t.schema.field('open_time').type, t['open_time'][0].as_py())`,
    naive: `${ROWS} timestamp[us] 2026-10-22 00:00:00`,
    utc: `${ROWS} timestamp[us, tz=UTC] 2026-10-22 00:00:00+00:00`,
  },
  {
    reader: 'DuckDB',
    code: `import duckdb; print(*duckdb.sql("SELECT count(*), any_value(typeof(open_time)), min(epoch_us(open_time)) FROM 'data/${KLINES}/**/*.parquet'").fetchone())`,
    naive: `${ROWS} TIMESTAMP ${Date.UTC(2026, 9, 22)}000`,
    utc: `${ROWS} TIMESTAMP WITH TIME ZONE ${Date.UTC(2026, 9, 22)}000`,
  },
];

describe(`a dataset folder, read by its name${WHY}`, { skip: !HAS_READERS }, () => {
  it.each(READERS)('has the types and rows for $reader, with and without --timestamps utc', (row) => {
    expect([python(row.code, 'naive'), python(row.code, 'utc')]).toEqual([row.naive, row.utc]);
  });
});

describe('a dataset folder without Python', () => {
  it.each([
    ['naive', false, 'TIMESTAMP'],
    ['utc', true, 'TIMESTAMP WITH TIME ZONE'],
  ])('holds only Parquet files, which DuckDB and hyparquet read: %s', async (name, isZoned, type) => {
    const folder = join(lakeOf(name), KLINES);
    const files = filesBelow(folder);
    expect(files.filter((file) => !file.endsWith('.parquet'))).toEqual([]);
    expect(files).toHaveLength(4);
    let rows = 0;
    for (const file of files) {
      const { schema } = await parquetMetadata(join(folder, file));
      const time = schema.find((column) => column.name === 'open_time');
      expect(time?.logical_type).toMatchObject({ type: 'TIMESTAMP', isAdjustedToUTC: isZoned });
      rows += (await readParquet(join(folder, file))).length;
    }
    expect(rows).toBe(ROWS);
    const query = `SELECT count(*)::INTEGER AS n, any_value(typeof(open_time)) AS type FROM '${folder}/**/*.parquet'`;
    expect(await sql(query)).toEqual([{ n: ROWS, type }]);
  });
});
