/**
 * Readers over a lake that the binary wrote with the commands of docs/python.md: each block of docs/python.md and docs/sql.md, whose joins
 * may take nothing from the future; and the types and rows of a dataset folder that is read by its name. The footers, DuckDB and `cryptodl sql`
 * are checked without Python too.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodlProcessOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { expectedBars, isFromTheFuture, publishKnownTimes, SYMBOLS } from '../helpers/known-times.js';
import type { JoinedBar } from '../helpers/known-times.js';
import { filesBelow, parquetMetadata, readParquet } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';
import { sql } from '../helpers/sql.js';

const document = (name: string): string =>
  readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
const DOCUMENT = document('python.md');
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

/** Bars of all symbols in two months, 24 a day. */
const HOURS = 61 * 24;
const ROWS = SYMBOLS.length * HOURS;
const KLINES = 'binance/um/klines';

const scene = useScene({
  now: '2026-08-10T12:00:00Z',
  archive: [{ from: '2026-06-01', to: '2026-07-31', cadence: 'monthly', symbols: [...SYMBOLS] }],
  change: publishKnownTimes,
});
const folderOf = (name: string): string => join(scene.scratch, name);
const lakeOf = (name: string): string => join(folderOf(name), 'data');

/** The commands of a document, without comments and quotes. */
function commandsOf(text: string): string[][] {
  return [...text.matchAll(/^ {4}cryptodl (.*?)( +#.*)?$/gm)].map(([, line = '']) =>
    [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? ''),
  );
}

beforeAll(async () => {
  const [bars = [], others = []] = commandsOf(DOCUMENT);
  const places = ['--archive-url', scene.archive.url, '--now', scene.now, '--quiet'];
  for (const [name, ...lines] of [
    ['naive', bars, others],
    ['utc', [...bars, '--timestamps', 'utc']],
  ] as const) {
    mkdirSync(folderOf(name));
    writeFileSync(join(folderOf(name), 'symbols.txt'), SYMBOLS.join('\n'));
    for (const line of lines) await cryptodlProcessOk([...line, ...places], { cwd: folderOf(name) });
  }
}, 240_000);

/** The output of a Python program that runs beside `data`, in a local time zone that is not UTC. */
function python(code: string, lake: string): string {
  const { status, stdout, stderr } = spawnSync(PYTHON, ['-c', code], {
    cwd: folderOf(lake),
    encoding: 'utf8',
    maxBuffer: 1e9,
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
    expect(counts('pandas', 'btc', 'week', 'close', 'joined')).toEqual([HOURS, WEEK, HOURS, ROWS]);
    expect(counts('Polars', 'week', 'joined')).toEqual([WEEK, ROWS]);
    expect(counts('DuckDB', 'bars', 'days', 'joined')).toEqual([ROWS, SYMBOLS.length * 40, ROWS]);
    expect(counts('pyarrow', 'btc')).toEqual([HOURS]);
    expect(counts('Manifests', 'objects')).toEqual([2]);
    expect(counts('Time zones', 'bars', 'zoned')).toEqual([ROWS, ROWS]);
  });

  it.each([
    ['pandas', 'print(joined[COLUMNS].to_csv(index=False))'],
    ['Polars', 'print(joined.select(COLUMNS).write_csv())'],
    ['DuckDB', 'print(joined[COLUMNS].to_csv(index=False))'],
  ])('joins what was known when a bar opened: %s', (title, shown) => {
    const code = BLOCKS.filter((block) => block.title === title).map((block) => block.code);
    const columns = `COLUMNS = ${JSON.stringify(COLUMNS)}`;
    const bars = joinedBars(python([...code, columns, shown].join('\n'), 'naive'));
    expect(bars.filter(isFromTheFuture).slice(0, 3)).toEqual([]);
    expect(bars).toEqual(expectedBars());
  });
});

const WEEK = SYMBOLS.length * 7 * 24;
const COLUMNS = ['symbol', 'open_time', 'sum_open_interest', 'last_funding_rate'];

/** The joined bars of a CSV with at least the columns of COLUMNS. */
function joinedBars(csv: string): JoinedBar[] {
  const [header = '', ...lines] = csv.trim().split('\n');
  const places = COLUMNS.map((column) => header.split(',').indexOf(column));
  const number = (cell: string): number | undefined => (cell === '' ? undefined : Number(cell));
  return lines
    .map((line) => {
      const cells = line.split(',');
      const [symbol = '', time = '', interest = '', rate = ''] = places.map((place) => cells[place]);
      const openTime = Date.parse(`${time.slice(0, 19).replace(' ', 'T')}Z`);
      return { symbol, openTime, interest: number(interest), rate: number(rate) };
    })
    .sort((a, b) => a.symbol.localeCompare(b.symbol) || a.openTime - b.openTime);
}

describe('docs/sql.md', () => {
  const text = document('sql.md');
  const [, query = ''] = /```sql\n([\s\S]*?)^```$/m.exec(text) ?? [];
  const run = (words: readonly string[]): Promise<CliResult> =>
    cryptodlProcessOk(words, { cwd: folderOf('naive'), stdin: query });
  beforeAll(() => {
    writeFileSync(join(folderOf('naive'), 'query.sql'), query);
  });

  it.each(commandsOf(text).map((words) => [words.join(' '), words]))('runs: %s', async (_line, words) => {
    expect((await run(words)).stdout).not.toBe('');
  });

  it('joins what was known when a bar opened', async () => {
    const bars = joinedBars((await run(['sql', '@query.sql', '--csv'])).stdout);
    expect(bars.filter(isFromTheFuture).slice(0, 3)).toEqual([]);
    expect(bars).toEqual(expectedBars());
  });
});

const READERS = [
  {
    reader: 'pandas',
    code: `import pandas as pd; t = pd.read_parquet('data/${KLINES}'); print(len(t), t['open_time'].dtype, t['open_time'].min())`,
    naive: `${ROWS} datetime64[us] 2026-06-01 00:00:00`,
    utc: `${ROWS} datetime64[us, UTC] 2026-06-01 00:00:00+00:00`,
  },
  {
    reader: 'Polars',
    code: `import polars as pl; t = pl.scan_parquet('data/${KLINES}').collect(); print(len(t), t.schema['open_time'], t['open_time'].min())`,
    naive: `${ROWS} Datetime(time_unit='us', time_zone=None) 2026-06-01 00:00:00`,
    utc: `${ROWS} Datetime(time_unit='us', time_zone='UTC') 2026-06-01 00:00:00+00:00`,
  },
  {
    reader: 'pyarrow',
    code: `import pyarrow.parquet as pq; t = pq.read_table('data/${KLINES}'); print(len(t), t.schema.field('open_time').type, t['open_time'][0].as_py())`,
    naive: `${ROWS} timestamp[us] 2026-06-01 00:00:00`,
    utc: `${ROWS} timestamp[us, tz=UTC] 2026-06-01 00:00:00+00:00`,
  },
  {
    reader: 'DuckDB',
    code: `import duckdb; print(*duckdb.sql("SELECT count(*), any_value(typeof(open_time)), min(epoch_us(open_time)) FROM 'data/${KLINES}/**/*.parquet'").fetchone())`,
    naive: `${ROWS} TIMESTAMP ${Date.UTC(2026, 5, 1)}000`,
    utc: `${ROWS} TIMESTAMP WITH TIME ZONE ${Date.UTC(2026, 5, 1)}000`,
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
    expect(files).toHaveLength(2 * SYMBOLS.length);
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
