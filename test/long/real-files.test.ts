/** Every real file that is at hand: all rows and all digits, against columns, order and row counts written down here. */
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, manifestLines, parquetMetadata } from '../helpers/lake.js';
import { publish } from '../helpers/published.js';
import { firstMember, readPublished, SAMPLES, samplesMissing } from '../helpers/samples.js';

/** Behind every file. */
const NOW = '2026-11-21T12:00:00Z';

/** Types of published cells: `time` is epoch ms or us, `dropped` is not written because the path says it. */
type Type = 'time' | 'datetime' | 'date' | 'hour' | 'integer' | 'number' | 'flag' | 'text' | 'dropped';

interface Column {
  readonly name: string;
  /** In the archive's header; undefined: published files do not have it, and it is blank in the lake. */
  readonly published: string | undefined;
  readonly type: Type;
}

interface Shape {
  readonly columns: readonly Column[];
  readonly sort: readonly string[];
  readonly grain: 'day' | 'month';
}

/**
 * `name:type` with commas, `new=old:type` for a column that is renamed, `+name:type` for one that is not published; numbers may
 * leave their type out.
 */
function shape(grain: Shape['grain'], sort: string, columns: string): Shape {
  const parsed = columns.split(/,\s*/).map((column): Column => {
    const [names = '', type = 'number'] = column.split(':');
    const [name = '', published = name] = names.split('=');
    if (name.startsWith('+')) return { name: name.slice(1), published: undefined, type: type as Type };
    return { name, published, type: type as Type };
  });
  return { grain, sort: sort.split(','), columns: parsed };
}

const AGG_TRADES =
  'agg_trade_id:integer, price, quantity, first_trade_id:integer, last_trade_id:integer, transact_time:time, is_buyer_maker:flag';
const SHAPES: Readonly<Record<string, Shape>> = {
  klines: shape(
    'month',
    'open_time',
    'open_time:time, open, high, low, close, volume, close_time:time, quote_volume, count:integer, taker_buy_volume, ' +
      'taker_buy_quote_volume, ignore',
  ),
  fundingRate: shape(
    'month',
    'calc_time',
    'calc_time:time, funding_interval_hours:integer, last_funding_rate, +mark_price',
  ),
  metrics: shape(
    'month',
    'create_time',
    'create_time:datetime, symbol:dropped, sum_open_interest, sum_open_interest_value, count_toptrader_long_short_ratio, ' +
      'sum_toptrader_long_short_ratio, count_long_short_ratio, sum_taker_long_short_vol_ratio',
  ),
  aggTrades: shape('day', 'agg_trade_id', AGG_TRADES),
  'spot aggTrades': shape('day', 'agg_trade_id', `${AGG_TRADES}, is_best_match:flag`),
  'spot trades': shape(
    'day',
    'id',
    'id:integer, price, qty, quote_qty, time:time, is_buyer_maker:flag, is_best_match:flag',
  ),
  bookDepth: shape('day', 'timestamp,percentage', 'timestamp:datetime, percentage, depth, notional'),
  bookTicker: shape(
    'day',
    'update_id',
    'update_id:integer, best_bid_price, best_bid_qty, best_ask_price, best_ask_qty, transaction_time:time, event_time:time',
  ),
  liquidationSnapshot: shape(
    'month',
    'time',
    'time:time, side:text, order_type:text, time_in_force:text, original_quantity, price, average_price, ' +
      'order_status:text, last_fill_quantity, accumulated_fill_quantity',
  ),
  EOHSummary: shape(
    'month',
    'date,hour,contract',
    'date:date, hour:hour, contract=symbol:text, underlying:text, type:text, strike:text, open, high, low, close, ' +
      'volume_contracts, volume_usdt, best_bid_price, best_ask_price, best_bid_qty, best_ask_qty, best_buy_iv, ' +
      'best_sell_iv, mark_price, mark_iv, delta, gamma, vega, theta, openinterest_contracts, openinterest_usdt',
  ),
};

/** The whole files. */
const WHOLE: Readonly<Record<string, Pick<Excerpt, 'rows' | 'hasHeader'>>> = {
  'data/futures/cm/daily/aggTrades/BTCUSD_PERP/BTCUSD_PERP-aggTrades-2026-05-08.zip': {
    rows: 105_280,
    hasHeader: true,
  },
  'data/futures/cm/daily/klines/BTCUSD_PERP/1m/BTCUSD_PERP-1m-2022-10-24.zip': {
    rows: 1440,
    hasHeader: true,
  },
  'data/futures/um/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2022-09-05.zip': { rows: 1440, hasHeader: true },
  'data/futures/um/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2023-04-15.zip': { rows: 1440, hasHeader: true },
  'data/futures/um/daily/klines/ETHUSDT/1h/ETHUSDT-1h-2022-08-24.zip': { rows: 24, hasHeader: true },
  'data/futures/um/monthly/fundingRate/BTCUSDT/BTCUSDT-fundingRate-2026-04.zip': {
    rows: 90,
    hasHeader: true,
  },
  'data/futures/um/monthly/fundingRate/BTCUSDT/BTCUSDT-fundingRate-2026-08.zip': {
    rows: 93,
    hasHeader: true,
  },
  'data/option/daily/EOHSummary/BTCUSDT/BTCUSDT-EOHSummary-2023-10-20.zip': { rows: 5626, hasHeader: true },
  'data/option/daily/EOHSummary/BTCUSDT/BTCUSDT-EOHSummary-2023-10-21.zip': { rows: 5424, hasHeader: true },
  'data/spot/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2022-09-07.zip': { rows: 24, hasHeader: false },
  'data/spot/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-05-08.zip': { rows: 24, hasHeader: false },
  'data/spot/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2020-01-01.zip': { rows: 1440, hasHeader: false },
  'data/spot/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2020-01-02.zip': { rows: 1440, hasHeader: false },
  'data/spot/daily/klines/ETHUSDT/1m/ETHUSDT-1m-2022-08-14.zip': { rows: 1440, hasHeader: false },
  'data/spot/monthly/klines/BTCUSDT/1h/BTCUSDT-1h-2024-08.zip': { rows: 744, hasHeader: false },
};

interface Excerpt {
  readonly rows: number;
  readonly hasHeader: boolean;
  /** Rows that are there for the second time. */
  readonly duplicates: number;
  /** One row as it must be in Parquet with every digit. */
  readonly row: string;
}

const EXCERPTS: Readonly<Record<string, Excerpt>> = {
  'data/futures/cm/daily/liquidationSnapshot/BTCUSD_PERP/BTCUSD_PERP-liquidationSnapshot-2023-06-25.zip': {
    rows: 3,
    hasHeader: true,
    duplicates: 1,
    row: '1687656471926000 | BUY | LIMIT | IOC | 7 | 30741.3 | 30631.6 | FILLED | 6 | 7',
  },
  'data/futures/cm/daily/metrics/BTCUSD_PERP/BTCUSD_PERP-metrics-2023-06-25.zip': {
    rows: 3,
    hasHeader: true,
    duplicates: 0,
    row: '1687651200000000 | 5578700.00000000 | 18265.00911826 | NULL | NULL | NULL | 0.00855776',
  },
  'data/futures/um/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-2026-09-30.zip': {
    rows: 25,
    hasHeader: true,
    duplicates: 0,
    row: '3469657145 | 83624.5 | 0.03 | 8131311701 | 8131311703 | 1790726400261000 | false',
  },
  'data/futures/um/daily/bookDepth/BTCUSDT/BTCUSDT-bookDepth-2026-09-30.zip': {
    rows: 25,
    hasHeader: true,
    duplicates: 0,
    row: '1790726401000000 | -5.00 | 9570.33300000 | 784228389.59460000',
  },
  'data/futures/um/daily/bookTicker/BTCUSDT/BTCUSDT-bookTicker-2023-10-02.zip': {
    rows: 9999,
    hasHeader: true,
    duplicates: 0,
    row: '3319366863672 | 27981.30000000 | 12.91100000 | 27981.40000000 | 7.25800000 | 1696204800012000 | 1696204800018000',
  },
  'data/futures/um/daily/klines/BTCUSDT/1m/BTCUSDT-1m-2026-09-30.zip': {
    rows: 25,
    hasHeader: true,
    duplicates: 0,
    row: '1790726400000000 | 83624.50 | 83652.00 | 83624.40 | 83639.90 | 21.311 | 1790726459999000 | 1782492.64160 | 1255 | 13.461 | 1125889.12490 | 0',
  },
  'data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2026-09-30.zip': {
    rows: 25,
    hasHeader: true,
    duplicates: 0,
    row: '1790735400000000 | 92849.1660000000000000 | 7734131259.6348000000000000 | 1.45104650 | 1.93356400 | 1.38112049 | 0.41920300',
  },
  'data/futures/um/monthly/fundingRate/BTCUSDT/BTCUSDT-fundingRate-2025-10.zip': {
    rows: 2,
    hasHeader: true,
    duplicates: 0,
    row: '1760976000000000 | 8 | -1.8E-7 | NULL',
  },
  'data/spot/daily/aggTrades/FXSUSDT/FXSUSDT-aggTrades-2023-10-29.zip': {
    rows: 5,
    hasHeader: false,
    duplicates: 0,
    row: '11782578 | 6.00000000 | 1.00000000 | 14974844 | 14974844 | 1698623884463000 | true | true',
  },
  'data/spot/daily/trades/BTCUSDT/BTCUSDT-trades-2017-08-17.zip': {
    rows: 30,
    hasHeader: false,
    duplicates: 0,
    row: '2 | 4261.48000000 | 0.07518300 | 320.39085084 | 1502942432322000 | false | true',
  },
};

/** The key that an excerpt would have if it were whole; of the one of several months, the first. */
function keyOfExcerpt(path: string): string {
  return `${path.replace(/\.(?:first|header|\d+rows).*$/, '').replace(/exponent-rows-(\d{4}-\d{2})_.*$/, '$1')}.zip`;
}

/** The rows of an excerpt that are of the period of its key: one of them was gathered from several months. */
function rowsOfPeriod(path: string, csv: Buffer): Buffer {
  if (!path.includes('exponent-rows')) return csv;
  const month = placeOf(keyOfExcerpt(path)).period;
  const lines = csv.toString('utf8').split('\n');
  const isOf = (line: string): boolean =>
    new Date(Number(line.split(',')[0])).toISOString().startsWith(month);
  return Buffer.from(lines.filter((line) => !/^\d/.test(line) || isOf(line)).join('\n'));
}

interface Sample {
  readonly key: string;
  readonly csv: Buffer;
}

/** All that there is of real data, under its key. */
function readSamples(): Sample[] {
  const read = (folder: string, path: string): Buffer => readFileSync(join(SAMPLES, folder, path));
  return [
    ...filesBelow(join(SAMPLES, 'data'), '.zip').map((path) => {
      return { key: `data/${path}`, csv: firstMember(read('data', path)) };
    }),
    ...filesBelow(join(SAMPLES, 'csv'), '.csv').map((path) => {
      return { key: path.replace(/\.csv$/, '.zip'), csv: read('csv', path) };
    }),
    ...filesBelow(join(SAMPLES, 'csv-excerpts'), '.csv').map((path) => {
      return { key: keyOfExcerpt(path), csv: rowsOfPeriod(path, read('csv-excerpts', path)) };
    }),
  ];
}

interface Place {
  readonly market: string;
  readonly dataset: string;
  readonly symbol: string;
  readonly interval: string | undefined;
  readonly period: string;
}

function placeOf(key: string): Place {
  const parts = key.replace(/^data\/(?:futures\/)?/, '').split('/');
  const [market = '', , dataset = '', symbol = ''] = parts;
  const period = /-(\d{4}-\d{2}(?:-\d{2})?)\.zip$/.exec(key)?.[1] ?? '';
  return { market, dataset, symbol, interval: parts.length === 6 ? parts[4] : undefined, period };
}

function isOfOneDataset(key: string, other: string): boolean {
  const [a, b] = [placeOf(key), placeOf(other)];
  return a.market === b.market && a.dataset === b.dataset;
}

function shapeOf({ market, dataset }: Place): Shape {
  const found = SHAPES[`${market} ${dataset}`] ?? SHAPES[dataset];
  if (found === undefined) throw new Error(`no columns are written down for ${market} ${dataset}`);
  return found;
}

/** The one data file below a lake, relative to it. */
function fileOf(place: Place, format: string): string {
  const { market, dataset, symbol, interval, period } = place;
  const layer = interval === undefined ? '' : `interval=${interval}/`;
  const label = shapeOf(place).grain === 'month' ? period.slice(0, 'YYYY-MM'.length) : period;
  return `binance/${market}/${dataset}/${layer}symbol=${symbol}/${label}.${format}`;
}

function microseconds(cell: string, type: Type): bigint {
  if (type === 'datetime') return BigInt(Date.parse(`${cell.replace(' ', 'T')}Z`)) * 1000n;
  return cell.length === 16 ? BigInt(cell) : BigInt(cell) * 1000n;
}

type Numbers = 'string' | 'double';

/** A published cell as Parquet must hold it, as text: its type is said by the schema. */
function inParquet(cell: string, type: Type, numbers: Numbers): string {
  if (cell === '') return 'NULL';
  if (type === 'time' || type === 'datetime') return String(microseconds(cell, type));
  if (type === 'integer' || type === 'hour') return String(BigInt(cell));
  if (type === 'flag') return cell.toLowerCase();
  return type === 'number' && numbers === 'double' ? String(Number(cell)) : cell;
}

function inCsv(cell: string, type: Type): string {
  if (type === 'time' || type === 'datetime') return String(microseconds(cell, type));
  return type === 'flag' ? cell.toLowerCase() : cell;
}

/** Rows as they must be written: sorted, each once, a text of cells for each. */
function expectedRows(
  { columns, sort }: Shape,
  rows: readonly (readonly string[])[],
  write: (cell: string, type: Type) => string,
): string[] {
  const order = sort.map((name) => columns.findIndex((column) => column.name === name));
  const distinct = [...new Map(rows.map((row) => [row.join(','), row])).values()];
  const sorted = distinct.sort((a, b) => {
    for (const at of order) {
      const [left = '', right = ''] = [a[at], b[at]];
      const isNumeric = columns[at]?.type === 'number' || columns[at]?.type === 'integer';
      const difference = isNumeric ? Number(left) - Number(right) : left < right ? -1 : Number(left > right);
      if (difference !== 0) return difference;
    }
    // No two rows of one sort key: the order of all rows is known.
    throw new Error(`two rows of ${order.map((at) => a[at]).join(' ')}`);
  });
  return sorted.map((row) =>
    columns.flatMap(({ type }, at) => (type === 'dropped' ? [] : [write(row[at] ?? '', type)])).join(' | '),
  );
}

/** Every digit of a Parquet file: hyparquet's own dates end at milliseconds. */
async function parquetRows(file: string): Promise<string[]> {
  const rows = await parquetReadObjects({
    file: await asyncBufferFromFile(file),
    compressors,
    parsers: {
      timestampFromMilliseconds: (value: bigint) => `${value} in ms`,
      timestampFromMicroseconds: (value: bigint) => value,
      timestampFromNanoseconds: (value: bigint) => `${value} in ns`,
      dateFromDays: (days: number) => new Date(days * 86_400_000).toISOString().slice(0, 10),
      stringFromBytes: (bytes: Uint8Array | undefined) =>
        bytes === undefined ? undefined : Buffer.from(bytes).toString('utf8'),
    },
  });
  return rows.map((row) =>
    Object.values(row)
      .map((value) => (value === null || value === undefined ? 'NULL' : String(value as bigint)))
      .join(' | '),
  );
}

/** `name type` of every column of a Parquet file. */
async function parquetColumns(file: string): Promise<string[]> {
  const { schema } = await parquetMetadata(file);
  return schema.slice(1).map(({ name, type, converted_type: converted, logical_type: logical }) => {
    if (type === 'INT64' && (converted === undefined || converted === 'INT_64')) return `${name} BIGINT`;
    if (type === 'BYTE_ARRAY' && converted === 'UTF8') return `${name} VARCHAR`;
    if (type === 'INT32' && converted === 'DATE') return `${name} DATE`;
    if (logical?.type === 'TIMESTAMP') return `${name} TIMESTAMP ${logical.unit}`;
    return `${name} ${type}`;
  });
}

const PARQUET_TYPES: Readonly<Record<Exclude<Type, 'number' | 'dropped'>, string>> = {
  time: 'TIMESTAMP MICROS',
  datetime: 'TIMESTAMP MICROS',
  date: 'DATE',
  hour: 'BIGINT',
  integer: 'BIGINT',
  flag: 'BOOLEAN',
  text: 'VARCHAR',
};

function expectedColumns({ columns }: Shape, numbers: Numbers): string[] {
  return columns.flatMap(({ name, type }) => {
    if (type === 'dropped') return [];
    if (type === 'number') return [`${name} ${numbers === 'string' ? 'VARCHAR' : 'DOUBLE'}`];
    return [`${name} ${PARQUET_TYPES[type]}`];
  });
}

const missing = samplesMissing('data', 'csv', 'csv-excerpts');
if (missing !== undefined) process.stderr.write(`real files: ${missing}\n`);

describe.skipIf(missing !== undefined)('real archive files', () => {
  const samples = missing === undefined ? readSamples() : [];
  const csvs = new Map(samples.map(({ key, csv }) => [key, csv]));
  const scratch = scratchFolder();
  const folder = join(scratch, 'archive');
  let archive: TestArchive;
  beforeAll(async () => {
    // The published zips and sidecars byte by byte; the rest is zipped here.
    cpSync(join(SAMPLES, 'data'), join(folder, 'data'), { recursive: true });
    for (const { key, csv } of samples) {
      if (!existsSync(join(folder, key))) publish(folder, key, csv.toString('utf8'));
    }
    archive = await startArchive(folder);
  });
  afterAll(() => archive.close());

  let lakes = 0;
  /** Downloads into a lake of its own the objects of one series from `key` to `lastKey`. */
  async function download(key: string, flags: readonly string[], lastKey = key): Promise<string> {
    const { market, dataset, symbol, interval, period } = placeOf(key);
    const isMonth = period.length === 'YYYY-MM'.length;
    const last = placeOf(lastKey).period;
    lakes += 1;
    const out = join(scratch, `lake-${lakes}`);
    const what = ['--market', market, '--dataset', dataset, '--symbols', symbol];
    const layer = interval === undefined ? [] : ['--interval', interval];
    const from = isMonth ? `${period}-01` : period;
    const to = isMonth ? `${last}-28` : last;
    const when = ['--from', from, '--to', to, '--now', NOW, '--cadence', isMonth ? 'monthly' : 'daily'];
    const where = ['--archive-url', archive.url, '--out', out];
    await cryptodlOk(['vision', ...what, ...layer, ...when, ...where, ...flags, ...FAST]);
    return out;
  }

  const read = new Map<string, string[][]>();
  function published(...keys: readonly string[]): string[][] {
    for (const key of keys)
      if (!read.has(key)) read.set(key, readPublished(csvs.get(key) ?? Buffer.alloc(0)).rows);
    return keys.flatMap((key) => read.get(key) ?? []);
  }

  interface Written {
    /** Data files of the lake. */
    readonly files: readonly string[];
    /** With the types of Parquet. */
    readonly columns: readonly string[];
    readonly rows: readonly string[];
  }

  async function parquetIn(out: string): Promise<Written> {
    const files = filesBelow(out, '.parquet');
    const file = join(out, files[0] ?? '');
    return { files, columns: await parquetColumns(file), rows: await parquetRows(file) };
  }

  function expectedParquet(numbers: Numbers, ...keys: readonly string[]): Written {
    const place = placeOf(keys[0] ?? '');
    const itsShape = shapeOf(place);
    return {
      files: [fileOf(place, 'parquet')],
      columns: expectedColumns(itsShape, numbers),
      rows: expectedRows(itsShape, published(...keys), (cell, type) => inParquet(cell, type, numbers)),
    };
  }

  function csvIn(out: string): Written {
    const files = filesBelow(out, '.csv');
    const [header = '', ...rows] = readFileSync(join(out, files[0] ?? ''), 'utf8').split('\n');
    return { files, columns: header.split(','), rows: rows.map((row) => row.split(',').join(' | ')) };
  }

  function expectedCsv(...keys: readonly string[]): Written {
    const place = placeOf(keys[0] ?? '');
    const itsShape = shapeOf(place);
    return {
      files: [fileOf(place, 'csv')],
      columns: itsShape.columns.flatMap(({ name, type }) => (type === 'dropped' ? [] : [name])),
      rows: [...expectedRows(itsShape, published(...keys), inCsv), ''],
    };
  }

  /** What the lake remembers of an object. */
  function rememberedIn(out: string, key: string): object {
    const series = dirname(fileOf(placeOf(key), ''));
    const line = manifestLines(join(out, series)).find((candidate) => candidate['key'] === key) ?? {};
    const { rows, duplicates, first, last } = line;
    return { rows, duplicates, first: Date.parse(String(first)), last: Date.parse(String(last)) };
  }

  /** First and last to the millisecond. */
  function expectedMemory(key: string, rows: number, duplicates = 0): object {
    const { columns } = shapeOf(placeOf(key));
    const at = columns.findIndex(({ type }) => type === 'time' || type === 'datetime');
    const times = published(key).map((row) => {
      if (at < 0) return Date.parse(`${row[0] ?? ''}T${row[1] ?? ''}:00:00Z`);
      return Number(microseconds(row[at] ?? '', columns[at]?.type ?? 'time') / 1000n);
    });
    const first = times.reduce((a, b) => Math.min(a, b));
    const last = times.reduce((a, b) => Math.max(a, b));
    return { rows, duplicates, first, last };
  }

  it('are all covered, with the headers and rows that they are known to have', () => {
    const known = Object.entries({ ...WHOLE, ...EXCERPTS });
    expect([...csvs.keys()].sort()).toEqual(known.map(([key]) => key).sort());
    expect(csvs.size).toBe(samples.length);
    for (const [key, { rows, hasHeader }] of known) {
      const { header, rows: found } = readPublished(csvs.get(key) ?? Buffer.alloc(0));
      expect([key, found.length]).toEqual([key, rows]);
      const names = shapeOf(placeOf(key)).columns.flatMap(({ published: name }) => name ?? []);
      expect([key, header]).toEqual([key, hasHeader ? names : undefined]);
      expect(new Set(found.map((row) => row.length))).toEqual(new Set([names.length]));
    }
  });

  describe.each(Object.entries(WHOLE))('%s', (key, { rows }) => {
    it('has the same rows and digits in Parquet', async () => {
      const out = await download(key, ['--numbers', 'string']);
      expect(await parquetIn(out)).toEqual(expectedParquet('string', key));
      expect(rememberedIn(out, key)).toEqual(expectedMemory(key, rows));
    });

    it('has the same rows and digits in CSV', async () => {
      const out = await download(key, ['--format', 'csv']);
      expect(csvIn(out)).toEqual(expectedCsv(key));
      expect(rememberedIn(out, key)).toEqual(expectedMemory(key, rows));
    });
  });

  describe.each(Object.entries(EXCERPTS))('%s, an excerpt', (key, { rows, duplicates, row }) => {
    it('keeps its odd values in Parquet', async () => {
      const out = await download(key, ['--numbers', 'string']);
      const written = await parquetIn(out);
      expect(written).toEqual(expectedParquet('string', key));
      expect(written.rows).toContain(row);
      expect(rememberedIn(out, key)).toEqual(expectedMemory(key, rows - duplicates, duplicates));
    });

    it('keeps its odd values in CSV', async () => {
      const out = await download(key, ['--format', 'csv']);
      expect(csvIn(out)).toEqual(expectedCsv(key));
      expect(csvIn(out).rows).toContain(row.replaceAll('NULL', ''));
      expect(rememberedIn(out, key)).toEqual(expectedMemory(key, rows - duplicates, duplicates));
    });
  });

  it.each(
    Object.keys({ ...WHOLE, ...EXCERPTS }).filter(
      (key, index, keys) =>
        keys.findIndex((other) => isOfOneDataset(key, other)) === index ||
        key.includes('fundingRate-2025-10'),
    ),
  )('%s has the nearest doubles', async (key) => {
    expect(await parquetIn(await download(key, []))).toEqual(expectedParquet('double', key));
  });

  describe('two days of one month', () => {
    const rest =
      'BTC-240927-22000-P | BTCUSDT | P | 240927-22000 | 0E-8 | 0E-8 | 0E-8 | 0E-8 | 0E-8 | 0E-8 | 1790.00000000 | ' +
      '2190.00000000 | 2.51000000 | 3.60000000 | NULL | 0.49773991 | 1988.00000000 | 0.47276855 | -0.21015334 | ' +
      '0.00002194 | 80.12745673 | -5.51809758 | 0E-8 | 0E-8';
    const [first = '', last = ''] = Object.keys(WHOLE).filter((key) => key.includes('EOHSummary'));

    it('lie sorted in one Parquet file', async () => {
      const out = await download(first, ['--numbers', 'string'], last);
      const written = await parquetIn(out);
      expect(written).toEqual(expectedParquet('string', first, last));
      expect(written.rows).toContain(`2023-10-20 | 1 | ${rest}`);
      expect(rememberedIn(out, first)).toEqual(expectedMemory(first, 5626));
      expect(rememberedIn(out, last)).toEqual(expectedMemory(last, 5424));
    });

    it('lie sorted in one CSV file', async () => {
      const out = await download(first, ['--format', 'csv'], last);
      expect(csvIn(out)).toEqual(expectedCsv(first, last));
      expect(csvIn(out).rows).toContain(`2023-10-20 | 01 | ${rest.replace('NULL', '')}`);
    });
  });
});
