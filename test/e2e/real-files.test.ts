import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, manifestLines, readCsv, readParquet } from '../helpers/lake.js';
import { SAMPLES, SAMPLES_MISSING } from '../helpers/samples.js';

const KLINES =
  'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore';
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  klines: KLINES.split(','),
  fundingRate: ['calc_time', 'funding_interval_hours', 'last_funding_rate'],
};
const TIMES = new Set(['open_time', 'close_time', 'calc_time']);
const INTEGERS = new Set(['count', 'funding_interval_hours']);

interface Sample {
  readonly key: string;
  readonly market: string;
  readonly dataset: string;
  readonly symbol: string;
  readonly interval: string | undefined;
  readonly period: string;
}

function samplesOf(folder: string): Sample[] {
  return filesBelow(join(folder, 'data'), '.zip').flatMap((path) => {
    const key = `data/${path}`;
    const parts = path.replace(/^futures\//, '').split('/');
    const [market = '', , dataset = '', symbol = ''] = parts;
    const interval = parts.length === 6 ? parts[4] : undefined;
    const period = /-(\d{4}-\d{2}(?:-\d{2})?)\.zip$/.exec(path)?.[1] ?? '';
    return COLUMNS[dataset] === undefined ? [] : [{ key, market, dataset, symbol, interval, period }];
  });
}

/** Rows of the one CSV inside, by a reader that shares nothing with the product. */
function publishedRows(zip: string): string[][] {
  const bytes = readFileSync(zip);
  const start = 30 + bytes.readUInt16LE(26) + bytes.readUInt16LE(28);
  const lines = inflateRawSync(bytes.subarray(start)).toString('utf8').trimEnd().split('\n');
  return lines.filter((line) => /^\d/.test(line)).map((line) => line.split(','));
}

function inMicroseconds(text: string): bigint {
  return text.length === 16 ? BigInt(text) : BigInt(text) * 1000n;
}

if (SAMPLES_MISSING !== undefined) process.stderr.write(`real files: ${SAMPLES_MISSING}\n`);

describe.skipIf(SAMPLES_MISSING !== undefined)('real archive files', () => {
  const samples = SAMPLES_MISSING === undefined ? samplesOf(SAMPLES) : [];
  const scratch = scratchFolder();
  let archive: TestArchive;
  beforeAll(async () => {
    archive = await startArchive(SAMPLES);
  });
  afterAll(() => archive.close());

  async function download(sample: Sample, out: string, flags: readonly string[]): Promise<string> {
    const last = sample.period.length === 7 ? `${sample.period}-28` : sample.period;
    const first = sample.period.length === 7 ? `${sample.period}-01` : sample.period;
    const interval = sample.interval === undefined ? [] : ['--interval', sample.interval];
    const what = [
      '--market',
      sample.market,
      '--dataset',
      sample.dataset,
      '--symbols',
      sample.symbol,
      ...interval,
    ];
    const range = [
      '--from',
      first,
      '--to',
      last,
      '--cadence',
      sample.period.length === 7 ? 'monthly' : 'daily',
    ];
    await cryptodlOk([
      'vision',
      ...what,
      ...range,
      '--archive-url',
      archive.url,
      '--out',
      out,
      ...flags,
      ...FAST,
    ]);
    const layer = sample.interval === undefined ? '' : `interval=${sample.interval}/`;
    return join(out, 'binance', sample.market, sample.dataset, layer, `symbol=${sample.symbol}`);
  }

  it('covers every zip of the datasets that this version has', () => {
    expect(samples.length).toBeGreaterThanOrEqual(9);
  });

  it.each(samples)('$key has the same rows and digits in Parquet', async (sample) => {
    const published = publishedRows(join(SAMPLES, sample.key));
    const out = join(scratch, 'parquet', basename(sample.key));
    const folder = await download(sample, out, ['--numbers', 'string']);
    const rows = await readParquet(join(folder, `${sample.period.slice(0, 7)}.parquet`));
    const names = COLUMNS[sample.dataset] ?? [];
    expect(Object.keys(rows[0] ?? {})).toEqual(names);
    const expected = published.map((cells) =>
      names.map((name, index) => {
        const cell = cells[index] ?? '';
        if (TIMES.has(name)) return inMicroseconds(cell);
        return INTEGERS.has(name) ? BigInt(cell) : cell;
      }),
    );
    const actual = rows.map((row) =>
      names.map((name) => {
        const value = row[name];
        return value instanceof Date ? BigInt(value.getTime()) * 1000n : value;
      }),
    );
    // hyparquet gives times in whole milliseconds; the digits below them are compared in the CSV.
    const whole = (value: unknown, index: number): unknown =>
      TIMES.has(names[index] ?? '') && typeof value === 'bigint' ? (value / 1000n) * 1000n : value;
    expect(actual).toEqual(expected.map((cells) => cells.map(whole)));
    const [line] = manifestLines(folder);
    expect(line).toMatchObject({ key: sample.key, rows: published.length, duplicates: 0 });
    const times = published.map((cells) => Number(inMicroseconds(cells[0] ?? '')) / 1000);
    expect(Date.parse(String(line?.['first']))).toBe(Math.floor(Math.min(...times)));
    expect(Date.parse(String(line?.['last']))).toBe(Math.floor(Math.max(...times)));
  });

  it.each(samples)('$key has the same rows and digits in CSV', async (sample) => {
    const published = publishedRows(join(SAMPLES, sample.key));
    const folder = await download(sample, join(scratch, 'csv', basename(sample.key)), ['--format', 'csv']);
    const rows = readCsv(join(folder, `${sample.period.slice(0, 7)}.csv`));
    const names = COLUMNS[sample.dataset] ?? [];
    const expected = published.map((cells) =>
      names.map((name, index) =>
        TIMES.has(name) ? String(inMicroseconds(cells[index] ?? '')) : (cells[index] ?? ''),
      ),
    );
    expect(rows.map((row) => names.map((name) => row[name]))).toEqual(expected);
  });

  it('a double holds the published number as closely as a double can', async () => {
    const sample = samples.find(({ dataset, market }) => dataset === 'klines' && market === 'um');
    if (sample === undefined) throw new Error('no um klines among the samples');
    const folder = await download(sample, join(scratch, 'double'), []);
    const rows = await readParquet(join(folder, `${sample.period.slice(0, 7)}.parquet`));
    const published = publishedRows(join(SAMPLES, sample.key));
    expect(rows.map((row) => row['quote_volume'])).toEqual(published.map((cells) => Number(cells[7])));
  });
});
