/** A monthly object as large as the largest of the archive (facts, section 4.2): its CSV is beyond 4 GiB, its zip ZIP64. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { aggTradeChunks, makeLargeZip } from '../../scripts/make-large-zip.js';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlProcessOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { manifestLines } from '../helpers/lake.js';

const MAX_MEMORY_MB = 700;
const DAY_MS = 86_400_000;
const NOVEMBER = ['--now', '2026-11-21T08:00:00Z'];
const MARCH = Date.UTC(2023, 2, 1);

/** Prints the peak memory of the process that loads it. */
const TELL_MEMORY = `process.on('exit', () => {
  process.stderr.write('peak ' + Math.round(process.resourceUsage().maxRSS / 1024) + ' MB\\n');
});`;

const scratch = scratchFolder();
let archive: TestArchive;
const made = new Map<string, Awaited<ReturnType<typeof makeLargeZip>>>();

async function makeObject(symbol: string, chunks: Iterable<Buffer>): Promise<void> {
  const name = `${symbol}-aggTrades-2023-03`;
  const folder = join(scratch, 'archive/data/spot/monthly/aggTrades', symbol);
  mkdirSync(folder, { recursive: true });
  const facts = await makeLargeZip(join(folder, `${name}.zip`), { name: `${name}.csv`, chunks });
  writeFileSync(join(folder, `${name}.zip.CHECKSUM`), `${facts.sha256}  ${name}.zip\n`);
  made.set(symbol, facts);
}

function* swappedHalves(): Generator<Buffer> {
  yield* aggTradeChunks({ rows: 6_000_000, fromMs: MARCH + 15 * DAY_MS, spanMs: 10 * DAY_MS });
  yield* aggTradeChunks({ rows: 6_000_000, fromMs: MARCH, spanMs: 10 * DAY_MS });
  // The first of the second half once more.
  yield* aggTradeChunks({ rows: 6000, fromMs: MARCH, spanMs: 10 * DAY_MS * (6000 / 6_000_000) });
}

beforeAll(async () => {
  await makeObject('BTCUSDT', aggTradeChunks({ rows: 53_000_000, fromMs: MARCH, spanMs: 31 * DAY_MS }));
  await makeObject('ETHUSDT', swappedHalves());
  writeFileSync(join(scratch, 'tell-memory.mjs'), TELL_MEMORY);
  archive = await startArchive(join(scratch, 'archive'));
});
afterAll(() => archive.close());

async function download(symbol: string, out: string, flags: readonly string[] = []): Promise<string> {
  const what = ['--market', 'spot', '--dataset', 'aggTrades', '--symbols', symbol];
  const when = ['--from', '2023-03-01', '--to', '2023-03-31', '--now', '2023-06-01T00:00:00Z'];
  const where = ['--archive-url', archive.url, '--out', out, '--progress', 'none'];
  const { stderr } = await cryptodlProcessOk(['vision', ...what, ...when, ...where, ...flags], {
    env: { NODE_OPTIONS: `--import ${join(scratch, 'tell-memory.mjs')}` },
  });
  const peak = Number(/^peak (\d+) MB$/m.exec(stderr)?.[1]);
  process.stderr.write(`${symbol} ${flags.join(' ')}: peak ${peak} MB\n`);
  expect(peak).toBeLessThan(MAX_MEMORY_MB);
  return join(out, `binance/spot/aggTrades/symbol=${symbol}`);
}

async function query(sql: string): Promise<Record<string, unknown>> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const [row = {}] = (await connection.runAndReadAll(sql)).getRowObjectsJson();
  connection.closeSync();
  instance.closeSync();
  return row;
}

const SUMS = `count(*)::INT AS rows, (max(agg_trade_id) - min(agg_trade_id) + 1)::INT AS ids,
  count(DISTINCT date_trunc('day', transact_time))::INT AS days`;

describe('an object beyond 4 GiB', () => {
  it('is one, and ZIP64', () => {
    expect(made.get('BTCUSDT')?.csvBytes).toBeGreaterThan(2 ** 32);
  });

  it('becomes one Parquet file, row by row, in little memory', async () => {
    const folder = await download('BTCUSDT', join(scratch, 'parquet'));
    const file = join(folder, '2023-03.parquet');
    expect(await query(`SELECT ${SUMS} FROM read_parquet('${file}')`)).toEqual({
      rows: 53_000_000,
      ids: 53_000_000,
      days: 31,
    });
    expect(manifestLines(folder)).toMatchObject([{ rows: 53_000_000, duplicates: 0, period: '2023-03' }]);
  });

  it('becomes one CSV file as well', async () => {
    const folder = await download('BTCUSDT', join(scratch, 'csv'), ['--format', 'csv']);
    const file = join(folder, '2023-03.csv');
    const read = `read_csv('${file}', header = true)`;
    expect(await query(`SELECT count(*)::INT AS rows FROM ${read}`)).toEqual({ rows: 53_000_000 });
  });
});

describe('a large object whose halves are interleaved, with rows twice', () => {
  it('comes out sorted and without them, in little memory', async () => {
    const folder = await download('ETHUSDT', join(scratch, 'parquet'));
    const file = join(folder, '2023-03.parquet');
    const disorder = `SELECT count_if(agg_trade_id < before)::INT AS disorder, count(*)::INT AS rows
      FROM (SELECT agg_trade_id, lag(agg_trade_id) OVER () AS before FROM read_parquet('${file}'))`;
    expect(await query(disorder)).toEqual({ disorder: 0, rows: 12_000_000 });
    expect(manifestLines(folder)).toMatchObject([{ rows: 12_000_000, duplicates: 6000 }]);
  });
});

describe('large days that are added to a large month', () => {
  it('are sorted into it in little memory', async () => {
    const days = { market: 'um', dataset: 'trades', symbols: ['BTCUSDT'], cadence: 'daily' } as const;
    const range = { from: '2026-11-10', to: '2026-11-18' };
    makeArchive(join(scratch, 'archive'), { ...days, ...range, rowsPerDay: 700_000 });
    const out = join(scratch, 'month');
    const flags = ['--market', 'um', '--dataset', 'trades', '--partition', 'month'];
    await download('BTCUSDT', out, [...flags, '--from', '2026-11-10', '--to', '2026-11-11', ...NOVEMBER]);
    await download('BTCUSDT', out, [...flags, '--from', '2026-11-12', '--to', '2026-11-18', ...NOVEMBER]);
    const folder = join(out, 'binance/um/trades/symbol=BTCUSDT');
    const disorder = `SELECT count_if(id <= before)::INT AS disorder, count(*)::INT AS rows
      FROM (SELECT id, lag(id) OVER () AS before FROM read_parquet('${folder}/2026-11.parquet'))`;
    expect(await query(disorder)).toEqual({ disorder: 0, rows: 9 * 700_000 });
  });
});
