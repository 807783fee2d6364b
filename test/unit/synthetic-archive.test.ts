import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import { afterAll, describe, expect, it } from 'vitest';

import { makeArchive, makeCsv } from '../../scripts/synthetic-archive.js';

const made: string[] = [];

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cryptodl-synthetic-'));
  made.push(folder);
  return folder;
}

afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

type CsvSpec = Parameters<typeof makeCsv>[0];

/** Cells of the data rows. */
function cells(spec: CsvSpec): string[][] {
  const lines = makeCsv(spec).csv.split('\n').slice(0, -1);
  return lines.filter((line) => /^\d/.test(line)).map((line) => line.split(','));
}

function firstLine(spec: CsvSpec): string {
  return makeCsv(spec).csv.split('\n')[0] ?? '';
}

function column(rows: readonly string[][], index: number): string[] {
  return rows.map((row) => row[index] ?? '');
}

const METRICS: CsvSpec = { market: 'um', dataset: 'metrics', symbol: 'BTCUSDT', period: '2026-06-24' };
const FUNDING: CsvSpec = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT', period: '2024-02' };
const KLINES: CsvSpec = { market: 'spot', dataset: 'klines', symbol: 'BTCUSDT', period: '2024-12-31' };

describe('a synthetic archive', () => {
  const spec = {
    market: 'um',
    dataset: 'metrics',
    symbols: ['BTCUSDT', '币安人生USDT'],
    from: '2024-02-28',
    to: '2024-03-01',
    cadence: 'daily',
  } as const;

  it('lies in the key layout of the real one, with a true sidecar beside each zip', () => {
    const folder = newFolder();
    const { objects, rows, bytes, keys } = makeArchive(folder, spec);
    expect([objects, rows, keys.length]).toEqual([6, 6 * 288, 6]);
    expect(keys[1]).toBe('data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-2024-02-29.zip');
    let total = 0;
    for (const key of keys) {
      const zip = readFileSync(join(folder, key));
      total += zip.length;
      const digest = createHash('sha256').update(zip).digest('hex');
      expect(readFileSync(join(folder, `${key}.CHECKSUM`), 'utf8')).toBe(`${digest}  ${basename(key)}\n`);
      expect(zip.length).toBeGreaterThan(9_000);
      expect(zip.length).toBeLessThan(12_000);
    }
    expect(bytes).toBe(total);
  });

  it('has whole months, an interval layer for klines, and no sidecars when told so', () => {
    const folder = newFolder();
    const monthly = { market: 'cm', dataset: 'klines', interval: '1h', cadence: 'monthly' } as const;
    const days = { symbols: ['BTCUSD_PERP'], from: '2024-01-31', to: '2024-02-01', sidecars: false };
    const { keys, rows } = makeArchive(folder, { ...monthly, ...days });
    expect(keys).toEqual([
      'data/futures/cm/monthly/klines/BTCUSD_PERP/1h/BTCUSD_PERP-1h-2024-01.zip',
      'data/futures/cm/monthly/klines/BTCUSD_PERP/1h/BTCUSD_PERP-1h-2024-02.zip',
    ]);
    expect(rows).toBe((31 + 29) * 24);
    expect(existsSync(join(folder, `${keys[0]}.CHECKSUM`))).toBe(false);
  });

  it('is the same for the same seed with any other content, and differs for another seed', () => {
    const [first, second, other] = [newFolder(), newFolder(), newFolder()];
    const { keys } = makeArchive(first, spec);
    makeArchive(second, { ...spec, from: '2024-02-20', symbols: spec.symbols.toReversed() });
    makeArchive(other, { ...spec, seed: 2 });
    for (const key of keys) {
      expect(readFileSync(join(second, key)).equals(readFileSync(join(first, key)))).toBe(true);
      expect(readFileSync(join(other, key)).equals(readFileSync(join(first, key)))).toBe(false);
    }
  });

  it.runIf(runs('unzip', '-v'))('is readable by unzip', () => {
    const folder = newFolder();
    const { keys } = makeArchive(folder, spec);
    for (const key of keys) execFileSync('unzip', ['-tq', join(folder, key)]);
    const first = { ...METRICS, period: '2024-02-28' };
    expect(execFileSync('unzip', ['-p', join(folder, keys[0] ?? '')], { encoding: 'utf8' })).toBe(
      makeCsv(first).csv,
    );
  });

  it.runIf(runs('python3', '-c', 'import zipfile'))('is readable by python', () => {
    const folder = newFolder();
    const { keys } = makeArchive(folder, spec);
    const program =
      'import sys, zipfile\nfor f in sys.argv[1:]:\n z = zipfile.ZipFile(f)\n print(z.testzip(), *z.namelist())';
    const paths = keys.map((key) => join(folder, key));
    const out = execFileSync('python3', ['-X', 'utf8', '-c', program, ...paths], { encoding: 'utf8' });
    expect(out.trim().split('\n')).toEqual(keys.map((key) => `None ${basename(key, '.zip')}.csv`));
  });
});

function runs(command: string, ...args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('metrics', () => {
  it('hold every five minutes once, out of order, as text without a zone', () => {
    const times = column(cells(METRICS), 0);
    const sorted = [...times].sort();
    expect(times).not.toEqual(sorted);
    expect(new Set(times).size).toBe(288);
    expect(column(cells({ ...METRICS, shuffle: false }), 0)).toEqual(sorted);
  });

  it('are labelled with the end of the interval before 2026-06-25 in um, and with its start ever after', () => {
    const ends = (spec: CsvSpec): (string | undefined)[] => {
      const times = column(cells(spec), 0).sort();
      return [times[0], times.at(-1)];
    };
    expect(ends(METRICS)).toEqual(['2026-06-24 00:05:00', '2026-06-25 00:00:00']);
    expect(ends({ ...METRICS, period: '2026-06-25' })).toEqual([
      '2026-06-25 00:00:00',
      '2026-06-25 23:55:00',
    ]);
    const cm: CsvSpec = { ...METRICS, market: 'cm', symbol: 'BTCUSD_PERP' };
    expect(ends(cm)).toEqual(['2026-06-24 00:00:00', '2026-06-24 23:55:00']);
  });

  it('have eight cells each, digits as in the real files, and quoted blanks in old cm files', () => {
    for (const row of cells(METRICS)) {
      expect(row).toHaveLength(8);
      expect(row.join(',')).toMatch(/^[-\d: ]+,BTCUSDT,\d+\.\d{16},\d+\.\d{16},(\d\.\d{8},){3}(\d\.\d{8})?$/);
    }
    const old = cells({ ...METRICS, market: 'cm', symbol: 'BTCUSD_PERP', period: '2023-06-25' });
    expect(new Set(column(old, 4))).toEqual(new Set(['""']));
  });
});

describe('funding rates', () => {
  it('come with jitter and sometimes with an exponent', () => {
    const rows = cells(FUNDING);
    expect(rows).toHaveLength(29 * 3);
    for (const [time = '', hours, rate = ''] of rows) {
      expect(Number(time) % (8 * 3600_000)).toBeLessThan(27);
      expect(hours).toBe('8');
      expect(rate).toMatch(/^-?(0\.\d{8}|\d\.\dE-7|\dE-8)$/);
    }
    expect(column(rows, 0).some((time) => Number(time) % 1000 !== 0)).toBe(true);
    expect(column(rows, 2).some((rate) => rate.includes('E-'))).toBe(true);
  });
});

describe('klines', () => {
  it('are in milliseconds, in spot from 2025 on in microseconds', () => {
    const last = cells(KLINES).at(-1) ?? [];
    expect([last[0], last[6]]).toEqual(['1735689540000', '1735689599999']);
    const first = cells({ ...KLINES, period: '2025-01-01' })[0] ?? [];
    expect([first[0], first[6]]).toEqual(['1735689600000000', '1735689659999999']);
    expect(cells({ ...KLINES, market: 'um', period: '2025-01-01' })[0]?.[0]).toBe('1735689600000');
  });

  it.each([
    ['1s', '2024-02-01', 86_400],
    ['1m', '2024-02-01', 1440],
    ['4h', '2024-02', 29 * 6],
    ['1w', '2024-02', 4],
    ['1mo', '2024-02', 1],
  ])('of %s have in %s as many rows as bars open: %i', (interval, period, rows) => {
    expect(makeCsv({ ...KLINES, interval, period }).rows).toBe(rows);
  });

  it('are bars: low and high bound open and close, and takers are a part', () => {
    for (const market of ['spot', 'um', 'cm'] as const) {
      for (const row of cells({ ...KLINES, market })) {
        expect(row).toHaveLength(12);
        const [
          ,
          open = 0,
          high = 0,
          low = 0,
          close = 0,
          volume = 0,
          ,
          quote = 0,
          ,
          taker = 0,
          takerQuote = 0,
        ] = row.map(Number);
        expect(low).toBeLessThanOrEqual(Math.min(open, close));
        expect(high).toBeGreaterThanOrEqual(Math.max(open, close));
        expect(taker).toBeLessThanOrEqual(volume);
        expect(takerQuote).toBeLessThanOrEqual(quote);
      }
    }
  });

  it('have a header except in spot, unless told otherwise', () => {
    expect(firstLine(KLINES)).toMatch(/^\d{13},/);
    expect(firstLine({ ...KLINES, market: 'um' })).toMatch(/^open_time,.*,taker_buy_quote_volume,ignore$/);
    expect(firstLine({ ...KLINES, market: 'um', header: false })).toMatch(/^\d{13},/);
    expect(firstLine({ ...KLINES, header: true })).toMatch(/^open_time,/);
  });

  it('need a period and an interval that exist', () => {
    expect(() => makeCsv({ ...KLINES, period: '2024-02-30' })).toThrow('2024-02-30');
    expect(() => makeCsv({ ...KLINES, period: '2024-13' })).toThrow('2024-13');
    expect(() => makeCsv({ ...KLINES, interval: '1y' })).toThrow('1y');
  });
});

const KLINE_COLUMNS =
  'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore';
const AGG_TRADE_COLUMNS =
  'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker';
const METRICS_COLUMNS =
  'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,' +
  'sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio';
const FUTURES_COLUMNS = {
  klines: KLINE_COLUMNS,
  indexPriceKlines: KLINE_COLUMNS,
  markPriceKlines: KLINE_COLUMNS,
  premiumIndexKlines: KLINE_COLUMNS,
  aggTrades: AGG_TRADE_COLUMNS,
  metrics: METRICS_COLUMNS,
  fundingRate: 'calc_time,funding_interval_hours,last_funding_rate',
  bookDepth: 'timestamp,percentage,depth,notional',
  bookTicker: 'update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time',
  liquidationSnapshot:
    'time,side,order_type,time_in_force,original_quantity,price,average_price,order_status,last_fill_quantity,accumulated_fill_quantity',
};
const COLUMNS = {
  spot: {
    klines: KLINE_COLUMNS,
    aggTrades: `${AGG_TRADE_COLUMNS},is_best_match`,
    trades: 'id,price,qty,quote_qty,time,is_buyer_maker,is_best_match',
  },
  um: { ...FUTURES_COLUMNS, trades: 'id,price,qty,quote_qty,time,is_buyer_maker' },
  cm: { ...FUTURES_COLUMNS, trades: 'id,price,qty,base_qty,time,is_buyer_maker' },
  option: {
    BVOLIndex: 'calc_time,symbol,base_asset,quote_asset,index_value',
    EOHSummary:
      'date,hour,symbol,underlying,type,strike,open,high,low,close,volume_contracts,volume_usdt,' +
      'best_bid_price,best_ask_price,best_bid_qty,best_ask_qty,best_buy_iv,best_sell_iv,mark_price,mark_iv,' +
      'delta,gamma,vega,theta,openinterest_contracts,openinterest_usdt',
  },
};
const SYMBOLS = { spot: 'BTCUSDT', um: 'BTCUSDT', cm: 'BTCUSD_PERP', option: 'BTCBVOLUSDT' };

/** Where the time is, unless in the first column. */
const TIME_COLUMN: Partial<Record<CsvSpec['dataset'], number>> = {
  aggTrades: 5,
  trades: 4,
  bookTicker: 5,
  EOHSummary: 1,
};

type Case = [CsvSpec['market'], CsvSpec['dataset'], string];
const CASES = Object.entries(COLUMNS).flatMap(([market, datasets]) =>
  Object.entries(datasets).map(([dataset, columns]) => [market, dataset, columns] as Case),
);

function specOf(market: CsvSpec['market'], dataset: CsvSpec['dataset'], period: string): CsvSpec {
  return { market, dataset, symbol: dataset === 'EOHSummary' ? 'BTCUSDT' : SYMBOLS[market], period };
}

describe.each(CASES)('%s %s', (market, dataset, columns) => {
  const spec = specOf(market, dataset, '2025-03-31');
  const width = columns.split(',').length;

  it('has the header of the real files, in spot only when asked for, and none when told so', () => {
    expect(firstLine({ ...spec, header: true })).toBe(columns);
    expect(firstLine(spec) === columns).toBe(market !== 'spot');
    expect(firstLine({ ...spec, header: false })).toMatch(/^\d/);
  });

  it('has rows of as many cells as columns, each row with a newline', () => {
    const { csv, rows } = makeCsv({ ...spec, header: false });
    const lines = csv.split('\n');
    expect(lines.pop()).toBe('');
    expect(lines).toHaveLength(rows);
    expect(rows).toBeGreaterThan(0);
    for (const line of lines) expect(line.split(',')).toHaveLength(width);
  });

  it('is ordered by time, unless the real files are not', () => {
    const at = TIME_COLUMN[dataset] ?? 0;
    const isOrdered = (times: string[]): boolean => {
      return times.every((time, i) => time >= (times[i - 1] ?? ''));
    };
    expect(isOrdered(column(cells(spec), at))).toBe(dataset !== 'metrics' && dataset !== 'EOHSummary');
    expect(isOrdered(column(cells({ ...spec, shuffle: false }), at))).toBe(true);
    if (dataset !== 'fundingRate')
      expect(isOrdered(column(cells({ ...spec, shuffle: true }), at))).toBe(false);
  });

  it('lies where the real one has it', () => {
    const folder = newFolder();
    const { market: _, symbol, period, ...rest } = spec;
    const range = { symbols: [symbol], from: period, to: period, cadence: 'daily', sidecars: false } as const;
    const { keys } = makeArchive(folder, { ...rest, market, ...range, interval: '1h' });
    const path = { spot: 'spot', um: 'futures/um', cm: 'futures/cm', option: 'option' }[market];
    const isBars = ['klines', 'indexPriceKlines', 'markPriceKlines', 'premiumIndexKlines'].includes(dataset);
    expect(keys).toEqual([
      isBars
        ? `data/${path}/daily/${dataset}/${symbol}/1h/${symbol}-1h-2025-03-31.zip`
        : `data/${path}/daily/${dataset}/${symbol}/${symbol}-${dataset}-2025-03-31.zip`,
    ]);
    expect(existsSync(join(folder, keys[0] ?? ''))).toBe(true);
  });
});

const TICKS = CASES.filter(([, dataset]) =>
  /^(aggTrades|trades|bookTicker|bookDepth|liquidationSnapshot|BVOLIndex|EOHSummary)$/.test(dataset),
);

describe.each(TICKS)('ticks: %s %s', (market, dataset) => {
  const spec = { ...specOf(market, dataset, '2025-03-31'), header: false };

  it('have as many rows a day as asked for, and few unless asked', () => {
    const each = { bookDepth: 10, liquidationSnapshot: 2 }[dataset as string] ?? 1;
    const few = { bookDepth: 48, EOHSummary: 240 }[dataset as string] ?? 300;
    expect(makeCsv(spec).rows).toBe(few * each);
    expect(makeCsv({ ...spec, rowsPerDay: 1000 }).rows).toBe(1000 * each);
    expect(makeCsv({ ...spec, rowsPerDay: 7, period: '2025-02' }).rows).toBe(28 * 7 * each);
    expect(makeCsv({ ...spec, rowsPerDay: 0 })).toEqual({ csv: '', rows: 0 });
    expect(() => makeCsv({ ...spec, rowsPerDay: -1 })).toThrow('-1');
    expect(() => makeCsv({ ...spec, rowsPerDay: 1.5 })).toThrow('1.5');
  });

  it('of a month are those of its days, one behind the other', () => {
    const ordered = { ...spec, shuffle: false, rowsPerDay: 50 };
    const days = Array.from({ length: 31 }, (_, i) => {
      return makeCsv({ ...ordered, period: `2025-03-${String(i + 1).padStart(2, '0')}` }).csv;
    });
    expect(makeCsv({ ...ordered, period: '2025-03' }).csv).toBe(days.join(''));
    expect(new Set(days).size).toBe(31);
    expect(makeCsv({ ...ordered, period: '2025-03', seed: 2 }).csv).not.toBe(days.join(''));
  });

  it('lie within their day', () => {
    const times = column(cells(spec), TIME_COLUMN[dataset] ?? 0);
    const from = Date.UTC(2025, 2, 31);
    for (const time of dataset === 'EOHSummary' ? [] : times) {
      const ms = time.includes(' ') ? Date.parse(`${time.replace(' ', 'T')}Z`) : Number(time.slice(0, 13));
      expect(ms).toBeGreaterThanOrEqual(from);
      expect(ms).toBeLessThan(from + 24 * 3600_000);
    }
    expect(column(cells(spec), 0).every((cell) => cell === '2025-03-31')).toBe(dataset === 'EOHSummary');
  });
});

/** The first rows that do not read as they should. */
function strangers(spec: CsvSpec, shape: RegExp): string[] {
  return cells(spec)
    .map((row) => row.join(','))
    .filter((row) => !shape.test(row))
    .slice(0, 3);
}

describe('aggTrades', () => {
  const DAY = '2024-12-31';

  it.each([
    ['spot', DAY, /^\d+,\d+\.\d{8},\d+\.\d{8},\d+,\d+,\d{13},(True|False),True$/],
    ['spot', '2025-01-01', /^\d+,\d+\.\d{8},\d+\.\d{8},\d+,\d+,\d{16},(True|False),True$/],
    ['um', '2025-01-01', /^\d+,\d+(\.\d?[1-9])?,\d+(\.\d{0,2}[1-9])?,\d+,\d+,\d{13},(true|false)$/],
    ['cm', '2025-01-01', /^\d+,\d+\.\d,\d+\.0,\d+,\d+,\d{13},(true|false)$/],
  ] as const)('of %s read on %s as in the real files', (market, period, shape) => {
    const spec = { ...specOf(market, 'aggTrades', period), rowsPerDay: 3000 };
    expect(strangers(spec, shape)).toEqual([]);
    expect(new Set(column(cells(spec), 6)).size).toBe(2);
  });

  it.each(['spot', 'um', 'cm'] as const)(
    'of %s have no hole in their ids, also from day to day',
    (market) => {
      const two = [DAY, '2025-01-01'].flatMap((period) => cells(specOf(market, 'aggTrades', period)));
      let before = two[0]?.map(Number) ?? [];
      for (const row of two.slice(1).map((cellsOf) => cellsOf.map(Number))) {
        expect(row[0]).toBe((before[0] ?? 0) + 1);
        expect(row[3]).toBeGreaterThan(before[4] ?? 0);
        expect(row[4]).toBeGreaterThanOrEqual(row[3] ?? 0);
        before = row;
      }
    },
  );
});

describe('trades', () => {
  it.each([
    ['spot', '2024-12-31', /^\d+,\d+\.\d{8},\d+\.\d{8},\d+\.\d{8},\d{13},(True|False),True$/],
    ['spot', '2025-01-01', /^\d+,\d+\.\d{8},\d+\.\d{8},\d+\.\d{8},\d{16},(True|False),True$/],
    ['um', '2025-01-01', /^\d+(,\d+(\.\d{0,4}[1-9])?){3},\d{13},(true|false)$/],
    ['cm', '2025-01-01', /^\d+,\d+\.\d,\d+,\d+\.\d{8},\d{13},(true|false)$/],
  ] as const)('of %s read on %s as in the real files', (market, period, shape) => {
    const spec = { ...specOf(market, 'trades', period), rowsPerDay: 3000 };
    expect(strangers(spec, shape)).toEqual([]);
    for (const row of cells(spec)) {
      const [, price = 0, quantity = 0, worth = 0] = row.map(Number);
      const expected = market === 'cm' ? (quantity * 100) / price : price * quantity;
      expect(worth / expected).toBeCloseTo(1, 4);
    }
  });

  it.each(['spot', 'um', 'cm'] as const)('of %s have ids that ascend with holes', (market) => {
    const ids = ['2024-12-31', '2025-01-01']
      .flatMap((period) => column(cells(specOf(market, 'trades', period)), 0))
      .map(Number);
    const steps = ids.slice(1).map((id, i) => id - (ids[i] ?? 0));
    expect(steps.every((step) => step > 0)).toBe(true);
    expect(steps.filter((step) => step === 1).length).toBeGreaterThan(500);
    expect(steps.filter((step) => step > 1).length).toBeGreaterThan(3);
  });
});

describe.each(['indexPriceKlines', 'markPriceKlines', 'premiumIndexKlines'] as const)('%s', (dataset) => {
  it('are bars of prices with nothing traded', () => {
    for (const market of ['um', 'cm'] as const) {
      const rows = cells(specOf(market, dataset, '2025-01-01'));
      expect(rows).toHaveLength(1440);
      expect(new Set(rows.map((row) => [row[5], ...row.slice(7)].join()))).toEqual(new Set(['0,0,0,0,0,0']));
      for (const row of rows) {
        const [time = 0, open = 0, high = 0, low = 0, close = 0, , closeTime = 0] = row.map(Number);
        expect(low).toBeLessThanOrEqual(Math.min(open, close));
        expect(high).toBeGreaterThanOrEqual(Math.max(open, close));
        expect(closeTime).toBe(time + 59_999);
        expect(row.slice(1, 5).join()).toMatch(/^(-?\d+\.\d{8},?){4}$/);
      }
      const closes = column(rows, 4).map(Number);
      if (dataset !== 'premiumIndexKlines') expect(Math.min(...closes)).toBeGreaterThan(1000);
      else {
        expect(closes.some((close) => close < 0) && closes.some((close) => close > 0)).toBe(true);
        expect(Math.max(...closes.map(Math.abs))).toBeLessThan(0.01);
      }
    }
  });
});

describe('book depth', () => {
  const TEN = ['-5', '-4', '-3', '-2', '-1', '1', '2', '3', '4', '5'];
  const bandsOf = (period: string): Map<string, string[]> => {
    const snapshots = new Map<string, string[]>();
    for (const [time = '', band = ''] of cells(specOf('um', 'bookDepth', period))) {
      snapshots.set(time, [...(snapshots.get(time) ?? []), band]);
    }
    return snapshots;
  };

  it('has ten bands, since 2026 with decimals, and two more since some hour of 2026-01-15', () => {
    const decimals = TEN.map((band) => `${band}.00`);
    const twelve = decimals.toSpliced(5, 0, '-0.20', '0.20');
    expect([...bandsOf('2025-12-31').values()]).toEqual(Array.from({ length: 48 }, () => TEN));
    expect([...bandsOf('2026-01-14').values()]).toEqual(Array.from({ length: 48 }, () => decimals));
    expect([...bandsOf('2026-01-16').values()]).toEqual(Array.from({ length: 48 }, () => twelve));
    for (const [time, bands] of bandsOf('2026-01-15'))
      expect(bands).toEqual(time < '2026-01-15 08' ? decimals : twelve);
    expect(makeCsv(specOf('um', 'bookDepth', '2026-01-15')).rows).toBe(16 * 10 + 32 * 12);
  });

  it('comes every half a minute, more or less, when there are 2880 snapshots', () => {
    const rows = cells({ ...specOf('cm', 'bookDepth', '2025-03-31'), rowsPerDay: 2880 });
    const times = [...new Set(column(rows, 0))].map(
      (time) => Date.parse(`${time.replace(' ', 'T')}Z`) / 1000,
    );
    expect(times).toHaveLength(2880);
    const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
    expect([Math.min(...gaps), Math.max(...gaps)]).toEqual([24, 36]);
  });

  it('grows from the middle outwards, in text as in the real files', () => {
    for (const market of ['um', 'cm'] as const) {
      const spec = specOf(market, 'bookDepth', '2026-01-16');
      expect(strangers(spec, /^2026-01-16 [\d:]{8},-?\d\.\d\d,\d+\.\d{8},\d+\.\d{8}$/)).toEqual([]);
      const rows = cells(spec).map((row) => row.slice(1).map(Number));
      rows.forEach(([band = 0, depth = 0, notional = 0], i) => {
        const [outer = 0, outerDepth = 0, outerNotional = 0] = rows[band < 0 ? i - 1 : i + 1] ?? [];
        if (outer * band <= 0) return;
        expect(outerDepth).toBeGreaterThan(depth);
        expect(outerNotional).toBeGreaterThan(notional);
      });
    }
  });
});

describe('book tickers', () => {
  it('have ascending ids, eight decimals, a spread, and two times in milliseconds', () => {
    for (const market of ['um', 'cm'] as const) {
      const spec = specOf(market, 'bookTicker', '2025-01-01');
      expect(strangers(spec, /^\d+(,\d+\.\d{8}){4}(,\d{13}){2}$/)).toEqual([]);
      const rows = [...cells({ ...spec, period: '2024-12-31' }), ...cells(spec)].map((row) =>
        row.map(Number),
      );
      rows.forEach(([id = 0, bid = 0, , ask = 0, , traded = 0, seen = 0], i) => {
        expect(id).toBeGreaterThan(rows[i - 1]?.[0] ?? 0);
        expect(ask).toBeGreaterThan(bid);
        expect(seen).toBeGreaterThan(traded);
      });
    }
  });
});

describe('liquidations', () => {
  it.each([
    ['um', /^\d{13},(BUY|SELL),LIMIT,IOC(,\d+(\.\d{0,2}[1-9])?){3},FILLED(,\d+(\.\d{0,2}[1-9])?){2}$/],
    ['cm', /^\d{13},(BUY|SELL),LIMIT,IOC,\d+(,\d+\.\d){2},FILLED,\d+,\d+$/],
  ] as const)('of %s come twice each', (market, shape) => {
    const spec = specOf(market, 'liquidationSnapshot', '2024-03-31');
    expect(strangers(spec, shape)).toEqual([]);
    const rows = cells(spec).map((row) => row.join(','));
    expect(rows).toHaveLength(600);
    const odd = rows.filter((_, i) => i % 2 === 1);
    expect(rows.filter((_, i) => i % 2 === 0)).toEqual(odd);
    expect(new Set(odd).size).toBe(300);
  });
});

describe('options', () => {
  it('have an index of volatility on every second at most, a little late', () => {
    const spec = { ...specOf('option', 'BVOLIndex', '2026-09-30'), rowsPerDay: 86_400 };
    expect(strangers(spec, /^\d{10}00[012],BTCBVOLUSDT,BTCBVOL,USDT,\d\d\.\d{4}$/)).toEqual([]);
    expect(new Set(column(cells(spec), 0).map((time) => time.slice(0, 10))).size).toBe(86_400);
  });

  const SUMMARY = { ...specOf('option', 'EOHSummary', '2023-10-20'), rowsPerDay: 5600 };

  it('have summaries by hour and contract, filed under the underlying', () => {
    const contract = String.raw`BTC-(\d{6}-\d+)-([CP]),BTCUSDT,\2,\1`;
    expect(strangers(SUMMARY, new RegExp(String.raw`^2023-10-20,(?:[01]\d|2[0-3]),${contract},`))).toEqual(
      [],
    );
    const rows = cells(SUMMARY);
    expect(new Set(column(rows, 1)).size).toBe(24);
    expect(new Set(rows.map((row) => `${row[1]} ${row[2]}`)).size).toBe(5600);
    for (const expiry of new Set(column(rows, 5).map((strike) => strike.slice(0, 6)))) {
      expect(expiry > '231020').toBe(true);
      const day = expiry.replace(/(..)(..)(..)/, '20$1-$2-$3T00:00:00Z');
      expect(new Date(day).getUTCDay()).toBe(5);
    }
  });

  it('have summaries with every odd number of the real files', () => {
    const rows = cells(SUMMARY);
    const number = /^-?\d+\.\d{8}$|^0E-8$|^-?\d(\.\d)?E-[78]$/;
    for (const row of rows) {
      expect(row[16]).toBe('""');
      for (const cell of row.slice(6, 16)) expect(cell).toMatch(/^\d+\.\d{8}$|^0E-8$/);
      for (const cell of row.slice(17, 24)) expect(cell).toMatch(number);
      for (const cell of row.slice(24)) expect(cell).toMatch(/^\d+\.\d{8}$|^0E-8$|^""$/);
    }
    const share = (at: number, wanted: RegExp): number =>
      column(rows, at).filter((cell) => wanted.test(cell)).length / rows.length;
    expect(share(6, /^0E-8$/)).toBeCloseTo(0.2, 1);
    expect(share(17, /^-1E-8$/)).toBeCloseTo(0.05, 1);
    expect(share(20, /^-?\d\.\dE-7$/)).toBeGreaterThan(0.01);
    expect(share(20, /^-/)).toBeGreaterThan(0.3);
    expect(share(24, /^""$/)).toBeCloseTo(0.03, 1);
    expect(rows.every((row) => (row[24] === '""') === (row[25] === '""'))).toBe(true);
  });
});

describe('a market', () => {
  it.each([
    ['spot', 'metrics'],
    ['spot', 'premiumIndexKlines'],
    ['um', 'BVOLIndex'],
    ['option', 'klines'],
  ] as const)('has only datasets of the real archive: %s no %s', (market, dataset) => {
    expect(() => makeCsv(specOf(market, dataset, '2025-01-01'))).toThrow(`no ${dataset} in ${market}`);
  });
});
