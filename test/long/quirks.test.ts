/** Oddities of the real archive: for each a file of the same form, through the whole program. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv, cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow, readCsv, readParquet } from '../helpers/lake.js';
import type { LakeRow } from '../helpers/lake.js';
import { memberOf, publish } from '../helpers/published.js';
import type { SidecarOf } from '../helpers/published.js';
import { useScene } from '../helpers/scene.js';
import { sql } from '../helpers/sql.js';

const HOUR_MS = 3600_000;
const DAY_MS = 24 * HOUR_MS;
const FOLDERS = { spot: 'spot', um: 'futures/um', cm: 'futures/cm', option: 'option' };
const BARS =
  'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore\n';
const METRICS =
  'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,' +
  'sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio\n';
const DEPTH = 'timestamp,percentage,depth,notional\n';
const TRADES = 'id,price,qty,quote_qty,time,is_buyer_maker\n';
const AGG_TRADES = 'agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n';

const scene = useScene({});
const { scratch, folder } = scene;

type Market = keyof typeof FOLDERS;

/** A series, and what its keys and its folder are named. */
interface Series {
  readonly market: Market;
  readonly dataset: string;
  readonly symbol: string;
  readonly interval?: string;
}

function keyOf({ market, dataset, symbol, interval }: Series, period: string): string {
  const cadence = period.length === 10 ? 'daily' : 'monthly';
  const layer = interval === undefined ? '' : `/${interval}`;
  return `data/${FOLDERS[market]}/${cadence}/${dataset}/${symbol}${layer}/${symbol}-${interval ?? dataset}-${period}.zip`;
}

function folderOf({ market, dataset, symbol, interval }: Series): string {
  const layer = interval === undefined ? '' : `interval=${interval}/`;
  return `binance/${market}/${dataset}/${layer}symbol=${symbol}`;
}

function put(series: Series, period: string, csv: string, sidecar?: SidecarOf): string {
  const key = keyOf(series, period);
  publish(folder, key, csv, sidecar);
  return key;
}

const lake = (out: string, ...parts: string[]): string => join(scratch, out, ...parts);

interface Asked {
  readonly out: string;
  /** First and last day, or one month. */
  readonly days: readonly [string, string] | string;
  readonly flags?: readonly string[];
}

function argsOf({ market, dataset, symbol, interval }: Series, { out, days, flags = [] }: Asked): string[] {
  const [from, to] = typeof days === 'string' ? [`${days}-01`, lastOf(days)] : days;
  const words = ['vision', '--market', market, '--dataset', dataset, '--symbols', symbol];
  if (interval !== undefined) words.push('--interval', interval);
  words.push('--from', from, '--to', to, '--archive-url', scene.archive.url, '--out', lake(out), '--json');
  return [...words, ...FAST, ...flags];
}

function lastOf(month: string): string {
  const end = new Date(`${month}-01T00:00:00Z`);
  end.setUTCMonth(end.getUTCMonth() + 1);
  return new Date(end.getTime() - DAY_MS).toISOString().slice(0, 10);
}

const run = (series: Series, asked: Asked): Promise<CliResult> => cryptodl(argsOf(series, asked));
const runOk = (series: Series, asked: Asked): Promise<CliResult> => cryptodlOk(argsOf(series, asked));
const read = (out: string, series: Series, file: string): Promise<LakeRow[]> =>
  readParquet(lake(out, folderOf(series), `${file}.parquet`));
const readText = (out: string, series: Series, file: string): Record<string, string>[] =>
  readCsv(lake(out, folderOf(series), `${file}.csv`));
const summary = (result: CliResult): unknown => result.events.at(-1);
/** The event of one object. */
const eventOf = (result: CliResult, key: string): unknown =>
  result.events.find((event) => event['event'] === 'object' && event['key'] === key);
const timesOf = (rows: readonly LakeRow[], column: string): string[] =>
  rows.map((row) => (row[column] as Date).toISOString());

/** Bars of one interval from a time on, every price the given one. */
function bars(from: string, stepMs: number, count: number, price = '100.5'): string[] {
  const start = Date.parse(from);
  return Array.from({ length: count }, (_, index) => {
    const open = start + index * stepMs;
    return `${open},${price},${price},${price},${price},1,${open + stepMs - 1},100,1,0.5,50,0\n`;
  });
}

/** `2024-01-15 00:05:00` */
function label(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ');
}

/** A day of metrics, its first label so many minutes after midnight. */
function metrics(symbol: string, day: string, firstMinute: number, rows = 288): string[] {
  const start = Date.parse(`${day}T00:00:00Z`) + firstMinute * 60_000;
  return Array.from(
    { length: rows },
    (_, index) => `${label(start + index * 300_000)},${symbol},${index}.5,2.5,1.1,1.2,1.3,1.4\n`,
  );
}

describe('rows that come twice, or in no order', () => {
  it.each([
    {
      dataset: 'trades',
      month: '2020-03',
      id: 'id',
      header: TRADES,
      row: (id: number, at: number) => `${id},1.5,2,3,${at},true\n`,
    },
    {
      dataset: 'aggTrades',
      month: '2020-12',
      id: 'agg_trade_id',
      header: '',
      row: (id: number, at: number) => `${id},1.5,2,${id},${id},${at},false\n`,
    },
    {
      dataset: 'bookTicker',
      month: '2024-01',
      id: 'update_id',
      header:
        'update_id,best_bid_price,best_bid_qty,best_ask_price,best_ask_qty,transaction_time,event_time\n',
      row: (id: number, at: number) => `${id},1.5,2,1.6,3,${at},${at + 2}\n`,
    },
  ])(
    'two halves of a month that interleave in um $dataset come out sorted by id, or as published',
    async ({ dataset, month, id, header, row }) => {
      const series: Series = { market: 'um', dataset, symbol: 'HALVESUSDT' };
      const start = Date.parse(`${month}-01T00:00:00Z`);
      const ordered = Array.from({ length: 2000 }, (_, index) => row(9000 + index, start + index * 60_000));
      const halves = ordered.slice(0, 1000).flatMap((first, index) => [first, ordered[1000 + index] ?? '']);
      put(series, month, header + halves.join(''));
      await runOk(series, { out: 'halves', days: month });
      await runOk(series, { out: 'halves-published', days: month, flags: ['--as-published'] });
      const idsIn = async (out: string): Promise<unknown[]> =>
        (await read(out, series, month)).map((cells) => Number(cells[id]));
      expect(await idsIn('halves')).toEqual(Array.from({ length: 2000 }, (_, index) => 9000 + index));
      expect(await idsIn('halves-published')).toEqual(
        halves.map((line) => Number(line.slice(0, line.indexOf(',')))),
      );
    },
  );
});

describe('rows that are missing', () => {
  const METRIC: Series = { market: 'um', dataset: 'metrics', symbol: 'EARLYUSDT' };

  it('a day that ends early is partial and named, with the rows it has and should have', async () => {
    const days = ['2024-02-15', '2024-02-16'] as const;
    put(METRIC, days[0], METRICS + metrics(METRIC.symbol, days[0], 5).join(''));
    const key = put(METRIC, days[1], METRICS + metrics(METRIC.symbol, days[1], 5, 162).join(''));
    const result = await runOk(METRIC, { out: 'early', days });
    expect(eventOf(result, key)).toMatchObject({
      outcome: 'partial',
      rows: 162,
      expectedRows: 288,
      last: '2024-02-16T13:30:00Z',
    });
    expect(summary(result)).toMatchObject({ outcomes: { ok: 1, partial: 1 }, exitCode: 0 });
    expect(result.stderr).toContain(`${key}: 162 of 288 rows`);
    expect(await read('early', METRIC, '2024-02')).toHaveLength(288 + 162);
  });

  describe('days of trades', () => {
    const DAYS = ['13', '14', '15', '16', '17'].map((day) => `2024-01-${day}`);
    /** A trade every so many minutes between two hours of the day. Ids go on from midnight to midnight, so those of the other hours are missing. */
    const trades = (day: string, minutes: number, from = 0, to = 24): string => {
      const start = Date.parse(`${day}T00:00:00Z`);
      const lines: string[] = [];
      for (let at = from * 60; at < to * 60; at += minutes) {
        const id = (start / 60_000 + at) / minutes;
        lines.push(`${id},1.5,2,${id},${id},${start + at * 60_000},true\n`);
      }
      return AGG_TRADES + lines.join('');
    };
    const NAMES = { market: 'um', dataset: 'aggTrades' } as const;
    const range = (out: string, ...flags: string[]): Asked => ({
      out,
      days: ['2024-01-13', '2024-01-17'],
      flags: ['--now', '2024-03-01T12:00:00Z', ...flags],
    });
    const ends = (result: CliResult, symbol: string): unknown[] =>
      DAYS.map((day) => eventOf(result, keyOf({ ...NAMES, symbol }, day))).map(
        (event) => (event as { outcome: string }).outcome,
      );

    it.each(['day', 'month'])(
      'that end or begin hours from midnight between whole ones are partial with the hour, by %s',
      async (partition) => {
        const series = { ...NAMES, symbol: `CUT${partition.toUpperCase()}USDT` };
        const hours: Record<string, [number, number]> = { '2024-01-15': [0, 7], '2024-01-16': [17, 24] };
        for (const day of DAYS) put(series, day, trades(day, 1, ...(hours[day] ?? [0, 24])));
        const out = `cut-${partition}`;
        const result = await run(series, range(out, '--partition', partition, '--strict'));
        expect([result.code, ends(result, series.symbol)]).toEqual([
          4,
          ['ok', 'ok', 'partial', 'partial', 'ok'],
        ]);
        expect(eventOf(result, keyOf(series, '2024-01-15'))).toMatchObject({
          gaps: [['2024-01-15T06:59:00.000Z', '2024-01-16T00:00:00.000Z']],
        });
        expect(result.stderr).toContain(
          `${keyOf(series, '2024-01-15')}: no rows from 2024-01-15 06:59 to 2024-01-16 00:00`,
        );
        expect(result.stderr).toContain(
          `${keyOf(series, '2024-01-16')}: no rows from 2024-01-16 00:00 to 2024-01-16 17:00`,
        );
        const covered = await cryptodlOk(argv`coverage --out ${lake(out)} --now 2024-01-18T12:00:00Z --json`);
        expect(covered.events[0]).toMatchObject({
          expected: 5,
          missing: 2,
          gaps: [
            { from: '2024-01-15T06:59:00.000Z', to: '2024-01-16T17:00:00.000Z', reason: 'cut', days: 2 },
          ],
        });
        const asked = ['--from', '2024-01-13', '--to', '2024-01-14', '--json'];
        const before = await cryptodlOk(['coverage', '--out', lake(out), ...asked]);
        expect(before.events[0]).toMatchObject({ expected: 2, missing: 0, gaps: [] });
      },
    );

    it('that are cut are named by coverage for repair, which takes their revision at any age', async () => {
      const series = { ...NAMES, symbol: 'MENDEDUSDT' };
      const key = keyOf(series, '2024-01-15');
      for (const day of DAYS) put(series, day, trades(day, 1, 0, day.endsWith('15') ? 7 : 24));
      await runOk(series, range('cut-mended'));
      const now = ['--out', lake('cut-mended'), '--now', '2024-03-01T12:00:00Z'];
      const covered = await cryptodlOk(['coverage', ...now, '--to', '2024-01-17']);
      const next = /^next {2}cryptodl (\w+) /m.exec(covered.stderr)?.[1] ?? '';
      const follow = (): Promise<CliResult> =>
        cryptodlOk([next, ...now, '--archive-url', scene.archive.url, '--json', ...FAST]);
      const before = scene.archive.objectRequests().length;
      const idle = await follow();
      expect(scene.archive.objectRequests().slice(before)).toEqual([]);
      expect(eventOf(idle, key)).toMatchObject({ outcome: 'skipped' });
      put(series, '2024-01-15', trades('2024-01-15', 1));
      expect(eventOf(await follow(), key)).toMatchObject({ outcome: 'ok', rows: 1440 });
      const whole = await cryptodlOk(['coverage', ...now, '--to', '2024-01-17']);
      expect([next, whole.stdout, whole.stderr]).toEqual(['repair', expect.stringContaining('100 %'), '']);
    });

    it('on which a symbol is listed and delisted are whole, in the run and in coverage', async () => {
      const series = { ...NAMES, symbol: 'EDGEUSDT' };
      const hours: Record<string, [number, number]> = { '2024-01-13': [8, 24], '2024-01-17': [0, 9] };
      for (const day of DAYS) {
        put(series, day, trades(day, 1, ...(hours[day] ?? [0, 24])));
        const at = Date.parse(day);
        const bar = `${at},1,2,1,2,5,${at + 86_399_999},9,3,1,1,0\n`;
        put({ market: series.market, dataset: 'klines', interval: '1d', symbol: series.symbol }, day, bar);
      }
      // The market goes on.
      for (const day of ['2024-01-12', ...DAYS, '2024-01-18', '2024-02-20'])
        put({ ...NAMES, symbol: 'BTCUSDT' }, day, trades(day, 1, 0, 24));
      const result = await runOk(series, range('edges'));
      expect(ends(result, series.symbol)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
      const covered = await cryptodlOk([
        'coverage',
        '--out',
        lake('edges'),
        '--now',
        '2024-03-01T12:00:00Z',
        '--json',
      ]);
      expect(covered.events[0]).toMatchObject({ expected: 5, missing: 0 });
    });
  });
});

it.each(['2024-04-30', '2024-04-02'])(
  'the monthly bookTicker of 2024-04, which holds the first hours, stands beside the last days: to %s',
  async (to) => {
    const series: Series = { market: 'um', dataset: 'bookTicker', symbol: 'LASTUSDT' };
    const row = (day: string): string =>
      `${Date.parse(day) / 1000},1.5,2,1.6,3,${Date.parse(day)},${Date.parse(day) + 1}\n`;
    for (const day of ['2024-03-29', '2024-03-30']) put(series, day, row(day));
    put(series, '2024-04', row('2024-04-01'));
    const result = await runOk(series, { out: `last-hours-${to}`, days: ['2024-03-29', to] });
    expect(summary(result)).toMatchObject({
      outcomes: { ok: 3, absent: 1 },
      absent: { 'dataset-ended': 1 },
    });
    expect(filesBelow(lake(`last-hours-${to}`, folderOf(series)), '.parquet')).toEqual([
      '2024-03-29.parquet',
      '2024-03-30.parquet',
      '2024-04.parquet',
    ]);
  },
);

describe('times', () => {
  it.each(['parquet', 'csv'])(
    'an object with the rows of another day is refused and kept as evidence, and verify --deep finds the %s file sound',
    async (format) => {
      const series: Series = { market: 'um', dataset: 'klines', interval: '1h', symbol: `OTHER${format}` };
      const days = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
      put(series, days[0], bars(`${days[0]}T00:00:00Z`, HOUR_MS, 24).join(''));
      const ofYears = put(series, days[1], bars('2022-01-02T00:00:00Z', HOUR_MS, 24).join(''));
      const ofTheDayBefore = put(series, days[2], bars(`${days[1]}T00:00:00Z`, HOUR_MS, 24).join(''));
      const out = `other-day-${format}`;
      const result = await run(series, { out, days: [days[0], days[2]], flags: ['--format', format] });
      expect(summary(result)).toMatchObject({
        outcomes: { ok: 1, failed: 2 },
        failed: { 'rows-outside-period': 2 },
        exitCode: 4,
      });
      expect(eventOf(result, ofYears)).toMatchObject({ outcome: 'failed', retryable: false });
      expect(readFileSync(lake(out, '_quarantine', `${ofTheDayBefore}.cause`), 'utf8')).toBe(
        `rows-outside-period: ${memberOf(ofTheDayBefore)}: its rows are from 2026-01-02T00:00:00Z … 2026-01-02T23:00:00Z, its period is 2026-01-03\n`,
      );
      const verified = await cryptodl(['verify', '--deep', '--out', lake(out)]);
      expect([verified.code, verified.stderr]).toEqual([0, expect.not.stringContaining('damaged')]);
    },
  );

  it.each([
    ['1w', '2024-01-29', 7],
    ['3d', '2024-01-30', 3],
  ] as const)(
    'a month of %s bars begins with one that opened in the month before, and verify --deep finds its file sound',
    async (interval, first, days) => {
      const series: Series = { market: 'um', dataset: 'klines', interval, symbol: 'LONGUSDT' };
      put(series, '2024-02', bars(`${first}T00:00:00Z`, days * DAY_MS, 4).join(''));
      const out = `long-${interval}`;
      expect(summary(await runOk(series, { out, days: '2024-02' }))).toMatchObject({
        outcomes: { failed: 0 },
      });
      const verified = await cryptodl(['verify', '--deep', '--out', lake(out)]);
      expect([verified.code, verified.stderr]).toEqual([0, expect.not.stringContaining('damaged')]);
    },
  );

  it('bars that are there twice with different values, missing, or of the next day make their object partial, and are told', async () => {
    const series: Series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'TWICEUSDT' };
    const of = (day: number, price?: string): string[] =>
      bars(`2026-03-0${day}T00:00:00Z`, HOUR_MS, 24, price);
    const other = of(1, '99.5')[5] ?? '';
    const double = put(series, '2026-03-01', [...of(1).slice(0, 6), other, ...of(1).slice(6)].join(''));
    const next = put(series, '2026-03-02', [...of(2), of(3, '99.5')[0]].join(''));
    const half = (of(3)[7] ?? '').replace(/^\d+/, (open) => String(Number(open) + HOUR_MS / 2));
    const instead = put(series, '2026-03-03', [...of(3).slice(0, 8), half, ...of(3).slice(9)].join(''));
    const sound = put(series, '2026-03-04', [...of(4), of(4)[3]].join(''));
    for (const format of ['parquet', 'csv']) {
      const out = `twice-${format}`;
      const asked = {
        out,
        days: ['2026-03-01', '2026-03-04'],
        flags: ['--strict', '--format', format],
      } as const;
      const result = await run(series, asked);
      expect(result.code).toBe(4);
      expect(eventOf(result, double)).toMatchObject({ outcome: 'partial', rows: 25, idConflicts: 1 });
      expect(eventOf(result, next)).toMatchObject({ outcome: 'partial', rows: 25, idConflicts: 1 });
      expect(eventOf(result, instead)).toMatchObject({
        outcome: 'partial',
        rows: 24,
        idConflicts: 1,
        gaps: [['2026-03-03T08:30:00Z', '2026-03-03T09:00:00Z']],
      });
      expect(eventOf(result, sound)).toMatchObject({ outcome: 'ok', rows: 24, duplicates: 1 });
      expect(eventOf(result, sound)).not.toHaveProperty('idConflicts');
      expect(result.stderr).toContain(`${instead}: 23 of 24 bars, 1 row more`);
      expect(result.stderr).toContain('3 with rows of the same id or bar and different values');
    }
  });

  it('an object with the bars of a shorter interval is refused', async () => {
    const series: Series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'SHORTUSDT' };
    const key = put(series, '2026-03-01', bars('2026-03-01T00:00:00Z', 60_000, 1440).join(''));
    const result = await run(series, { out: 'shorter-bars', days: ['2026-03-01', '2026-03-01'] });
    expect(result.code).toBe(4);
    expect(eventOf(result, key)).toMatchObject({
      outcome: 'failed',
      code: 'row-malformed',
      retryable: false,
    });
    expect(result.stderr).toContain('1440 rows, expected 24 for interval 1h');
  });

  it('bars that open off by seconds and close early are kept to the millisecond', async () => {
    const series: Series = { market: 'spot', dataset: 'klines', interval: '1h', symbol: 'ODDUSDT' };
    const odd = [
      [1512345604123, 1512349203999],
      [1512349207000, 1512352799999],
      [1512352800000, 1512356395001],
    ].map(([open, close]) => `${open},1,1,1,1,1,${close},1,1,1,1,0\n`);
    const key = put(series, '2017-12-04', odd.join(''));
    const result = await runOk(series, {
      out: 'odd',
      days: ['2017-12-04', '2017-12-04'],
      flags: ['--format', 'csv', '--timestamps', 'ms'],
    });
    expect(eventOf(result, key)).toMatchObject({ rows: 3 });
    expect(readText('odd', series, '2017-12').map((row) => [row['open_time'], row['close_time']])).toEqual([
      ['1512345604123', '1512349203999'],
      ['1512349207000', '1512352799999'],
      ['1512352800000', '1512356395001'],
    ]);
  });
});

describe('metrics', () => {
  const seriesOf = (symbol: string, market: Market = 'um'): Series => ({
    market,
    dataset: 'metrics',
    symbol,
  });

  it('the label of the next month that ends a month of um stays with its object', async () => {
    const series = seriesOf('EDGEUSDT');
    put(series, '2026-05-31', METRICS + metrics(series.symbol, '2026-05-31', 5).join(''));
    await runOk(series, { out: 'edge', days: ['2026-05-31', '2026-05-31'] });
    expect(filesBelow(lake('edge', folderOf(series)), '.parquet')).toEqual(['2026-05.parquet']);
    expect(timesOf(await read('edge', series, '2026-05'), 'create_time').at(-1)).toBe(
      '2026-06-01T00:00:00.000Z',
    );
  });

  it('a date without a time is midnight', async () => {
    const series = seriesOf('DATEUSDT');
    const key = put(series, '2023-01-21', `${METRICS}2023-01-21,DATEUSDT,1,2,3,4,5,6\n`);
    const result = await runOk(series, { out: 'date', days: ['2023-01-21', '2023-01-21'] });
    expect(eventOf(result, key)).toMatchObject({
      outcome: 'partial',
      rows: 1,
      first: '2023-01-21T00:00:00Z',
    });
    expect(timesOf(await read('date', series, '2023-01'), 'create_time')).toEqual([
      '2023-01-21T00:00:00.000Z',
    ]);
  });
});

describe('numbers', () => {
  it.each([[[]], [['--numbers', 'string']]])(
    'bands of depth are 10 and then 12, written -5 and then -5.00, and sorted by value %s',
    async (flags) => {
      const series: Series = { market: 'um', dataset: 'bookDepth', symbol: 'BANDSUSDT' };
      const ten = ['-5', '-4', '-3', '-2', '-1', '1', '2', '3', '4', '5'];
      const padded = ten.map((band) => `${band}.00`);
      const twelve = [...padded.slice(0, 5), '-0.20', '0.20', ...padded.slice(5)];
      const snapshot = (time: string, bands: readonly string[]): string =>
        bands
          .toReversed()
          .map((band) => `${time},${band},10.5,20.5\n`)
          .join('');
      put(series, '2026-01-14', DEPTH + snapshot('2026-01-14 23:59:36', ten));
      const key = put(
        series,
        '2026-01-15',
        DEPTH + snapshot('2026-01-15 08:00:02', padded) + snapshot('2026-01-15 08:00:31', twelve),
      );
      const out = `bands${flags.join('')}`;
      const result = await runOk(series, {
        out,
        days: ['2026-01-14', '2026-01-15'],
        flags: [...flags, '--partition', 'month'],
      });
      expect(eventOf(result, key)).toMatchObject({ outcome: 'ok', rows: 22 });
      const written = [...ten, ...padded, ...twelve];
      expect((await read(out, series, '2026-01')).map((row) => row['percentage'])).toEqual(
        flags.length === 0 ? written.map(Number) : written,
      );
    },
  );
});

describe('symbols', () => {
  const NAMES = argv`1000SHIBUSDT 42USDT BTCUSDT_240329 CVCUSDTSETTLED ICPUSDT_SETTLED ICPUSDT_SETTLED1 币安人生USDT 我踏马来了USDT 龙虾USDT`;
  const seriesOf = (symbol: string): Series => ({
    market: 'um',
    dataset: 'markPriceKlines',
    interval: '1d',
    symbol,
  });

  it('of every form go from keys to folders to SQL unchanged', async () => {
    for (const [index, symbol] of NAMES.entries())
      put(
        seriesOf(symbol),
        '2026-01-01',
        BARS + bars('2026-01-01T00:00:00Z', DAY_MS, 1, `${index}.5`).join(''),
      );
    const days = ['2026-01-01', '2026-01-01'] as const;
    const result = await runOk(seriesOf('all'), { out: 'names', days });
    expect(summary(result)).toMatchObject({ outcomes: { ok: NAMES.length, failed: 0 } });
    expect(filesBelow(lake('names', 'binance'), '.parquet')).toEqual(
      NAMES.map((symbol) => `um/markPriceKlines/interval=1d/symbol=${symbol}/2026-01.parquet`).sort(),
    );
    const rows = await sql(
      `SELECT symbol, open FROM read_parquet('${lake('names')}/binance/um/markPriceKlines/**/*.parquet', hive_partitioning = true) ORDER BY open`,
    );
    expect(rows).toEqual(NAMES.map((symbol, index) => ({ symbol, open: index + 0.5 })));
    const csv = await runOk(seriesOf(NAMES.join(',')), { out: 'names', days, flags: ['--format', 'csv'] });
    expect(summary(csv)).toMatchObject({ outcomes: { ok: NAMES.length } });
    const fromCsv = await sql(
      `SELECT symbol, count(*)::INT AS rows FROM read_csv('${lake('names')}/binance/um/markPriceKlines/**/*.csv', hive_partitioning = true) WHERE symbol = '币安人生USDT' GROUP BY symbol`,
    );
    expect(fromCsv).toEqual([{ symbol: '币安人生USDT', rows: 1 }]);
    const again = await cryptodlOk(
      argv`vision --archive-url ${scene.archive.url} --now 2026-01-02 --out ${lake('names')} --json ${FAST}`,
    );
    expect(summary(again)).toMatchObject({ outcomes: { ok: 0, failed: 0 }, exitCode: 0 });
  });

  it('cm perpetuals and deliveries are contracts, and index bars lie under the pair: the contract is refused, and the message names the pair', async () => {
    const day = '2026-01-01';
    const days = [day, day] as const;
    const csv = BARS + bars(`${day}T00:00:00Z`, DAY_MS, 1).join('');
    const contract: Series = {
      market: 'cm',
      dataset: 'markPriceKlines',
      interval: '1d',
      symbol: 'BTCUSD_PERP',
    };
    const delivery = { ...contract, symbol: 'BTCUSD_260327' };
    const index: Series = { ...contract, dataset: 'indexPriceKlines', symbol: 'BTCUSD' };
    for (const series of [contract, delivery, index]) put(series, day, csv);
    const both = await runOk({ ...contract, symbol: 'BTCUSD_*' }, { out: 'pairs', days });
    expect(summary(both)).toMatchObject({ outcomes: { ok: 2 } });
    const refused = await run({ ...index, symbol: 'BTCUSD_PERP' }, { out: 'pairs', days });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('for example BTCUSD;');
    expect(summary(await runOk(index, { out: 'pairs', days }))).toMatchObject({ outcomes: { ok: 1 } });
    expect(filesBelow(lake('pairs', 'binance'), '.parquet')).toEqual([
      'cm/indexPriceKlines/interval=1d/symbol=BTCUSD/2026-01.parquet',
      'cm/markPriceKlines/interval=1d/symbol=BTCUSD_260327/2026-01.parquet',
      'cm/markPriceKlines/interval=1d/symbol=BTCUSD_PERP/2026-01.parquet',
    ]);
  });
});
