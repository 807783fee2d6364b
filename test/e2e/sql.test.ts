/** `cryptodl sql`: the views of a lake, the output formats, and refused queries. */
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, manifestOf as manifestPath } from '../helpers/lake.js';
import { sql } from '../helpers/sql.js';
import { HAS_TERMINAL, onTerminal, screenOf, TERMINAL } from '../helpers/terminal.js';

const scratch = scratchFolder();
// Layers above the lake that look like its own, patterns of DuckDB, a quote: all of it is only a name.
const LAKE = join(scratch, "symbol=x [a] {b,c} **? it's", 'lake');
const HOURS = 'binance/um/klines/interval=1h';
let archive: TestArchive;

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  const um = { market: 'um', cadence: 'monthly', from: '2024-01-01', to: '2024-02-29' } as const;
  makeArchive(folder, {
    ...um,
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT', 'ETHUSDT', '币安USDT'],
  });
  makeArchive(folder, { ...um, dataset: 'klines', interval: '1d', symbols: ['BTCUSDT'] });
  makeArchive(folder, { ...um, dataset: 'fundingRate', symbols: ['BTCUSDT', 'ETHUSDT'] });
  const days = { market: 'spot', cadence: 'daily', from: '2025-01-01', to: '2025-01-02' } as const;
  makeArchive(folder, { ...days, dataset: 'aggTrades', symbols: ['BTCUSDT'] });
  archive = await startArchive(folder);
  const months = ['--from', '2024-01-01', '--to', '2024-02-29'];
  await download(LAKE, '--symbols', 'BTCUSDT,币安USDT', '--interval', '1h', ...months);
  await download(LAKE, '--symbols', 'BTCUSDT', '--interval', '1d', ...months);
  const csv = ['--format', 'csv', '--interval', '1h'];
  await download(LAKE, '--symbols', 'ETHUSDT', ...csv, ...months, '--timestamps', 'iso');
  const spot = ['--market', 'spot', '--dataset', 'aggTrades', '--from', '2025-01-01', '--to', '2025-01-02'];
  await download(LAKE, '--symbols', 'BTCUSDT', ...spot);
});
afterAll(() => archive.close());

function download(out: string, ...args: readonly string[]): Promise<CliResult> {
  return cryptodlOk(['vision', '--archive-url', archive.url, '--out', out, ...FAST, ...args]);
}

function ask(query: string, ...flags: readonly string[]): Promise<CliResult> {
  return cryptodl(['sql', query, '--out', LAKE, ...flags]);
}

/** NDJSON of a query that must succeed. */
async function rowsOf(query: string, lake = LAKE): Promise<CliResult['events']> {
  return (await cryptodlOk(['sql', query, '--out', lake, '--json'])).events;
}

const HOURS_OF_JANUARY = 31 * 24;
const HOURS_OF_BOTH = HOURS_OF_JANUARY + 29 * 24;

it.each([
  [['--symbols', 'ETH*,币安USDT', '--quote', 'USDT'], { ETHUSDT: HOURS_OF_BOTH, 币安USDT: HOURS_OF_BOTH }],
  [['--symbols', 'BTCUSDT', '--interval', '1d'], { BTCUSDT: 31 + 29 }],
  [
    ['--interval', '1h', '--from', '2024-01-31', '--to', '2024-02-01'],
    { BTCUSDT: 48, ETHUSDT: 48, 币安USDT: 48 },
  ],
  [['--from', '2024-03-05', '--to', '2024-03-06'], {}],
])('shows the series and days of %j, and no other', async (flags, counts) => {
  const { events } = await ask(
    'SELECT symbol, count(open)::INT AS rows FROM um_klines GROUP BY ALL',
    '--json',
    ...flags,
  );
  expect(Object.fromEntries(events.map(({ symbol, rows }) => [symbol, rows]))).toEqual(counts);
});

it('fills missing candles with the query of docs/sql.md, and marks them', async () => {
  const text = readFileSync(new URL('../../docs/sql.md', import.meta.url), 'utf8');
  const [, query = ''] = /^## Fill missing candles$[^]*?```sql\n([^]*?)^```$/m.exec(text) ?? [];
  const source = "FROM um_klines WHERE interval = '1h'";
  expect(query).toContain(source);
  const lacking = `${source} AND NOT (symbol = 'BTCUSDT' AND open_time BETWEEN '2024-01-31 22:00' AND '2024-02-01 01:00')`;
  const filled = `WITH filled AS (${query.replace(source, lacking)})`;
  const { stdout } = await ask(
    `${filled} SELECT symbol, count(*) AS bars, count(*) FILTER (is_filled) AS filled FROM filled GROUP BY symbol ORDER BY symbol`,
    '--csv',
  );
  expect(stdout).toBe('symbol,bars,filled\nBTCUSDT,1440,4\nETHUSDT,1440,0\n币安USDT,1440,0\n');
  const { stdout: odd } = await ask(
    `${filled} SELECT count(*) AS odd FROM filled f JOIN um_klines k ON k.symbol = f.symbol AND k.interval = '1h'
      AND k.open_time = (CASE WHEN is_filled THEN TIMESTAMP '2024-01-31 21:00' ELSE f.open_time END)
      WHERE (f.open, f.high, f.low, f.close, f.volume) IS DISTINCT FROM
        (CASE WHEN is_filled THEN (k.close, k.close, k.close, k.close, NULL) ELSE (k.open, k.high, k.low, k.close, k.volume) END)`,
    '--csv',
  );
  expect(odd).toBe('odd\n0\n');
});

describe('the views of a lake', () => {
  it('are one for each market and dataset', async () => {
    expect(await rowsOf('SHOW TABLES')).toEqual([{ name: 'spot_aggTrades' }, { name: 'um_klines' }]);
  });

  it('have symbol and interval as columns, over Parquet and CSV alike', async () => {
    const rows = await rowsOf(
      `SELECT symbol, interval, count(*) AS bars, min(open_time) AS first, typeof(any_value(close)) AS type
       FROM UM_KLINES GROUP BY ALL ORDER BY ALL`,
    );
    const first = '2024-01-01T00:00:00.000000Z';
    expect(rows).toEqual([
      { symbol: 'BTCUSDT', interval: '1d', bars: 60, first, type: 'DOUBLE' },
      { symbol: 'BTCUSDT', interval: '1h', bars: HOURS_OF_BOTH, first, type: 'DOUBLE' },
      { symbol: 'ETHUSDT', interval: '1h', bars: HOURS_OF_BOTH, first, type: 'DOUBLE' },
      { symbol: '币安USDT', interval: '1h', bars: HOURS_OF_BOTH, first, type: 'DOUBLE' },
    ]);
    expect(
      await rowsOf("SELECT count(*) AS n FROM um_klines WHERE symbol = 'BTCUSDT' AND interval = '1d'"),
    ).toEqual([{ n: 60 }]);
  });

  it('have the same values for each format and setting', async () => {
    const lake = join(scratch, 'two-formats');
    const args = ['--symbols', 'BTCUSDT', '--interval', '1d', '--from', '2024-01-01', '--to', '2024-01-31'];
    const digests: unknown[] = [];
    for (const format of [['parquet'], ...['us', 'ms', 'iso'].map((unit) => ['csv', '--timestamps', unit])]) {
      const out = join(lake, format.join('-'));
      await download(out, ...args, '--format', ...format);
      digests.push(await rowsOf('SELECT sum(hash(k)) AS digest, count(*) AS n FROM um_klines k', out));
    }
    expect(new Set(digests.map((digest) => JSON.stringify(digest))).size).toBe(1);
    expect(JSON.stringify(digests[0])).toContain('"n":31');
  });

  it('never have a row twice: they take CSV only for days without Parquet', async () => {
    const lake = join(scratch, 'both');
    const args = ['--symbols', 'BTCUSDT', '--interval', '1h'];
    await download(lake, ...args, '--from', '2024-01-01', '--to', '2024-01-31');
    await download(lake, ...args, '--from', '2024-01-01', '--to', '2024-02-29', '--format', 'csv');
    expect(
      await rowsOf('SELECT count(*) AS n, count(DISTINCT open_time) AS times FROM um_klines', lake),
    ).toEqual([{ n: HOURS_OF_BOTH, times: HOURS_OF_BOTH }]);
  });

  it('have only committed files: no foreign, unfinished or missing ones', async () => {
    const lake = join(scratch, 'strangers');
    await download(lake, ...'--symbols BTCUSDT --interval 1h --from 2024-01-01 --to 2024-02-29'.split(' '));
    const folder = join(lake, HOURS, 'symbol=BTCUSDT');
    const [january, february] = [join(folder, '2024-01.parquet'), join(folder, '2024-02.parquet')];
    copyFileSync(january, join(folder, '2024-03.parquet'));
    mkdirSync(join(lake, HOURS, 'symbol=STRANGER'));
    copyFileSync(january, join(lake, HOURS, 'symbol=STRANGER', '2024-01.parquet'));
    const count = 'SELECT count(*) AS n FROM um_klines';
    const whole = await cryptodlOk(['sql', count, '--out', lake, '--json']);
    expect(whole.events).toEqual([{ n: HOURS_OF_BOTH }]);
    expect(whole.stderr).toBe('1 row\n');

    truncateSync(february, statSync(february).size - 1);
    const torn = await cryptodlOk(['sql', count, '--out', lake, '--json']);
    expect(torn.events).toEqual([{ n: HOURS_OF_JANUARY }]);
    expect(torn.stderr).toMatch(
      /^warning: \S+2024-02\.parquet: missing or different from its commit; not queried \(cryptodl verify gives details\)$/m,
    );

    rmSync(february);
    expect(await rowsOf(count, lake)).toEqual([{ n: HOURS_OF_JANUARY }]);
    rmSync(january);
    const none = await cryptodl(['sql', count, '--out', lake]);
    expect(none.code).toBe(2);
    expect(none.stderr).toContain(
      `no readable Parquet or CSV file\n  cryptodl verify --out ${lake} names damaged files`,
    );
  });

  it('give NULL for a column that older files lack', async () => {
    const lake = join(scratch, 'older');
    const args = ['--dataset', 'fundingRate', '--from', '2024-01-01', '--to', '2024-01-31'];
    await download(lake, ...args, '--symbols', 'BTCUSDT,ETHUSDT');
    await download(lake, ...args, '--symbols', 'ETHUSDT', '--format', 'csv');
    const folder = join(lake, 'binance/um/fundingRate');
    // As a version without that column would have left them.
    for (const [symbol, format] of [
      ['BTCUSDT', 'parquet'],
      ['ETHUSDT', 'csv'],
    ] as const) {
      const file = join(folder, `symbol=${symbol}`, `2024-01.${format}`);
      const reader = format === 'csv' ? 'read_csv' : 'read_parquet';
      await sql(
        `COPY (SELECT * EXCLUDE mark_price FROM ${reader}('${file}', hive_partitioning = false)) TO '${file}.old' (FORMAT ${format})`,
      );
      renameSync(`${file}.old`, file);
      // The tail is not looked at as long as the size is right.
      const manifest = manifestPath(join(folder, `symbol=${symbol}`));
      const { size } = statSync(file);
      writeFileSync(
        manifest,
        manifestOf(manifest, format).replaceAll(/"fileBytes":\d+/g, `"fileBytes":${size}`),
      );
    }
    const rows = await rowsOf(
      'SELECT symbol, count(*) AS n, count(mark_price) AS marks, count(last_funding_rate) AS rates FROM um_fundingRate GROUP BY ALL ORDER BY ALL',
      lake,
    );
    expect(rows).toEqual([
      { symbol: 'BTCUSDT', n: 93, marks: 0, rates: 93 },
      { symbol: 'ETHUSDT', n: 93, marks: 0, rates: 93 },
    ]);
  });

  it('keep every digit where all files do', async () => {
    const lake = join(scratch, 'digits');
    const args = ['--interval', '1d', '--from', '2024-01-01', '--to', '2024-01-31'];
    await download(lake, '--symbols', 'BTCUSDT', ...args, '--numbers', 'string');
    const type = 'SELECT DISTINCT typeof(close) AS type FROM um_klines WHERE close IS NOT NULL';
    expect(await rowsOf(type, lake)).toEqual([{ type: 'VARCHAR' }]);
    expect(await rowsOf('FROM spot_aggTrades SELECT DISTINCT typeof(price) AS type')).toEqual([
      { type: 'DOUBLE' },
    ]);
  });
});

describe('--views', () => {
  it('prints statements that DuckDB runs in any folder, with the same rows', async () => {
    const { stdout } = await cryptodlOk(['sql', '--views', '--out', LAKE]);
    const { DuckDBInstance } = await import('@duckdb/node-api');
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    await connection.run(stdout);
    const reader = await connection.runAndReadAll(
      'SELECT count(*)::INT AS bars, count(DISTINCT symbol)::INT AS symbols FROM um_klines',
    );
    expect(reader.getRowObjectsJson()).toEqual([{ bars: 3 * HOURS_OF_BOTH + 60, symbols: 3 }]);
    connection.closeSync();
    instance.closeSync();
    expect(stdout.match(/^CREATE OR REPLACE VIEW /gm)).toHaveLength(2);
  });
});

describe('the answer', () => {
  it('keeps every value in JSON', async () => {
    const [row] = await rowsOf(
      `SELECT 9007199254740991 AS most, 9007199254740992 AS more, -9007199254740993 AS less, 170141183460469231731687303715884105727::HUGEINT AS huge,
         1.10::DECIMAL(30, 20) AS decimal, 0.1::DOUBLE AS double, 'NaN'::DOUBLE AS nan, TIMESTAMP '2024-01-01 00:00:00.000001' AS time,
         TIMESTAMPTZ '2024-01-01 02:00:00+02' AS zoned, DATE '2024-01-02' AS date, [9007199254740993, 1] AS list, {'a': NULL} AS struct, true AS flag, 'é"' AS text, 1 AS most`,
    );
    expect(row).toEqual({
      most: 9007199254740991,
      more: '9007199254740992',
      less: '-9007199254740993',
      huge: '170141183460469231731687303715884105727',
      decimal: '1.10000000000000000000',
      double: 0.1,
      nan: 'NaN',
      time: '2024-01-01T00:00:00.000001Z',
      zoned: '2024-01-01T00:00:00.000000Z',
      date: '2024-01-02',
      list: ['9007199254740993', 1],
      struct: { a: null },
      flag: true,
      text: 'é"',
      most_1: 1,
    });
  });

  it('is CSV in a pipe, with empty cells for NULL and quotes where needed', async () => {
    const { stdout, stderr, code } = await ask(
      `SELECT NULL AS a, '' AS "b,c", 'x "y"' || chr(10) || 'z' AS d, 9007199254740993 AS e UNION ALL SELECT 1, ',', 'plain', 2`,
    );
    expect(stdout).toBe('a,"b,c",d,e\n,"","x ""y""\nz",9007199254740993\n1,",",plain,2\n');
    expect({ stderr, code }).toEqual({ stderr: '2 rows\n', code: 0 });
    expect((await ask('SELECT 1', '--quiet')).stderr).toBe('');
  });

  it.each([['--csv'], ['--json']])(
    'of endless rows begins at once, and ends with its reader (%s)',
    async (flag) => {
      const line = `exec 3>&1; { "$0" "$1" sql 'FROM range(1000000000000)' ${flag}; echo "code: $?" >&3; } | head -2`;
      const { code, stdout, stderr } = await cryptodl([], { wrap: ['sh', '-c', line] });
      expect(stdout).toContain(flag === '--csv' ? 'range\n0\n' : '{"range":0}\n{"range":1}\n');
      expect(stdout).toContain('code: 0\n');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    },
  );

  it.runIf(HAS_TERMINAL)(
    `on ${TERMINAL} is a table: numbers to the right, as wide and as long as is read`,
    async () => {
      const shown = async (query: string, columns: number): Promise<readonly string[]> => {
        const { sent, code } = await onTerminal(['sql', query, '--out', LAKE], {
          folder: scratch,
          columns,
          isAllShown: true,
        });
        expect(code).toBe(0);
        return (await screenOf(sent, { columns, rows: 24 })).lines;
      };
      const few = await shown(
        `SELECT symbol, count(*) AS bars, min(open_time) AS first, NULL::VARCHAR AS nothing, 'a' || chr(27) || 'b' AS odd
       FROM um_klines GROUP BY ALL ORDER BY ALL`,
        100,
      );
      expect(few).toEqual([
        'symbol    bars  first                nothing  odd',
        '────────  ────  ───────────────────  ───────  ──────',
        'BTCUSDT   1500  2024-01-01 00:00:00  NULL     a\\x1bb',
        'ETHUSDT   1440  2024-01-01 00:00:00  NULL     a\\x1bb',
        '币安USDT  1440  2024-01-01 00:00:00  NULL     a\\x1bb',
        '3 rows',
        '',
      ]);
      const many = await shown(
        "SELECT range AS n, repeat('long ', 30) AS text, 1 AS more FROM range(1234)",
        68,
      );
      expect(many).toHaveLength(2 + 40 + 1 + 2);
      expect(many.slice(41, 44)).toEqual([
        `39  ${'long '.repeat(12).slice(0, 59)}…`,
        '… 1,194 more rows, 1 more column: --csv for all',
        '1,234 rows',
      ]);
      expect(Math.max(...many.map((line) => line.length))).toBeLessThanOrEqual(68);
    },
  );
});

describe('the query', () => {
  it('comes from stdin with -, from a file with @', async () => {
    const file = join(scratch, 'query.sql');
    writeFileSync(file, '-- how many\nSELECT count(*) AS n\nFROM spot_aggTrades;\n');
    const fromFile = await ask(`@${file}`);
    const fromStdin = await cryptodl(['sql', '-', '--out', LAKE], {
      stdin: 'SELECT count(*) AS n FROM spot_aggTrades',
    });
    expect(fromFile.stdout).toMatch(/^n\n\d+\n$/);
    expect(fromStdin.stdout).toBe(fromFile.stdout);
    const missing = await ask(`@${file}.not`);
    expect({ code: missing.code, stderr: missing.stderr }).toMatchObject({ code: 2 });
    expect(missing.stderr).toContain('cannot read');
  });

  it.each([
    ["COPY um_klines TO 'FILE'", 'sql takes one read-only statement'],
    ["EXPLAIN ANALYZE COPY (SELECT 1) TO 'FILE'", 'sql takes one read-only statement'],
    ['CREATE TABLE x AS SELECT 1', 'sql takes one read-only statement'],
    ["ATTACH 'FILE' AS a", 'sql takes one read-only statement'],
    ['SET threads = 1', 'sql takes one read-only statement'],
    ['PRAGMA version', 'sql takes one read-only statement'],
    ['SELECT 1; SELECT 2', 'the query has 2 statements\n  run them one by one'],
    ["SELECT 1; COPY (SELECT 1) TO 'FILE'", 'sql takes one read-only statement'],
    ["FROM enable_logging(storage = 'file', storage_path = 'FILE')", 'enable_logging() is not allowed'],
    ["FROM query('SELECT 1')", 'query() is not allowed\n  write the query without query()'],
    ["SELECT * FROM read_text('/etc/hostname')", 'sql reads only files of the lake'],
    ["FROM read_text('LAKE/../../archive/../secret')", 'sql reads only files of the lake'],
    ["FROM glob('/etc/*')", 'sql reads only files of the lake'],
    ["SELECT * FROM '/etc/hostname'", 'name /etc/hostname does not exist'],
    ["SELECT * FROM 'http://127.0.0.1:1/x.parquet'", ''],
    ['', 'the query is empty'],
    ['SELECT $1', 'Values were not provided'],
  ])('%s is refused', async (query, says) => {
    const file = join(LAKE, 'made');
    writeFileSync(join(scratch, 'secret'), 'secret');
    const quoted = (path: string): string => path.replaceAll("'", "''");
    const before = filesBelow(LAKE);
    const { code, stdout, stderr } = await ask(
      query.replace('FILE', quoted(file)).replace('LAKE', quoted(LAKE)),
    );
    expect(stderr).toContain(says);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(filesBelow(LAKE)).toEqual(before);
    expect(existsSync(file)).toBe(false);
  });

  it.each([
    ['SELECT * FROM um_kline', 'name um_kline does not exist', 'Did you mean "um_klines"?'],
    [
      'SELECT "clos" FROM um_klines LIMIT 1',
      'column "clos" not found in FROM clause',
      `Candidate bindings: "close", "close_time", "low", "count"\n  LINE 1: SELECT "clos" FROM um_klines LIMIT 1`,
    ],
  ])('%s is refused with a hint', async (query, says, hint) => {
    const { code, stdout, stderr } = await ask(query);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.split('\n')[0]).toContain(says);
    expect(stderr).toContain(`\n  ${hint}`);
  });

  it.each([
    ['SELECT * FORM um_klines', 'syntax error at or near "um_klines"'],
    ["SELECT 'é',\n 1 +\nFROM x", 'syntax error at or near "FROM"\n  at: FROM x'],
    ["SELECT 'open", 'unterminated quoted string'],
    ['SELECT nofun(close) FROM um_klines', 'Scalar Function with name nofun does not exist'],
    ['SELECT symbol::INT FROM um_klines', "Could not convert string 'BTCUSDT' to INT32"],
  ])('%s: a mistake is reported with its place', async (query, says) => {
    const { code, stderr } = await ask(query);
    expect(code).toBe(2);
    expect(stderr).toContain(`cryptodl: ${says}`);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s while rows are printed ends with %i', async (signal, exit) => {
    const { code, stderr } = await cryptodl(['sql', 'SELECT range FROM range(20000000)', '--csv'], {
      onSpawn: (child) => child.stdout?.once('data', () => child.kill(signal)),
    });
    expect({ code, stderr }).toEqual({ code: exit, stderr: '' });
  });

  it('gives columns with equal names different names, and loses no value', async () => {
    const query = 'SELECT 1 AS a, 2 AS "a:1", 3 AS a, 4 AS a';
    expect((await ask(query)).stdout).toBe('a,a:1,a_1,a_2\n1,2,3,4\n');
    expect((await ask(query, '--json')).stdout).toBe('{"a":1,"a:1":2,"a_1":3,"a_2":4}\n');
  });

  it('ends with an error when a file of the lake is damaged', async () => {
    const path = join(scratch, 'damaged');
    cpSync(LAKE, path, { recursive: true });
    const [file = ''] = filesBelow(path, '.parquet').filter((name) => name.includes('klines'));
    const bytes = readFileSync(join(path, file));
    bytes.fill(0xff, 100, bytes.length >> 1);
    writeFileSync(join(path, file), bytes);
    const { code, stderr } = await cryptodl(['sql', 'SELECT * FROM um_klines', '--csv', '--out', path]);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining(`a file of the lake ${path} cannot be read: `) as string,
    });
    expect(stderr).toContain(`\n  cryptodl verify --out ${path}\n  cryptodl repair --out ${path}\n`);
    const wrong = await cryptodl(['sql', 'SELECT CAST(symbol AS INT) FROM spot_aggTrades', '--out', path]);
    expect(wrong.code).toBe(2);
  });

  it('does not blame itself for a CSV file that is damaged', async () => {
    const path = join(scratch, 'damaged CSV');
    cpSync(LAKE, path, { recursive: true });
    const [file = ''] = filesBelow(path, '.csv');
    const text = readFileSync(join(path, file), 'utf8');
    const [, first = ''] = text.split('\n');
    writeFileSync(join(path, file), text.replace(first, first.replaceAll(/\d/g, 'x')));
    const { code, stderr } = await cryptodl(['sql', 'SELECT * FROM um_klines', '--csv', '--out', path]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${join(path, file)} cannot be read: CSV Error on Line: 2\n`) as string,
    ]);
    expect(stderr).toContain('\n  cryptodl verify --out ');
  });

  it('has times in UTC, wherever the machine is', async () => {
    const query = "SELECT CAST(TIMESTAMPTZ '2026-01-01 12:00:00+00' AS VARCHAR) AS at";
    const { stdout } = await cryptodl(['sql', query, '--csv', '--out', LAKE], { env: { TZ: 'Asia/Tokyo' } });
    expect(stdout).toBe('at\n2026-01-01 12:00:00+00\n');
  });

  it('works without a lake when it names no table, and creates no lake', async () => {
    const out = join(scratch, 'no-lake');
    expect((await cryptodlOk(['sql', 'SELECT 1 AS one', '--out', out])).stdout).toBe('one\n1\n');
    for (const args of [['SELECT * FROM um_klines'], ['SHOW TABLES'], ['SHOW ALL TABLES'], ['--views']]) {
      const { code, stderr } = await cryptodl(['sql', ...args, '--out', out]);
      expect(code).toBe(2);
      expect(stderr).toContain(`${out} does not exist, so there is no lake\n`);
    }
    expect(existsSync(out)).toBe(false);
  });
});

/** Lines of one format. */
function manifestOf(file: string, format: string): string {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.includes(`"format":"${format}"`))
    .map((line) => `${line}\n`)
    .join('');
}
