/** Every market and dataset of the archive, through the real binary, against columns and types that are written down here. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import type { Dataset, Market } from '../../scripts/synthetic-rows.js';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow, manifestLines, parquetMetadata, readCsv, readParquet } from '../helpers/lake.js';
import { publish, publishedRows } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';
import { useSql } from '../helpers/sql.js';

/** Days on which every dataset was published, the ended ones too. */
const DAYS = ['2023-10-22', '2023-10-23'] as const;
const MONTH = '2023-10';
const NOW = '2026-11-21T12:00:00Z';

// Published columns in file order with the type in Parquet. (name): checked and not written, the path says it.
// name=other: published under another name. +name: not published, blank in the lake; only rows from REST have it.
const BARS =
  'open_time TIMESTAMP, open DOUBLE, high DOUBLE, low DOUBLE, close DOUBLE, volume DOUBLE, close_time TIMESTAMP, ' +
  'quote_volume DOUBLE, count BIGINT, taker_buy_volume DOUBLE, taker_buy_quote_volume DOUBLE, ignore DOUBLE';
const AGG_TRADES =
  'agg_trade_id BIGINT, price DOUBLE, quantity DOUBLE, first_trade_id BIGINT, last_trade_id BIGINT, ' +
  'transact_time TIMESTAMP, is_buyer_maker BOOLEAN';
const TRADES =
  'id BIGINT, price DOUBLE, qty DOUBLE, quote_qty DOUBLE, time TIMESTAMP, is_buyer_maker BOOLEAN';
const FUNDING =
  'calc_time TIMESTAMP, funding_interval_hours BIGINT, last_funding_rate DOUBLE, +mark_price DOUBLE';
const METRICS =
  'create_time TIMESTAMP, (symbol), sum_open_interest DOUBLE, sum_open_interest_value DOUBLE, ' +
  'count_toptrader_long_short_ratio DOUBLE, sum_toptrader_long_short_ratio DOUBLE, count_long_short_ratio DOUBLE, ' +
  'sum_taker_long_short_vol_ratio DOUBLE';
const DEPTH = 'timestamp TIMESTAMP, percentage DOUBLE, depth DOUBLE, notional DOUBLE';
const TICKER =
  'update_id BIGINT, best_bid_price DOUBLE, best_bid_qty DOUBLE, best_ask_price DOUBLE, best_ask_qty DOUBLE, ' +
  'transaction_time TIMESTAMP, event_time TIMESTAMP';
const LIQUIDATIONS =
  'time TIMESTAMP, side VARCHAR, order_type VARCHAR, time_in_force VARCHAR, original_quantity DOUBLE, price DOUBLE, ' +
  'average_price DOUBLE, order_status VARCHAR, last_fill_quantity DOUBLE, accumulated_fill_quantity DOUBLE';
const BVOL = 'calc_time TIMESTAMP, (symbol), base_asset VARCHAR, quote_asset VARCHAR, index_value DOUBLE';
const EOH =
  'date DATE, hour BIGINT, contract=symbol VARCHAR, underlying VARCHAR, type VARCHAR, strike VARCHAR, open DOUBLE, ' +
  'high DOUBLE, low DOUBLE, close DOUBLE, volume_contracts DOUBLE, volume_usdt DOUBLE, best_bid_price DOUBLE, ' +
  'best_ask_price DOUBLE, best_bid_qty DOUBLE, best_ask_qty DOUBLE, best_buy_iv DOUBLE, best_sell_iv DOUBLE, ' +
  'mark_price DOUBLE, mark_iv DOUBLE, delta DOUBLE, gamma DOUBLE, vega DOUBLE, theta DOUBLE, ' +
  'openinterest_contracts DOUBLE, openinterest_usdt DOUBLE';

interface Entry {
  readonly market: Market;
  readonly dataset: Dataset;
  /** Cadences of the archive. */
  readonly has: 'D M' | 'D' | 'M';
  /** What one file holds. */
  readonly grain: 'day' | 'month';
  readonly symbol: string;
  readonly sort: readonly string[];
  readonly columns: string;
  /** Rows of DAYS in the lake, or of MONTH where only months exist. */
  readonly rows: number;
}

type Row = readonly [
  Dataset,
  Entry['has'],
  Entry['grain'],
  string,
  sort: string,
  columns: string,
  rows: number,
];

function entries(market: Market, rows: readonly Row[]): Entry[] {
  return rows.map(([dataset, has, grain, symbol, sort, columns, count]) => {
    return { market, dataset, has, grain, symbol, sort: sort.split(' '), columns, rows: count };
  });
}

const FUNDING_ROWS = 31 * 3;
/** Snapshots × bands. */
const DEPTH_ROWS = 2 * 24 * 10;

/** The datasets of both futures markets. The archive has removed `liquidationSnapshot`; a mirror may have it. */
const futures = (symbol: string, pair: string, trades: string): readonly Row[] => [
  ['klines', 'D M', 'month', symbol, 'open_time', BARS, 48],
  ['aggTrades', 'D M', 'day', symbol, 'agg_trade_id', AGG_TRADES, 48],
  ['trades', 'D M', 'day', symbol, 'id', trades, 48],
  ['indexPriceKlines', 'D M', 'month', pair, 'open_time', BARS, 48],
  ['markPriceKlines', 'D M', 'month', symbol, 'open_time', BARS, 48],
  ['premiumIndexKlines', 'D M', 'month', symbol, 'open_time', BARS, 48],
  ['fundingRate', 'M', 'month', symbol, 'calc_time', FUNDING, FUNDING_ROWS],
  ['metrics', 'D', 'month', symbol, 'create_time', METRICS, 576],
  ['bookDepth', 'D', 'day', symbol, 'timestamp percentage', DEPTH, DEPTH_ROWS],
  ['bookTicker', 'D M', 'day', symbol, 'update_id', TICKER, 48],
  ['liquidationSnapshot', 'D', 'month', symbol, 'time', LIQUIDATIONS, 48],
];

const MATRIX: readonly Entry[] = [
  ...entries('spot', [
    ['klines', 'D M', 'month', 'BTCUSDT', 'open_time', BARS, 48],
    ['aggTrades', 'D M', 'day', 'BTCUSDT', 'agg_trade_id', `${AGG_TRADES}, is_best_match BOOLEAN`, 48],
    ['trades', 'D M', 'day', 'BTCUSDT', 'id', `${TRADES}, is_best_match BOOLEAN`, 48],
  ]),
  ...entries('um', futures('BTCUSDT', 'BTCUSDT', TRADES)),
  ...entries('cm', futures('BTCUSD_PERP', 'BTCUSD', TRADES.replace('quote_qty', 'base_qty'))),
  ...entries('option', [
    ['BVOLIndex', 'D', 'day', 'BTCBVOLUSDT', 'calc_time', BVOL, 48],
    ['EOHSummary', 'D', 'month', 'BTCUSDT', 'date hour contract', EOH, 48],
  ]),
];
const MARKETS: readonly Market[] = ['spot', 'um', 'cm', 'option'];

const BARS_AND_TRADES: readonly string[] = [
  'klines',
  'aggTrades',
  'indexPriceKlines',
  'markPriceKlines',
  'premiumIndexKlines',
];
/** Datasets of the archive that REST has as well. */
const REST_TOO: Readonly<Record<Market, readonly string[]>> = {
  spot: BARS_AND_TRADES,
  um: [...BARS_AND_TRADES, 'fundingRate', 'metrics'],
  cm: [...BARS_AND_TRADES, 'fundingRate'],
  option: [],
};
const STATISTICS = [
  'openInterestHist',
  'topLongShortAccountRatio',
  'topLongShortPositionRatio',
  'globalLongShortAccountRatio',
  'takerLongShortRatio',
  'basis',
];
/** Datasets that the archive never had. */
const REST_ALONE: Readonly<Record<Market, readonly string[]>> = {
  spot: [],
  um: STATISTICS,
  cm: STATISTICS,
  option: [],
};

interface Column {
  readonly published: string;
  /** Undefined: not written. */
  readonly name: string | undefined;
  readonly type: string;
}

function columnsOf({ columns }: Entry): Column[] {
  return columns.split(', ').map((text) => {
    const [, dropped, name, published, type = ''] =
      /^(?:\((\w+)\)|\+?(\w+)(?:=(\w+))? ([A-Z]+))$/.exec(text) ?? [];
    return { published: dropped ?? published ?? name ?? '', name, type };
  });
}

const isBars = ({ dataset }: Pick<Entry, 'dataset'>): boolean => dataset.toLowerCase().endsWith('klines');

function folderOf(entry: Entry, interval = '1h'): string {
  const layer = isBars(entry) ? `interval=${interval}/` : '';
  return `binance/${entry.market}/${entry.dataset}/${layer}symbol=${entry.symbol}`;
}

function keyOf(entry: Entry, period: string): string {
  const market = { spot: 'spot', um: 'futures/um', cm: 'futures/cm', option: 'option' }[entry.market];
  const cadence = period.length === 7 ? 'monthly' : 'daily';
  const [layer, what] = isBars(entry) ? ['1h/', '1h'] : ['', entry.dataset];
  return `data/${market}/${cadence}/${entry.dataset}/${entry.symbol}/${layer}${entry.symbol}-${what}-${period}.zip`;
}

function periodsOf({ has }: Entry): readonly string[] {
  return has === 'M' ? [MONTH] : DAYS;
}

/** Rows of the entry's objects as the lake must have them: exact duplicates once, in order. */
function expectedRows(archiveFolder: string, entry: Entry): string[][] {
  const columns = columnsOf(entry);
  const keys = entry.sort.map((name) => columns.findIndex((column) => column.name === name));
  const rows = periodsOf(entry).flatMap((period) => {
    const published = publishedRows(join(archiveFolder, keyOf(entry, period)));
    const distinct = new Map(published.map((cells) => [cells.join(','), cells]));
    return [...distinct.values()];
  });
  return rows.sort((a, b) => {
    for (const key of keys) {
      const [left = '', right = ''] = [a[key], b[key]];
      const difference = isText(columns[key]?.type) ? compare(left, right) : Number(left) - Number(right);
      if (difference !== 0) return difference;
    }
    return 0;
  });
}

/** Texts of dates and times have the order of what they mean. */
function isText(type: string | undefined): boolean {
  return type !== 'BIGINT' && type !== 'DOUBLE';
}

function compare(a: string, b: string): number {
  return Number(a > b) - Number(a < b);
}

/** Microseconds since 1970 of either spelling of a time. */
function micros(cell: string): bigint {
  if (cell.includes('-')) return BigInt(Date.parse(`${cell.replace(' ', 'T')}Z`)) * 1000n;
  return cell.length === 16 ? BigInt(cell) : BigInt(cell) * 1000n;
}

/** A published cell as hyparquet gives it, times in whole milliseconds. */
function inParquet(cell: string, type: string, numbers: 'double' | 'string'): unknown {
  if (type === 'TIMESTAMP') return new Date(Number(micros(cell) / 1000n));
  if (type === 'DATE') return new Date(`${cell}T00:00:00Z`);
  if (type === 'BIGINT') return BigInt(cell);
  if (type === 'BOOLEAN') return cell.toLowerCase() === 'true';
  if (type === 'VARCHAR') return cell;
  if (cell === '') return null;
  return numbers === 'string' ? cell : Number(cell);
}

function inCsv(cell: string, type: string): string {
  if (type === 'TIMESTAMP') return String(micros(cell));
  return type === 'BOOLEAN' ? cell.toLowerCase() : cell;
}

/** Published rows → what a reader must see in a file of the lake, one list of values per row. */
function values(
  entry: Entry,
  rows: readonly string[][],
  valueOf: (cell: string, type: string) => unknown,
): unknown[][] {
  const columns = columnsOf(entry);
  return rows.map((cells) =>
    columns.flatMap(({ name, type }, index) =>
      name === undefined ? [] : [valueOf(cells[index] ?? '', type)],
    ),
  );
}

/** Layers of a path that readers take for columns. */
function layersOf(path: string): string[] {
  return path.split('/').flatMap((part) => (part.includes('=') ? [part.slice(0, part.indexOf('='))] : []));
}

async function describeParquet(file: string): Promise<string[]> {
  const rows = await sql(`DESCRIBE SELECT * FROM read_parquet('${file}', hive_partitioning = false)`);
  return rows.map((row) => `${String(row['column_name'])} ${String(row['column_type'])}`);
}

const sql = useSql();
const scene = useScene({});
const { scratch, folder } = scene;
/** The lake of a run's output folder. */
const lake = (out: string, ...parts: string[]): string => join(scratch, out, ...parts);
const args = (out: string, flags: readonly string[]): string[] =>
  argv`vision --archive-url ${scene.archive.url} --out ${lake(out)} --now ${NOW} ${FAST} ${flags}`;
const run = (out: string, flags: readonly string[]): Promise<CliResult> => cryptodl(args(out, flags));
const runOk = (out: string, flags: readonly string[]): Promise<CliResult> => cryptodlOk(args(out, flags));
const range = (from: string, to: string): string[] => ['--from', from, '--to', to];
/** `outcome period`, in the order of the archive's keys. */
const outcomesOf = (result: CliResult): string[] =>
  result.events
    .filter(({ event }) => event === 'object')
    .sort((a, b) => compare(String(a['key']), String(b['key'])))
    .map((event) => `${String(event['outcome'])} ${String(event['period'])}`);

beforeAll(() => {
  for (const entry of MATRIX) {
    const { market, dataset, symbol } = entry;
    const made = { market, dataset, symbols: [symbol], rowsPerDay: 24, interval: '1h' } as const;
    if (entry.has === 'M') makeArchive(folder, { ...made, from: DAYS[0], to: DAYS[1], cadence: 'monthly' });
    else makeArchive(folder, { ...made, from: DAYS[0], to: DAYS[1], cadence: 'daily' });
  }
});

describe('every market and dataset', () => {
  const FORMATS = {
    parquet: [],
    digits: ['--numbers', 'string'],
    csv: ['--format', 'csv'],
  } as const;
  const results = new Map<string, CliResult>();
  beforeAll(async () => {
    for (const market of MARKETS) {
      const datasets = MATRIX.filter((entry) => entry.market === market).map(({ dataset }) => dataset);
      const what = [
        '--market',
        market,
        '--dataset',
        datasets.join(','),
        ...'--symbols BTC* --interval 1h'.split(' '),
      ];
      for (const [out, flags] of Object.entries(FORMATS))
        results.set(`${market} ${out}`, await runOk(out, [...what, ...range(...DAYS), '--json', ...flags]));
    }
  });

  it.each(MARKETS)('%s: every object is ok, nothing is absent, and the summary counts the rows', (market) => {
    const of = MATRIX.filter((entry) => entry.market === market);
    const objects = of.reduce((sum, entry) => sum + periodsOf(entry).length, 0);
    for (const out of Object.keys(FORMATS)) {
      expect(results.get(`${market} ${out}`)?.events.at(-1)).toMatchObject({
        outcomes: { ok: objects, partial: 0, skipped: 0, absent: 0, failed: 0 },
        rows: of.reduce((sum, entry) => sum + entry.rows, 0),
        duplicatesKept: 0,
        exitCode: 0,
      });
    }
  });

  it.each(MARKETS)('%s: list prints exactly the matrix', async (market) => {
    const { events } = await cryptodlOk(['list', 'datasets', '--market', market, '--json']);
    const said = events.map(({ dataset, cadences, rest }) => {
      const has = Object.keys(cadences as object).map((cadence) => cadence.charAt(0).toUpperCase());
      return `${String(dataset)}: ${[...has, ...(rest === true ? ['REST'] : [])].join(' ')}`;
    });
    const archived = MATRIX.filter((entry) => entry.market === market);
    const isFilled = (entry: Entry): boolean => REST_TOO[market].includes(entry.dataset);
    expect(said.sort()).toEqual(
      [
        ...archived.map((entry) => `${entry.dataset}: ${entry.has}${isFilled(entry) ? ' REST' : ''}`),
        ...REST_ALONE[market].map((dataset) => `${dataset}: REST`),
        // No source has them: the program makes them from rows of the lake.
        ...(market === 'option' ? [] : ['bars: ']),
      ].sort(),
    );
  });

  describe.each(MATRIX)('$market $dataset', (entry) => {
    const files = (ending: string): string[] =>
      (entry.grain === 'day' ? DAYS : [MONTH]).map((label) => `${label}.${ending}`);
    const columns = columnsOf(entry).filter(({ name }) => name !== undefined);
    const perFile = entry.rows / files('').length;

    it(`is one file per ${entry.grain} with the declared columns and types`, async () => {
      expect(filesBelow(lake('parquet', folderOf(entry)), '.parquet')).toEqual(files('parquet'));
      expect(filesBelow(lake('csv', folderOf(entry)), '.csv')).toEqual(files('csv'));
      for (const file of files('parquet')) {
        const described = await describeParquet(lake('parquet', folderOf(entry), file));
        expect(described).toEqual(columns.map(({ name, type }) => `${name} ${type}`));
        const digits = await describeParquet(lake('digits', folderOf(entry), file));
        expect(digits).toEqual(
          columns.map(({ name, type }) => `${name} ${type === 'DOUBLE' ? 'VARCHAR' : type}`),
        );
        expect(await readParquet(lake('parquet', folderOf(entry), file))).toHaveLength(perFile);
      }
    });

    it('has every published row once, in order, as the values that were published', async () => {
      const expected = expectedRows(folder, entry);
      expect(expected).toHaveLength(entry.rows);
      for (const out of ['parquet', 'digits'] as const) {
        const rows = [];
        for (const file of files('parquet'))
          rows.push(...(await readParquet(lake(out, folderOf(entry), file))));
        const numbers = out === 'digits' ? 'string' : 'double';
        expect(rows.map((row) => Object.values(row))).toEqual(
          values(entry, expected, (cell, type) => inParquet(cell, type, numbers)),
        );
      }
    });

    it('has every published digit in CSV, with the header of its columns', () => {
      const rows = files('csv').flatMap((file) => readCsv(lake('csv', folderOf(entry), file)));
      expect(Object.keys(rows[0] ?? {})).toEqual(columns.map(({ name }) => name));
      expect(rows.map((row) => Object.values(row))).toEqual(
        values(entry, expectedRows(folder, entry), inCsv),
      );
    });

    it('is remembered object by object, dropped duplicates counted', () => {
      // Files of a series are committed in the order in which they are done.
      const lines = manifestLines(lake('parquet', folderOf(entry))).sort((a, b) =>
        compare(String(a['key']), String(b['key'])),
      );
      const sum = (name: string): number => lines.reduce((total, line) => total + Number(line[name]), 0);
      expect(lines.map((line) => line['key'])).toEqual(
        periodsOf(entry).map((period) => keyOf(entry, period)),
      );
      expect(sum('rows')).toBe(entry.rows);
      expect(sum('duplicates')).toBe(entry.dataset === 'liquidationSnapshot' ? entry.rows : 0);
    });

    it('gives its path layers as columns in SQL, and has no column of their names', async () => {
      const layers = isBars(entry) ? { interval: '1h', symbol: entry.symbol } : { symbol: entry.symbol };
      const glob = `${lake('parquet')}/binance/${entry.market}/${entry.dataset}/**/*.parquet`;
      const names = Object.keys(layers).join(', ');
      const [row, ...others] = await sql(
        `SELECT ${names}, count(*)::INT AS rows FROM read_parquet('${glob}', hive_partitioning = true) GROUP BY ALL`,
      );
      expect(row).toEqual({ ...layers, rows: entry.rows });
      expect(others).toEqual([]);
    });
  });

  it('no column of any file is named like a layer of its path', async () => {
    const named: string[] = [];
    let files = 0;
    for (const out of ['parquet', 'digits']) {
      for (const path of filesBelow(lake(out), '.parquet')) {
        const names = (await describeParquet(lake(out, path))).map((column) => column.split(' ')[0] ?? '');
        files += 1;
        named.push(...layersOf(path).filter((layer) => names.includes(layer)));
      }
    }
    for (const path of filesBelow(lake('csv'), '.csv')) {
      const names = Object.keys(readCsv(lake('csv', path))[0] ?? {});
      files += 1;
      named.push(...layersOf(path).filter((layer) => names.includes(layer)));
    }
    expect(named).toEqual([]);
    expect(files).toBe(3 * MATRIX.reduce((sum, { grain }) => sum + (grain === 'day' ? 2 : 1), 0));
  });

  it('Parquet metadata has contracts and base coin as units of cm bars, with any published header', async () => {
    const columnsIn = async (market: 'um' | 'cm'): Promise<Record<string, string>> => {
      const entry = MATRIX.find((one) => one.market === market && one.dataset === 'klines');
      if (entry === undefined) throw new Error('no klines');
      const metadata = await parquetMetadata(lake('parquet', folderOf(entry), `${MONTH}.parquet`));
      const text = metadata.key_value_metadata?.find(({ key }) => key === 'cryptodl')?.value ?? '';
      return (JSON.parse(text) as { columns: Record<string, string> }).columns;
    };
    const cm = await columnsIn('cm');
    expect(cm['volume']).toMatch(/; contracts$/);
    expect(cm['taker_buy_volume']).toMatch(/; contracts$/);
    expect(cm['quote_volume']).toMatch(/; base coin$/);
    expect(cm['taker_buy_quote_volume']).toMatch(/; base coin$/);
    const um = await columnsIn('um');
    expect(um['volume']).toMatch(/; base asset$/);
    expect(um['quote_volume']).toMatch(/; quote asset$/);
    expect(Object.keys(cm)).toEqual(BARS.split(', ').map((column) => column.split(' ')[0]));
  });
});

describe('--partition overrides the period of a file', () => {
  const what = (market: string, dataset: string): string[] =>
    ['--market', market, '--dataset', dataset, '--symbols', 'BTC*', '--interval', '1h'].concat(
      range(...DAYS),
    );

  it('ticks and indexes by month are one sorted file', async () => {
    await runOk('by-month', [...what('um', 'trades,bookDepth'), '--partition', 'month']);
    await runOk('by-month', [...what('option', 'BVOLIndex'), '--partition', 'month']);
    expect(filesBelow(lake('by-month', 'binance'), '.parquet')).toEqual([
      'option/BVOLIndex/symbol=BTCBVOLUSDT/2023-10.parquet',
      'um/bookDepth/symbol=BTCUSDT/2023-10.parquet',
      'um/trades/symbol=BTCUSDT/2023-10.parquet',
    ]);
    const rows = await readParquet(lake('by-month', 'binance/um/trades/symbol=BTCUSDT/2023-10.parquet'));
    expect(rows).toHaveLength(48);
    const ids = rows.map((row) => row['id'] as bigint);
    expect(ids).toEqual([...ids].sort((a, b) => Number(a - b)));
  });

  it('bars and statistics by day are a file per day, and an object that holds a month is one file all the same', async () => {
    await runOk('by-day', [...what('cm', 'klines,metrics,fundingRate'), '--partition', 'day']);
    expect(filesBelow(lake('by-day', 'binance'), '.parquet')).toEqual([
      'cm/fundingRate/symbol=BTCUSD_PERP/2023-10.parquet',
      'cm/klines/interval=1h/symbol=BTCUSD_PERP/2023-10-22.parquet',
      'cm/klines/interval=1h/symbol=BTCUSD_PERP/2023-10-23.parquet',
      'cm/metrics/symbol=BTCUSD_PERP/2023-10-22.parquet',
      'cm/metrics/symbol=BTCUSD_PERP/2023-10-23.parquet',
    ]);
  });
});

describe('daily and monthly objects', () => {
  /** A month that lists monthly objects only, and one that lists both with different content. */
  const ALONE = '2020-03';
  const BOTH = '2023-12';
  beforeAll(() => {
    for (const { market, dataset, symbol, has } of MATRIX) {
      if (has === 'D') continue;
      const made = { market, dataset, symbols: [symbol], rowsPerDay: 2, interval: '1h' } as const;
      makeArchive(folder, { ...made, from: `${ALONE}-01`, to: `${ALONE}-31`, cadence: 'monthly' });
    }
    for (const dataset of ['klines', 'trades'] as const) {
      const made = { market: 'um', dataset, symbols: ['BTCUSDT'], rowsPerDay: 2, interval: '1h' } as const;
      makeArchive(folder, { ...made, from: '2023-11-28', to: '2024-01-03', cadence: 'daily' });
      makeArchive(folder, { ...made, from: '2023-11-01', to: '2024-01-31', cadence: 'monthly', seed: 2 });
    }
  });

  const both = MATRIX.filter(({ has }) => has !== 'D');
  it.each(MARKETS.filter((market) => market !== 'option'))(
    '%s: where a month lists its monthly object alone, that is one month file, of ticks too',
    async (market) => {
      const of = both.filter((entry) => entry.market === market);
      const what = ['--market', market, '--dataset', of.map(({ dataset }) => dataset).join(',')];
      const wanted = [
        ...what,
        ...'--symbols BTC* --interval 1h'.split(' '),
        ...range(`${ALONE}-01`, `${ALONE}-31`),
      ];
      const result = await runOk('monthly', [...wanted, '--json']);
      expect(outcomesOf(result)).toEqual(of.map(() => `ok ${ALONE}`));
      for (const entry of of) {
        const series = lake('monthly', folderOf(entry));
        expect(filesBelow(series, '.parquet')).toEqual([`${ALONE}.parquet`]);
        expect(await readParquet(join(series, `${ALONE}.parquet`))).toHaveLength(
          publishedRows(join(folder, keyOf(entry, ALONE))).length,
        );
      }
    },
  );

  const twice = async (out: string, dataset: string, from: string, to: string): Promise<string[]> => {
    scene.archive.requests.length = 0;
    const wanted = ['--dataset', dataset, '--interval', '1h', '--symbols', 'BTCUSDT', ...range(from, to)];
    const result = await runOk(out, [...wanted, '--json']);
    const asked = scene.archive.objectRequests().filter((path) => path.endsWith('.zip'));
    const outcomes = outcomesOf(result);
    expect(asked).toHaveLength(outcomes.length);
    return outcomes;
  };

  it('bars take the monthly object of every whole month and days for the rest: never two objects for one day', async () => {
    expect(await twice('bars', 'klines', '2023-11-29', '2024-01-02')).toEqual([
      'ok 2023-11-29',
      'ok 2023-11-30',
      'ok 2024-01-01',
      'ok 2024-01-02',
      `ok ${BOTH}`,
    ]);
    const series = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
    expect(filesBelow(lake('bars', series), '.parquet')).toEqual([
      '2023-11.parquet',
      '2023-12.parquet',
      '2024-01.parquet',
    ]);
    const month = await readParquet(lake('bars', series, '2023-12.parquet'));
    const key = `data/futures/um/monthly/klines/BTCUSDT/1h/BTCUSDT-1h-${BOTH}.zip`;
    expect(month.map((row) => row['open'])).toEqual(
      publishedRows(join(folder, key)).map((cells) => Number(cells[1])),
    );
  });

  it.each([
    ['um', 'fundingRate', 'daily', 'monthly'],
    ['option', 'BVOLIndex', 'monthly', 'daily'],
  ])('%s %s with --cadence %s exists only %s, which is said', async (market, dataset, cadence, only) => {
    const flags = ['--market', market, '--dataset', dataset, '--cadence', cadence, '--symbols', 'BTC*'];
    const result = await run('refused', [...flags, '--months', '1']);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(`${market} ${dataset} exists only ${only}`);
  });
});

describe('intervals', () => {
  beforeAll(() => {
    const bars = { dataset: 'klines', symbols: ['BTCUSDT'] } as const;
    const day = { from: '2023-12-31', to: '2023-12-31', cadence: 'daily' } as const;
    makeArchive(folder, { ...bars, ...day, market: 'spot', interval: '1s' });
    const second = Date.parse('2023-12-30T12:00:00Z');
    publish(
      folder,
      'data/spot/daily/klines/BTCUSDT/1s/BTCUSDT-1s-2023-12-30.zip',
      `${second},1,1,1,1,1,${second + 999},1,1,1,1,0\n`,
    );
    const months = { from: '2024-01-01', to: '2024-02-29', cadence: 'monthly' } as const;
    makeArchive(folder, { ...bars, ...months, market: 'spot', interval: '1mo' });
    for (const [market, symbol] of [
      ['um', 'BTCUSDT'],
      ['cm', 'BTCUSD_PERP'],
    ] as const) {
      // 2024-01-01 is a Monday and a first; bars of three days open on days since 1970 that three divides.
      for (const [interval, opens] of [
        ['3d', '2024-01-03'],
        ['1w', '2024-01-01'],
        ['1mo', '2024-01-01'],
      ] as const) {
        const made = { ...bars, symbols: [symbol], market, interval, cadence: 'daily' } as const;
        makeArchive(folder, { ...made, from: opens, to: opens });
      }
    }
  });

  it('1s is a file per day, of spot only', async () => {
    const wanted = ['--interval', '1s', '--symbols', 'BTCUSDT', ...range('2023-12-30', '2023-12-31')];
    await runOk('seconds', ['--market', 'spot', ...wanted]);
    const series = lake('seconds', 'binance/spot/klines/interval=1s/symbol=BTCUSDT');
    expect(filesBelow(series, '.parquet')).toEqual(['2023-12-30.parquet', '2023-12-31.parquet']);
    const [counted] = await sql(
      `SELECT count(*)::INT AS rows, count(DISTINCT open_time)::INT AS seconds, min(open_time)::VARCHAR AS first,
         max(close_time)::VARCHAR AS last FROM read_parquet('${series}/2023-12-31.parquet')`,
    );
    expect(counted).toEqual({
      rows: 86_400,
      seconds: 86_400,
      first: '2023-12-31 00:00:00',
      last: '2023-12-31 23:59:59.999',
    });
    const refused = await run('seconds', ['--market', 'um', ...wanted]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('um klines has no "1s"');
  });

  it.each(['um', 'cm'])('%s has 3d, 1w and 1mo by day', async (market) => {
    const wanted = ['--market', market, '--interval', '3d,1w,1mo', '--symbols', 'BTC*', '--json'];
    const result = await runOk(`long ${market}`, [...wanted, ...range('2024-01-01', '2024-01-03')]);
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 3, failed: 0 }, rows: 3 });
    const rows = await sql(
      `SELECT interval, open_time::VARCHAR AS opens, close_time::VARCHAR AS closes
       FROM read_parquet('${lake(`long ${market}`)}/binance/**/*.parquet', hive_partitioning = true) ORDER BY interval`,
    );
    expect(rows).toEqual([
      { interval: '1mo', opens: '2024-01-01 00:00:00', closes: '2024-01-01 23:59:59.999' },
      { interval: '1w', opens: '2024-01-01 00:00:00', closes: '2024-01-07 23:59:59.999' },
      { interval: '3d', opens: '2024-01-03 00:00:00', closes: '2024-01-05 23:59:59.999' },
    ]);
  });

  it('spot has 1mo by month only', async () => {
    const wanted = ['--market', 'spot', '--interval', '1mo', '--symbols', 'BTCUSDT', '--json'];
    const result = await runOk('months', [...wanted, ...range('2024-01-10', '2024-02-20')]);
    expect(outcomesOf(result)).toEqual(['ok 2024-01', 'ok 2024-02']);
    const refused = await run('months', [...wanted, '--days', '3', '--cadence', 'daily']);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('spot klines 1mo exists only monthly');
  });
});

describe('datasets that Binance has ended or removed', () => {
  const TICKER_ENDED = 'um bookTicker ended 2024-03-30';
  const REMOVED = 'um liquidationSnapshot was removed by Binance';
  const days = { market: 'um', symbols: ['BTCUSDT'], rowsPerDay: 5, cadence: 'daily' } as const;
  const cm = { ...days, market: 'cm', symbols: ['BTCUSD_PERP'] } as const;
  const without = useScene({
    archive: [
      { ...days, dataset: 'metrics', from: '2026-11-18', to: '2026-11-20' },
      { ...cm, dataset: 'liquidationSnapshot', from: '2024-10-13', to: '2024-10-14' },
    ],
  });
  beforeAll(() => {
    makeArchive(folder, { ...days, dataset: 'bookTicker', from: '2024-03-28', to: '2024-03-30' });
  });

  const ticker = ['--dataset', 'bookTicker', '--symbols', 'BTCUSDT'];
  const liquidations = ['--dataset', 'liquidationSnapshot', '--symbols', 'BTCUSDT'];

  it.each([[[]], [['--dry-run']]])(
    'recent days of an ended one are refused with its end %s',
    async (flags) => {
      const result = await run('ended', [...ticker, '--days', '5', ...flags]);
      expect(result.code).toBe(2);
      expect(result.stderr).toContain(TICKER_ENDED);
      expect(result.stdout).toBe('');
      expect(existsSync(lake('ended', 'binance'))).toBe(false);
    },
  );

  it('a range beyond the end downloads the published part, and gives the reason for the absent one', async () => {
    const result = await runOk('over', [...ticker, ...range('2024-03-29', '2024-04-02'), '--json']);
    expect(result.stderr).toContain(TICKER_ENDED);
    expect(result.events.at(-1)).toMatchObject({
      outcomes: { ok: 2, absent: 3 },
      absent: { 'dataset-ended': 3 },
      exitCode: 0,
    });
    const planned = await runOk('over-dry', [...ticker, ...range('2024-03-29', '2024-04-02'), '--dry-run']);
    expect(planned.stdout.split('\n').map((line) => line.split('\t')[0])).toEqual([
      'fetch',
      'fetch',
      'absent',
      'absent',
      'absent',
      '',
    ]);
  });

  it.each([[['--days', '5']], [range('2024-03-01', '2024-03-05')], [['--days', '5', '--dry-run']]])(
    'a removed one is refused with its history, for any days: %s',
    async (flags) => {
      const result = await cryptodl(
        argv`vision --archive-url ${without.archive.url} --now ${NOW} ${liquidations} ${flags} ${FAST}`,
      );
      expect(result.code).toBe(2);
      expect(result.stderr).toContain(REMOVED);
    },
  );

  it('a mirror that still has the removed one is downloaded from', async () => {
    const result = await runOk('mirror', [...liquidations, ...range(...DAYS), '--json']);
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 2 }, rows: 48, duplicatesDropped: 48 });
  });

  it('a lake that holds a complete ended series is continued quietly, and no object is asked for', async () => {
    await runOk('held', [...ticker, ...range('2024-03-28', '2024-03-30')]);
    scene.archive.requests.length = 0;
    const quiet = await runOk('held', ['--quiet']);
    expect([quiet.stdout, quiet.stderr]).toEqual(['', '']);
    expect(scene.archive.objectRequests()).toEqual([]);
    const said = await runOk('held', ['--json']);
    expect(said.events.at(-1)).toMatchObject({
      outcomes: { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 0 },
      exitCode: 0,
    });
  });

  it('a lake that holds the start of an ended series is continued to its end', async () => {
    await runOk('half', [...ticker, ...range('2024-03-28', '2024-03-28')]);
    const result = await runOk('half', ['--json']);
    expect(outcomesOf(result).filter((text) => text.startsWith('ok '))).toEqual([
      'ok 2024-03-29',
      'ok 2024-03-30',
    ]);
    // Some symbols have an object of April.
    expect(result.events.at(-1)).toMatchObject({ absent: { 'dataset-ended': 31 } });
    expect((await runOk('half', ['--quiet'])).stderr).toBe('');
  });

  it('a lake of a removed dataset is continued quietly, also where the archive lists nothing of it', async () => {
    await runOk('removed-held', [...liquidations, ...range(...DAYS)]);
    const words = args('removed-held', ['--quiet']).map((word) =>
      word === scene.archive.url ? without.archive.url : word,
    );
    const result = await cryptodl(words);
    expect(result.stderr).toBe('');
    expect(result.code).toBe(0);
  });
});
