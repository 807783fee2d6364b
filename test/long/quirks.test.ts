/** Oddities of the real archive: for each a file of the same form, through the whole program. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow, manifestLines, readCsv, readParquet } from '../helpers/lake.js';
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
const FUNDING = 'calc_time,funding_interval_hours,last_funding_rate\n';
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
  it('duplicates far apart are dropped and counted, and kept when asked for as published', async () => {
    const series: Series = { market: 'spot', dataset: 'aggTrades', symbol: 'FARUSDT' };
    const rows = Array.from(
      { length: 6000 },
      (_, id) =>
        `${id},1.50000000,2.00000000,${id},${id},${(Date.UTC(2026, 1, 1) + id * 400_000) * 1000},True,True\n`,
    );
    // As in BTCUSDT 2026-02: a thousand ids twice more and a thousand once more, 1,000 to 2,000 lines later.
    const csv = [
      ...rows.slice(0, 3000),
      ...rows.slice(1000, 3000),
      ...rows.slice(1000, 2000),
      ...rows.slice(3000),
    ];
    const key = put(series, '2026-02', csv.join(''));
    const dropped = await runOk(series, { out: 'far', days: '2026-02' });
    const kept = await runOk(series, { out: 'far-kept', days: '2026-02', flags: ['--as-published'] });
    expect(eventOf(dropped, key)).toMatchObject({ outcome: 'ok', rows: 6000, duplicates: 3000 });
    expect(summary(dropped)).toMatchObject({ duplicatesDropped: 3000 });
    expect(dropped.stderr).toContain('3,000 exact duplicate rows');
    expect((await read('far', series, '2026-02')).map((row) => row['agg_trade_id'])).toEqual(
      Array.from({ length: 6000 }, (_, id) => BigInt(id)),
    );
    expect(eventOf(kept, key)).toMatchObject({ outcome: 'ok', rows: 9000, duplicates: 0 });
    expect((await read('far-kept', series, '2026-02')).map((row) => row['agg_trade_id'])).toEqual(
      csv.map((line) => BigInt(line.slice(0, line.indexOf(',')))),
    );
  });

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
  const ANY_ORDER: Series = { ...METRIC, symbol: 'SHUFFLEDUSDT' };

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

  it('a row that is missing is told, also where rows come in any order and one of them twice', async () => {
    const days = ['2024-02-15', '2024-02-16'] as const;
    const shuffled = (lines: readonly string[]): string =>
      METRICS + [...lines.slice(100), ...lines.slice(0, 100)].join('');
    const whole = metrics(ANY_ORDER.symbol, days[0], 5);
    put(ANY_ORDER, days[0], shuffled(whole));
    const lines = metrics(ANY_ORDER.symbol, days[1], 5);
    put(ANY_ORDER, days[1], shuffled([...lines.slice(0, 20), ...lines.slice(21), lines[30] ?? '']));
    await runOk(ANY_ORDER, { out: 'hidden', days });
    const held = manifestLines(lake('hidden', folderOf(ANY_ORDER)));
    const [first, second] = days.map((day) => held.find((line) => line['period'] === day));
    expect([first?.['gaps'], first?.['rows']]).toEqual([undefined, 288]);
    expect(second).toMatchObject({ rows: 287, gaps: [['2024-02-16T01:45:00Z', '2024-02-16T01:50:00Z']] });
    expect(await read('hidden', ANY_ORDER, '2024-02')).toHaveLength(288 + 287);
  });

  it('seconds that end early are partial as well; trades, which have no fixed number, tell their last time', async () => {
    const seconds: Series = { market: 'spot', dataset: 'klines', interval: '1s', symbol: 'EARLYUSDT' };
    const micros = bars('2025-07-30T00:00:00Z', 1000, 100).map((line) => {
      const cells = line.split(',');
      return [`${cells[0]}000`, ...cells.slice(1, 6), `${cells[6]}999`, ...cells.slice(7)].join(',');
    });
    const second = put(seconds, '2025-07-30', micros.join(''));
    const trades: Series = { market: 'um', dataset: 'trades', symbol: 'EARLYUSDT' };
    const trade = put(trades, '2023-01-23', `${TRADES}1,1.5,2,3,1674441000000,true\n`);
    const partial = await runOk(seconds, { out: 'early-seconds', days: ['2025-07-30', '2025-07-30'] });
    expect(eventOf(partial, second)).toMatchObject({ outcome: 'partial', rows: 100, expectedRows: 86_400 });
    const ok = await runOk(trades, { out: 'early-trades', days: ['2023-01-23', '2023-01-23'] });
    expect(eventOf(ok, trade)).toMatchObject({ outcome: 'ok', last: '2023-01-23T02:30:00Z' });
  });

  describe('days of trades', () => {
    const DAYS = ['13', '14', '15', '16', '17'].map((day) => `2024-01-${day}`);
    /**
     * A trade every so many minutes between two hours of the day. By default, ids go on from midnight to midnight, so those of the other hours
     * are missing; `firstId`: they begin with it.
     */
    const trades = (day: string, minutes: number, from = 0, to = 24, firstId?: number): string => {
      const start = Date.parse(`${day}T00:00:00Z`);
      const lines: string[] = [];
      for (let at = from * 60; at < to * 60; at += minutes) {
        const id = firstId === undefined ? (start / 60_000 + at) / minutes : firstId + lines.length;
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
        expect(result.stderr).toContain(`${keyOf(series, '2024-01-15')}: ends at 06:59 UTC`);
        expect(result.stderr).toContain(`${keyOf(series, '2024-01-16')}: begins at 17:00 UTC`);
        const covered = await cryptodlOk([
          'coverage',
          '--out',
          lake(out),
          '--now',
          '2024-01-18T12:00:00Z',
          '--json',
        ]);
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

    it('are judged by the days that were held before, as a daily run needs it', async () => {
      const series = { ...NAMES, symbol: 'DAILYUSDT' };
      for (const day of DAYS) put(series, day, trades(day, 1, 0, day.endsWith('17') ? 7 : 24));
      const flags = ['--now', '2024-01-18T12:00:00Z'];
      await runOk(series, { out: 'cut-daily', days: ['2024-01-13', '2024-01-16'], flags });
      const result = await runOk(series, { out: 'cut-daily', days: ['2024-01-17', '2024-01-17'], flags });
      expect(eventOf(result, keyOf(series, '2024-01-17'))).toMatchObject({ outcome: 'partial' });
    });

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

    it('of a quiet symbol are whole, though hours lie between its trades', async () => {
      const series = { ...NAMES, symbol: 'QUIETUSDT' };
      const hours: Record<string, [number, number]> = { '2024-01-15': [0, 7], '2024-01-16': [13, 24] };
      let held = 0;
      for (const day of DAYS) {
        const [from, to] = hours[day] ?? [0, 24];
        const rows = trades(day, 180, from, to, held + 1);
        held += rows.trimEnd().split('\n').length - 1;
        put(series, day, rows);
      }
      const result = await runOk(series, range('quiet'));
      expect(ends(result, series.symbol)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
    });

    it('on which a symbol is listed and delisted are whole, in the run and in coverage', async () => {
      const series = { ...NAMES, symbol: 'EDGEUSDT' };
      const hours: Record<string, [number, number]> = { '2024-01-13': [8, 24], '2024-01-17': [0, 9] };
      for (const day of DAYS) put(series, day, trades(day, 1, ...(hours[day] ?? [0, 24])));
      // The market goes on.
      put({ ...NAMES, symbol: 'BTCUSDT' }, '2024-02-20', trades('2024-02-20', 1, 0, 24));
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

  it('minutes of an exchange halt have no row, and none is made up', async () => {
    const series: Series = { market: 'spot', dataset: 'klines', interval: '1h', symbol: 'HALTUSDT' };
    const hours = bars('2018-02-08T00:00:00Z', HOUR_MS, 24);
    const key = put(series, '2018-02-08', [...hours.slice(0, 3), ...hours.slice(10)].join(''));
    const result = await runOk(series, { out: 'halt', days: ['2018-02-08', '2018-02-08'] });
    expect(eventOf(result, key)).toMatchObject({ outcome: 'partial', rows: 17, expectedRows: 24 });
    const opens = timesOf(await read('halt', series, '2018-02'), 'open_time');
    expect(opens.slice(2, 4)).toEqual(['2018-02-08T02:00:00.000Z', '2018-02-08T10:00:00.000Z']);
  });

  it('days that are missing within a series are holes, named, and no error', async () => {
    const series: Series = { market: 'spot', dataset: 'klines', interval: '1d', symbol: 'FTTUSDT' };
    for (const day of ['2022-11-14', '2022-11-15', '2022-11-18'])
      put(series, day, bars(`${day}T00:00:00Z`, DAY_MS, 1).join(''));
    const days = ['2022-11-14', '2022-11-18'] as const;
    const result = await runOk(series, { out: 'holes', days });
    expect(summary(result)).toMatchObject({
      outcomes: { ok: 3, absent: 2 },
      absent: { hole: 2 },
      exitCode: 0,
    });
    expect(result.stderr).toContain(keyOf(series, '2022-11-16'));
  });

  it('a monthly object that lacks days is partial', async () => {
    const series: Series = { market: 'um', dataset: 'klines', interval: '1d', symbol: 'LACKSUSDT' };
    const all = bars('2022-04-01T00:00:00Z', DAY_MS, 30);
    const key = put(series, '2022-04', [...all.slice(0, 10), ...all.slice(12)].join(''));
    const result = await runOk(series, { out: 'lacks', days: '2022-04' });
    expect(eventOf(result, key)).toMatchObject({ outcome: 'partial', rows: 28, expectedRows: 30 });
  });

  it('ids that are not contiguous are no error', async () => {
    const trades: Series = { market: 'um', dataset: 'trades', symbol: 'IDSUSDT' };
    const at = Date.UTC(2024, 0, 1);
    const key = put(
      trades,
      '2024-01-01',
      TRADES + [3, 4, 900, 6957, 6958].map((id) => `${id},1.5,2,3,${at + id},true\n`).join(''),
    );
    const result = await runOk(trades, { out: 'ids', days: ['2024-01-01', '2024-01-01'] });
    expect(eventOf(result, key)).toMatchObject({ outcome: 'ok', rows: 5, duplicates: 0 });
    expect(result.stderr).not.toContain('warning');
  });
});

describe('monthly and daily objects that disagree', () => {
  const SERIES: Series = { market: 'spot', dataset: 'klines', interval: '1d', symbol: 'DIFFERUSDT' };
  const monthly = bars('2020-12-01T00:00:00Z', DAY_MS, 31, '1.11');
  const daily = bars('2020-12-01T00:00:00Z', DAY_MS, 31, '2.22');
  beforeAll(() => {
    put(SERIES, '2020-12', monthly.join(''));
    for (const [index, line] of daily.entries())
      put(SERIES, `2020-12-${String(index + 1).padStart(2, '0')}`, line);
  });

  it.each([
    { how: 'auto takes the month for a whole month', flags: [], days: '2020-12', zips: 1, price: 1.11 },
    {
      how: 'auto takes days for a part of it',
      flags: [],
      days: ['2020-12-20', '2020-12-22'] as const,
      zips: 3,
      price: 2.22,
    },
    { how: 'daily takes days', flags: ['--cadence', 'daily'], days: '2020-12', zips: 31, price: 2.22 },
    {
      how: 'monthly takes the month',
      flags: ['--cadence', 'monthly'],
      days: '2020-12',
      zips: 1,
      price: 1.11,
    },
  ])('--cadence $how, never both', async ({ how, flags, days, zips, price }) => {
    scene.archive.requests.length = 0;
    await runOk(SERIES, { out: how, days, flags });
    expect(scene.archive.objectRequests().filter((path) => path.endsWith('.zip'))).toHaveLength(zips);
    const rows = await read(how, SERIES, '2020-12');
    expect(rows).toHaveLength(typeof days === 'string' ? 31 : 3);
    expect(new Set(rows.map((row) => row['open']))).toEqual(new Set([price]));
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
});

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

  it('milliseconds and microseconds of spot become one unit, in a series and within one object', async () => {
    const series: Series = { market: 'spot', dataset: 'klines', interval: '1w', symbol: 'UNITSUSDT' };
    put(
      series,
      '2024-12',
      bars('2024-12-23T00:00:00Z', 7 * DAY_MS, 1).join('') +
        '1735516800000000,1,1,1,1,1,1736121599999999,1,1,1,1,0\n',
    );
    put(series, '2025-01', '1736121600000000,1,1,1,1,1,1736726399999999,1,1,1,1,0\n');
    const trades: Series = { market: 'spot', dataset: 'trades', symbol: 'UNITSUSDT' };
    put(trades, '2024-12-31', '1,1.5,2,3,1735689599999,True,True\n');
    put(trades, '2025-01-01', '2,1.5,2,3,1735689600000001,True,True\n');
    await runOk(series, { out: 'units', days: ['2024-12-01', '2025-01-31'] });
    await runOk(trades, { out: 'units', days: ['2024-12-31', '2025-01-01'] });
    const rows = await sql(
      `SELECT open_time::VARCHAR AS opens, close_time::VARCHAR AS closes FROM read_parquet('${lake('units', folderOf(series))}/*.parquet') ORDER BY 1`,
    );
    expect(rows).toEqual([
      { opens: '2024-12-23 00:00:00', closes: '2024-12-29 23:59:59.999' },
      { opens: '2024-12-30 00:00:00', closes: '2025-01-05 23:59:59.999999' },
      { opens: '2025-01-06 00:00:00', closes: '2025-01-12 23:59:59.999999' },
    ]);
    const [times] = await sql(
      `SELECT list(epoch_us(time)::VARCHAR ORDER BY time) AS times FROM read_parquet('${lake('units', folderOf(trades))}/*.parquet')`,
    );
    expect(times).toEqual({ times: ['1735689599999000', '1735689600000001'] });
  });

  it('settlements that jitter after the hour are kept as they are', async () => {
    const series: Series = { market: 'um', dataset: 'fundingRate', symbol: 'JITTERUSDT' };
    put(
      series,
      '2026-04',
      `${FUNDING}1775001600001,8,0.0001\n1775030400026,4,0.0001\n1775044800000,1,0.0001\n`,
    );
    await runOk(series, { out: 'jitter', days: '2026-04', flags: ['--format', 'csv', '--timestamps', 'ms'] });
    expect(
      readText('jitter', series, '2026-04').map(
        (row) => `${row['calc_time']} ${row['funding_interval_hours']}`,
      ),
    ).toEqual(['1775001600001 8', '1775030400026 4', '1775044800000 1']);
  });
});

describe('metrics', () => {
  const seriesOf = (symbol: string, market: Market = 'um'): Series => ({
    market,
    dataset: 'metrics',
    symbol,
  });

  it('early files hold every row twice: 576 rows become 288', async () => {
    const series = seriesOf('TWICEUSDT');
    const rows = metrics(series.symbol, '2020-10-01', 5);
    const key = put(series, '2020-10-01', METRICS + [...rows, ...rows].join(''));
    const result = await runOk(series, { out: 'twice', days: ['2020-10-01', '2020-10-01'] });
    expect(eventOf(result, key)).toMatchObject({ outcome: 'ok', rows: 288, duplicates: 288 });
    expect(await read('twice', series, '2020-10')).toHaveLength(288);
  });

  it('rows come in no order and are sorted', async () => {
    const series = seriesOf('ORDERUSDT');
    const rows = metrics(series.symbol, '2026-07-01', 0);
    put(
      series,
      '2026-07-01',
      METRICS +
        [...rows.slice(30, 200), ...rows.slice(6, 30), ...rows.slice(200), ...rows.slice(0, 6)].join(''),
    );
    await runOk(series, { out: 'order', days: ['2026-07-01', '2026-07-01'] });
    const times = timesOf(await read('order', series, '2026-07'), 'create_time');
    expect(times).toEqual([...times].sort());
    expect(times[0]).toBe('2026-07-01T00:00:00.000Z');
  });

  it('labels shift on 2026-06-25 and are kept as published: 00:00 of the seam is there twice, from two objects', async () => {
    const series = seriesOf('SHIFTUSDT');
    put(series, '2026-06-24', METRICS + metrics(series.symbol, '2026-06-24', 5).join(''));
    put(series, '2026-06-25', METRICS + metrics(series.symbol, '2026-06-25', 0).join(''));
    const result = await runOk(series, { out: 'shift', days: ['2026-06-24', '2026-06-25'] });
    expect(summary(result)).toMatchObject({ outcomes: { ok: 2 }, rows: 576, duplicatesDropped: 0 });
    const rows = await read('shift', series, '2026-06');
    const seam = rows.filter(
      (row) => (row['create_time'] as Date).toISOString() === '2026-06-25T00:00:00.000Z',
    );
    // In their published order: the end of one day, then the start of the next.
    expect(seam.map((row) => row['sum_open_interest'])).toEqual([287.5, 0.5]);
    expect(timesOf(rows, 'create_time')[0]).toBe('2026-06-24T00:05:00.000Z');
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

  it('blanks are nothing or two quotes, and both are NULL in Parquet and empty in CSV', async () => {
    const series = seriesOf('BTCUSD_PERP', 'cm');
    put(
      series,
      '2023-06-25',
      `${METRICS}2023-06-25 00:00:00,BTCUSD_PERP,1.5,2,"","","",6\n2023-06-25 00:05:00,BTCUSD_PERP,1.5,2,,4,5,\n`,
    );
    for (const flags of [[], ['--numbers', 'string'], ['--format', 'csv']])
      await runOk(series, { out: `blanks${flags.join('')}`, days: ['2023-06-25', '2023-06-25'], flags });
    const ratios = (rows: readonly Record<string, unknown>[]): unknown[][] =>
      rows.map((row) => Object.values(row).slice(3));
    expect(ratios(await read('blanks', series, '2023-06'))).toEqual([
      [null, null, null, 6],
      [null, 4, 5, null],
    ]);
    expect(ratios(await read('blanks--numbersstring', series, '2023-06'))).toEqual([
      [null, null, null, '6'],
      [null, '4', '5', null],
    ]);
    expect(
      readFileSync(lake('blanks--formatcsv', folderOf(series), '2023-06.csv'), 'utf8')
        .split('\n')
        .slice(1, 3),
    ).toEqual(['1687651200000000,1.5,2,,,,6', '1687651500000000,1.5,2,,4,5,']);
  });
});

describe('numbers', () => {
  it('rates with an exponent are numbers, and keep their spelling where digits are kept', async () => {
    const series: Series = { market: 'um', dataset: 'fundingRate', symbol: 'EXPUSDT' };
    const rates = ['-1.8E-7', '-6E-8', '9.0E-7', '0.00010000', '0'];
    put(
      series,
      '2026-04',
      FUNDING + rates.map((rate, index) => `${1775001600000 + index * 8 * HOUR_MS},8,${rate}\n`).join(''),
    );
    for (const flags of [[], ['--numbers', 'string'], ['--format', 'csv']])
      await runOk(series, { out: `exponents${flags.join('')}`, days: '2026-04', flags });
    const of = (rows: readonly Record<string, unknown>[]): unknown[] =>
      rows.map((row) => row['last_funding_rate']);
    expect(of(await read('exponents', series, '2026-04'))).toEqual([-1.8e-7, -6e-8, 9e-7, 0.0001, 0]);
    expect(of(await read('exponents--numbersstring', series, '2026-04'))).toEqual(rates);
    expect(of(readText('exponents--formatcsv', series, '2026-04'))).toEqual(rates);
  });

  it('options write zero as 0E-8, no volatility as -1E-8 and blanks as two quotes, in no order of hours', async () => {
    const series: Series = { market: 'option', dataset: 'EOHSummary', symbol: 'BTCUSDT' };
    const header =
      'date,hour,symbol,underlying,type,strike,open,high,low,close,volume_contracts,volume_usdt,best_bid_price,best_ask_price,' +
      'best_bid_qty,best_ask_qty,best_buy_iv,best_sell_iv,mark_price,mark_iv,delta,gamma,vega,theta,openinterest_contracts,openinterest_usdt\n';
    const row = (hour: string, strike: number): string =>
      `2023-10-20,${hour},BTC-231229-${strike}-C,BTCUSDT,C,231229-${strike},0E-8,0E-8,0E-8,0E-8,0E-8,0E-8,5,6,7,8,"",-1E-8,1.50000000,0.5,8.7E-7,0,0,0,"",""\n`;
    put(
      series,
      '2023-10-20',
      header + row('13', 34_000) + row('02', 36_000) + row('02', 34_000) + row('00', 34_000),
    );
    for (const flags of [[], ['--numbers', 'string'], ['--format', 'csv']])
      await runOk(series, { out: `options${flags.join('')}`, days: ['2023-10-20', '2023-10-20'], flags });
    const rows = await read('options--numbersstring', series, '2023-10');
    expect(rows.map((cells) => `${String(cells['hour'])} ${String(cells['contract'])}`)).toEqual([
      '0 BTC-231229-34000-C',
      '2 BTC-231229-34000-C',
      '2 BTC-231229-36000-C',
      '13 BTC-231229-34000-C',
    ]);
    expect(rows[0]).toMatchObject({
      strike: '231229-34000',
      open: '0E-8',
      best_buy_iv: null,
      best_sell_iv: '-1E-8',
      delta: '8.7E-7',
    });
    expect(readText('options--formatcsv', series, '2023-10')[1]).toMatchObject({
      hour: '02',
      open: '0E-8',
      best_buy_iv: '',
      mark_price: '1.50000000',
    });
    expect((await read('options', series, '2023-10'))[0]).toMatchObject({
      open: 0,
      best_buy_iv: null,
      best_sell_iv: -1e-8,
      delta: 8.7e-7,
    });
  });

  it('flags are True in spot and true in futures, and the same in the lake', async () => {
    const spot: Series = { market: 'spot', dataset: 'aggTrades', symbol: 'FLAGSUSDT' };
    const um: Series = { market: 'um', dataset: 'aggTrades', symbol: 'FLAGSUSDT' };
    put(spot, '2024-01-01', '1,1.5,2,1,1,1704067200000,True,True\n2,1.5,2,2,2,1704067200000,False,True\n');
    put(um, '2024-01-01', `${AGG_TRADES}1,1.5,2,1,1,1704067200000,true\n2,1.5,2,2,2,1704067200000,false\n`);
    for (const series of [spot, um]) {
      await runOk(series, { out: 'flags', days: ['2024-01-01', '2024-01-01'] });
      await runOk(series, {
        out: 'flags-csv',
        days: ['2024-01-01', '2024-01-01'],
        flags: ['--format', 'csv'],
      });
      const flags = (rows: readonly Record<string, unknown>[]): unknown[] =>
        rows.map((row) => row['is_buyer_maker']);
      expect(flags(await read('flags', series, '2024-01-01'))).toEqual([true, false]);
      expect(flags(readText('flags-csv', series, '2024-01-01'))).toEqual(['true', 'false']);
    }
  });

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

  it('a premium is negative as well, and a count of samples and an ignored number are kept', async () => {
    const series: Series = {
      market: 'um',
      dataset: 'premiumIndexKlines',
      interval: '1h',
      symbol: 'PREMIUMUSDT',
    };
    const lines = ['-0.00012345,0.00010000,-0.00050000,-0.00000001', '0,0,-1.2E-7,0'].map((prices, index) => {
      const open = Date.UTC(2024, 0, 1) + index * HOUR_MS;
      return `${open},${prices},0,${open + HOUR_MS - 1},0,12,0,0,17.5\n`;
    });
    put(series, '2024-01-01', BARS + lines.join(''));
    await runOk(series, { out: 'premium', days: ['2024-01-01', '2024-01-01'] });
    const rows = await read('premium', series, '2024-01');
    expect(rows.map((row) => [row['open'], row['high'], row['low'], row['close']])).toEqual([
      [-0.00012345, 0.0001, -0.0005, -1e-8],
      [0, 0, -1.2e-7, 0],
    ]);
    expect(rows[0]).toMatchObject({ count: 12n, ignore: 17.5 });
  });
});

describe('symbols', () => {
  const NAMES = [
    '1000SHIBUSDT',
    '42USDT',
    'BTCUSDT_240329',
    'CVCUSDTSETTLED',
    'ICPUSDT_SETTLED',
    'ICPUSDT_SETTLED1',
    '币安人生USDT',
    '我踏马来了USDT',
    '龙虾USDT',
  ];
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
    const again = await cryptodlOk([
      'vision',
      '--archive-url',
      scene.archive.url,
      '--now',
      '2026-01-02',
      '--out',
      lake('names'),
      '--json',
      ...FAST,
    ]);
    expect(summary(again)).toMatchObject({ outcomes: { ok: 0, failed: 0 }, exitCode: 0 });
  });

  it('are checked against the column that repeats them, underscores and other scripts too', async () => {
    for (const symbol of ['BTCUSDT_240329', '币安人生USDT']) {
      const series: Series = { market: 'um', dataset: 'metrics', symbol };
      put(series, '2026-07-01', METRICS + metrics(symbol, '2026-07-01', 0).join(''));
      const result = await runOk(series, { out: 'repeated', days: ['2026-07-01', '2026-07-01'] });
      expect(summary(result)).toMatchObject({ outcomes: { ok: 1 }, rows: 288 });
      expect(Object.keys((await read('repeated', series, '2026-07'))[0] ?? {})).not.toContain('symbol');
    }
  });

  it('cm perpetuals and deliveries are contracts, and index bars lie under the pair: asking for the contract is answered with it', async () => {
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
