import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Series, Settings } from '../../../src/model/task.js';
import { archivedColumns } from '../../../src/exchange/exchange-spec.js';
import { Converter, objectLine, received, specOf } from '../../helpers/conversion.js';
import type { Made } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import { parquetMetadata, readCsv, readParquet } from '../../helpers/lake.js';

const folder = scratchFolder();
const converter = new Converter(join(folder, "it's"));
afterAll(() => {
  converter.close();
});

const FUNDING: Series = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' };
const KLINES: Series = { market: 'spot', dataset: 'klines', interval: '1m', symbol: 'BTCUSDT' };
const LIQUIDATIONS: Series = { market: 'cm', dataset: 'liquidationSnapshot', symbol: 'BTCUSD_PERP' };
const METRICS: Series = { market: 'cm', dataset: 'metrics', symbol: 'BTCUSD_PERP' };

const TRADES: Series = { market: 'um', dataset: 'aggTrades', symbol: 'BTCUSDT' };

const T0 = Date.UTC(2024, 0, 15);

/** A funding row: three cells keep the tests readable. */
function funding(minute: number, rate: string | number = minute): string {
  return `${T0 + minute * 60_000},8,${rate}\n`;
}

function bar(time: number, end: number): string {
  return `${time},1,2,1,2,5,${end},9,3,1,1,0\n`;
}

function metric(symbol: string): string {
  return `2024-01-15 00:05:00,${symbol},1,2,3,4,5,6\n`;
}

function trade(id: string, flag = 'true'): string {
  return `${id},1,2,3,4,${T0},${flag}\n`;
}

/** As published. */
function headerOf(series: Series): string {
  return `${archivedColumns(specOf(series.market, series.dataset))
    .map((column) => column.name)
    .join(',')}\n`;
}

let staged = false;

async function make(
  objects: Readonly<Record<string, string>>,
  settings: Partial<Settings> = {},
  series = FUNDING,
): Promise<Made> {
  return converter.convert({
    series,
    settings,
    staged,
    received: Object.entries(objects).map(([label, content]) => received(label, content)),
  });
}

async function rates(made: Made): Promise<unknown[]> {
  return (await readParquet(made.file)).map((row) => row['last_funding_rate']);
}

describe.each([
  ['in memory', false],
  ['through a file', true],
])('%s', (...[, value]) => {
  beforeAll(() => {
    staged = value;
  });

  describe('the order of rows', () => {
    it('sorts rows by time, across objects too', async () => {
      const made = await make({
        '2024-01-15': funding(3) + funding(1),
        '2024-01-16': funding(2) + funding(0),
      });
      expect(await rates(made)).toEqual([0, 1, 2, 3]);
      expect(made.written.get('2024-01-15.zip')).toEqual({
        rows: 2,
        // The rows say that they are 8 hours apart.
        expectedRows: 4,
        gaps: [['2024-01-15T08:03:00Z', '2024-01-16T00:00:00Z']],
        // Minutes since 1970: the row before it must be 8 hours earlier.
        ids: { first: 28_420_802, last: 28_421_283 },
        first: '2024-01-15T00:01:00Z',
        last: '2024-01-15T00:03:00Z',
        duplicates: 0,
      });
    });

    it.each(['parquet', 'csv'] as const)(
      'keeps the published order of rows of one key in %s',
      async (format) => {
        const rows = [funding(1, 0.5), funding(1, -0.5), funding(1, 0.5), funding(1, 0.25), funding(0, 7)];
        const again = funding(0, 8) + funding(1, -0.5);
        const made = await make({ '2024-01-15': rows.join(''), '2024-01-16': again }, { format });
        const found =
          format === 'csv'
            ? readCsv(made.file).map((row) => Number(row['last_funding_rate']))
            : await rates(made);
        expect(found).toEqual([7, 8, 0.5, -0.5, 0.25, -0.5]);
        expect(made.written.get('2024-01-15.zip')).toMatchObject({ rows: 4, duplicates: 1, idConflicts: 2 });
      },
    );

    it('keeps the published order of rows that are added to a file', async () => {
      const held = await make({ '2024-01-15': funding(1, 0.5) + funding(1, -0.5) + funding(0, 7) });
      const kept = { file: held.file, objects: { '2024-01-15': 3 } };
      const objects = [received('2024-01-16', funding(1, -2) + funding(1, -3))];
      const made = await converter.convert({ series: FUNDING, staged, kept, received: objects });
      expect(await rates(made)).toEqual([7, 0.5, -0.5, -2, -3]);
    });

    it.each([
      ['metrics', METRICS, metric('BTCUSD_PERP'), '1,2,3', '1,9,3'],
      ['bars', KLINES, bar(T0, T0 + 59_999), ',5,', ',4,'],
    ] as const)('counts %s of one key with other values', async (_, series, row, cells, other) => {
      const made = await make({ '2024-01-15': row + row.replace(cells, other) + row }, {}, series);
      expect(made.written.get('2024-01-15.zip')).toMatchObject({ rows: 2, duplicates: 1, idConflicts: 1 });
    });

    it('sorts numbers that are kept as text by time all the same', async () => {
      const made = await make({ '2024-01-15': funding(10, '9') + funding(9, '10') }, { numbers: 'string' });
      expect(await rates(made)).toEqual(['10', '9']);
    });

    it('keeps the published order and its duplicates when asked to', async () => {
      const made = await make(
        { '2024-01-15': funding(3) + funding(1) + funding(3), '2024-01-16': funding(2) },
        { asPublished: true },
      );
      expect(await rates(made)).toEqual([3, 1, 3, 2]);
      expect(made.written.get('2024-01-15.zip')).toMatchObject({ rows: 3, duplicates: 0 });
    });
  });

  describe('duplicates', () => {
    it('are dropped and counted within one object', async () => {
      const made = await make({
        '2024-01-15': (funding(0) + funding(1)).repeat(2),
        '2024-01-16': funding(2),
      });
      expect(await rates(made)).toEqual([0, 1, 2]);
      expect(made.written.get('2024-01-15.zip')).toMatchObject({ rows: 2, duplicates: 2 });
      expect(made.written.get('2024-01-16.zip')).toMatchObject({ rows: 1, duplicates: 0 });
      expect(made).toMatchObject({ rows: 3, duplicatesAcross: 0 });
    });

    it('are kept and counted across objects', async () => {
      const made = await make({
        '2024-01-15': funding(0) + funding(1),
        '2024-01-16': funding(1) + funding(2),
      });
      expect(await rates(made)).toEqual([0, 1, 1, 2]);
      expect(made).toMatchObject({ rows: 4, duplicatesAcross: 1 });
    });

    it('differ when one cell differs', async () => {
      const made = await make({ '2024-01-15': funding(0, '1.0') + funding(0, '1.00000001') });
      expect(made.written.get('2024-01-15.zip')).toMatchObject({ rows: 2, duplicates: 0 });
    });
  });

  /** Text of a CSV, rows of a Parquet file, in their order. */
  async function contentOf(file: string): Promise<unknown> {
    return file.endsWith('.csv') ? readFileSync(file, 'utf8') : readParquet(file);
  }

  const MERGES: readonly (readonly [string, Partial<Settings>])[] = [
    ['Parquet', {}],
    ['Parquet with digits', { numbers: 'string' }],
    ['CSV in us', { format: 'csv', timestamps: 'us' }],
    ['CSV in ms', { format: 'csv', timestamps: 'ms' }],
    ['CSV in ISO', { format: 'csv', timestamps: 'iso' }],
  ];

  describe('adding to a file that is there', () => {
    it.each(MERGES)('%s ends as if all had been written at once', async (_, settings) => {
      const days = {
        '2024-01-15': funding(0, '-1.8E-7') + funding(1, '1.50'),
        '2024-01-16': funding(2) + funding(3),
        '2024-01-17': funding(5) + funding(3),
      };
      const whole = await make(days, settings);
      const first = await make(
        { '2024-01-15': days['2024-01-15'], '2024-01-17': days['2024-01-17'] },
        settings,
      );
      const merged = await converter.convert({
        series: FUNDING,
        settings,
        received: [received('2024-01-16', days['2024-01-16'])],
        kept: { file: first.file, objects: { '2024-01-15': 2, '2024-01-17': 2 } },
      });
      expect(await contentOf(merged.file)).toEqual(await contentOf(whole.file));
      expect(merged).toMatchObject({ rows: 6, duplicatesAcross: 1 });
      expect([...merged.written.keys()]).toEqual(['2024-01-16.zip']);
    });
  });

  describe('headers', () => {
    it.each([
      ['none', ''],
      ['the declared one', headerOf(FUNDING)],
      ['a quoted one', headerOf(FUNDING).replaceAll(/\w+/g, '"$&"')],
      ['one behind a byte order mark', `\uFEFF${headerOf(FUNDING)}`],
      ['one with CRLF', headerOf(FUNDING).replace('\n', '\r\n')],
    ])('%s is understood', async (_, header) => {
      expect(await rates(await make({ '2024-01-15': header + funding(0) + funding(1) }))).toEqual([0, 1]);
    });

    it.each(['', headerOf(FUNDING), headerOf(FUNDING).trim(), '\uFEFF'])(
      'without any row below them are an empty file: %j',
      async (content) => {
        const made = await make({ '2024-01-15': content });
        expect(made.failed.get('2024-01-15.zip')?.code).toBe('file-empty');
        expect(made.rows).toBe(0);
      },
    );
  });

  describe('cells', () => {
    it.each([
      ['a return', 'LI\rIT'],
      ['a control character', 'LI\u0001IT'],
      ['a quote', 'LI"IT'],
      ['a doubled quote', '"LI""IT"'],
      ['a quoted comma', '"LI,IT"'],
      ['bytes that are no UTF-8', Buffer.from([0x4c, 0xff, 0x54])],
    ])('of text with %s fail the object by their line', async (_, cell) => {
      const row = (type: string | Buffer): Buffer =>
        Buffer.concat([`${T0},SELL,`, type, ',IOC,1,2,3,FILLED,4,5\n'].map((part) => Buffer.from(part)));
      const content = Buffer.concat([row('LIMIT'), row(cell), row('LIMIT')]);
      const made = await converter.convert({
        series: LIQUIDATIONS,
        staged,
        received: [received('2024-01-15', content), received('2024-01-16', row('LIMIT'))],
      });
      const error = made.failed.get('2024-01-15.zip');
      expect(error?.code).toBe('row-malformed');
      expect(error?.message).toMatch(/^2024-01-15\.csv line 2: /);
      expect([...made.written.keys()]).toEqual(['2024-01-16.zip']);
    });

    it.each([
      ['1e-400', 'an exponent'],
      [`0.${'0'.repeat(400)}1`, '400 zeros'],
    ])('of numbers that are too small for a double fail the object by their line: %s', async (cell) => {
      for (const format of ['parquet', 'csv'] as const) {
        const made = await make({ '2024-01-15': funding(0) + funding(1, cell) }, { format });
        expect(made.failed.get('2024-01-15.zip')?.message).toBe(
          `2024-01-15.csv line 2: last_funding_rate is "${cell.slice(0, 40)}", which a double rounds to 0`,
        );
      }
    });

    it.each(['nan', 'inf', '-Infinity', '1e400', '1.5', '9007199254740993', '-9007199254740992', 'x'])(
      'of whole numbers that are %s fail the object by their line',
      async (cell) => {
        const made = await make({ '2024-01-15': trade('1') + trade(cell) }, {}, TRADES);
        expect(made.failed.get('2024-01-15.zip')?.message).toBe(
          `2024-01-15.csv line 2: agg_trade_id is "${cell}", not a whole number between -2^53 and 2^53`,
        );
      },
    );

    it('of flags may have capitals and spaces', async () => {
      const content = ['true', 'false', 'True', ' FALSE ', ' true'].map((flag, id) => trade(`${id}`, flag));
      const rows = await readParquet((await make({ '2024-01-15': content.join('') }, {}, TRADES)).file);
      expect(rows.map((row) => row['is_buyer_maker'])).toEqual([true, false, true, false, true]);
    });

    it.each(['t', '1', 'yes', '"tru"', '\u00A0true'])(
      'of flags that are %s fail the object by their line',
      async (cell) => {
        const made = await make({ '2024-01-15': trade('1') + trade('2', cell) }, {}, TRADES);
        expect(made.failed.get('2024-01-15.zip')?.message).toBe(
          `2024-01-15.csv line 2: is_buyer_maker is "${cell.replaceAll('"', '')}", not true or false`,
        );
      },
    );

    it.each(['parquet', 'csv'] as const)('may have spaces around them, which %s loses', async (format) => {
      const at = (cell: string): string => metric('BTCUSD_PERP').replace('2024-01-15 00:05:00', cell);
      const content =
        at(' 2024-01-15 00:05:00') +
        at('2024-01-15 00:10:00 ') +
        at('2024-01-16 ').replace(',1,2,', ', 1 ,2 ,');
      const made = await make({ '2024-01-15': content }, { format, timestamps: 'iso' }, METRICS);
      const rows = format === 'csv' ? readCsv(made.file) : await readParquet(made.file);
      const one = format === 'csv' ? '1' : 1;
      expect(rows.map((row) => row['sum_open_interest'])).toEqual([one, one, one]);
      expect(made.written.get('2024-01-15.zip')).toMatchObject({
        first: '2024-01-15T00:05:00Z',
        last: '2024-01-16T00:00:00Z',
      });
    });
  });

  it('rows of REST have every column, those of the archive are blank where only REST tells', async () => {
    const rest = { ...received('2024-01-16', `${T0 + 60_000},8,0.5,42000.5\n`), verified: 'rest' as const };
    const objects = [received('2024-01-15', funding(0)), rest];
    const made = await converter.convert({ series: FUNDING, staged, received: objects });
    const prices = (await readParquet(made.file)).map((row) => row['mark_price'] ?? null);
    expect(prices).toEqual([null, 42_000.5]);
  });

  describe('ids', () => {
    /** Aggregates, one a second, of ids and their ranges of trade ids. */
    const aggregates = (of: readonly (readonly [id: number, from: number, to: number])[]): string =>
      of.map(([id, low, high]) => `${id},1,2,${low},${high},${T0 + id * 1000},true\n`).join('');
    const all = Array.from({ length: 10 }, (_, id) => [id, 2 * id, 2 * id + 1] as const);
    const [FIRST, LAST] = [all.slice(0, 3), all.slice(6)];
    const RANGE = { first: 0, last: 19 };
    const place = ['2024-01-15T00:00:02Z', '2024-01-15T00:00:06Z'];

    it.each([
      ['of a whole object', all, { first: 0, last: 9, range: RANGE, silent: ['end'] }, undefined],
      ['that are missing', [...FIRST, ...LAST], { first: 0, last: 9, range: RANGE, missing: 3 }, [place]],
      [
        'that are missing in rows without order',
        [...LAST, ...FIRST],
        { first: 0, last: 9, range: RANGE, missing: 3 },
        [place],
      ],
      [
        'that are missing beside a repeated one',
        [...FIRST, [2, 4, 5], [4, 8, 9]],
        { first: 0, last: 4, range: { first: 0, last: 9 }, missing: 1, overlapping: 1 },
        [['2024-01-15T00:00:02Z', '2024-01-15T00:00:04Z']],
      ],
      [
        'under which the same trades come again',
        [...all, ...FIRST.map(([id, low, high]) => [id + 10, low, high] as const)],
        { first: 0, last: 12, range: RANGE, overlapping: 3, silent: ['end'] },
        undefined,
      ],
    ] as const)('%s are told', async (_, rows, ids, gaps) => {
      const facts = (await make({ '2024-01-15': aggregates(rows) }, {}, TRADES)).written.get(
        '2024-01-15.zip',
      );
      expect([facts?.ids, facts?.gaps]).toEqual([ids, gaps]);
    });

    it('prove nothing in trades of futures, whose whole files lack some', async () => {
      const rows = [1, 2, 5].map((id) => `${id},1,2,2,${T0 + id},true\n`).join('');
      const made = await make({ '2024-01-15': rows }, {}, { ...TRADES, dataset: 'trades' });
      expect(made.written.get('2024-01-15.zip')).toMatchObject({ rows: 3 });
      expect(made.written.get('2024-01-15.zip')?.ids).toBeUndefined();
    });
  });

  it('ids that come with different values are counted within their object', async () => {
    const other = (id: string): string => trade(id).replace(',1,2,', ',9,2,');
    const made = await make(
      {
        '2024-01-15': trade('1') + trade('2') + other('2') + other('1') + trade('1'),
        '2024-01-16': trade('3'),
      },
      {},
      TRADES,
    );
    const facts = ['2024-01-15.zip', '2024-01-16.zip'].map((key) => made.written.get(key));
    expect(facts.map((fact) => [fact?.rows, fact?.duplicates, fact?.idConflicts])).toEqual([
      [4, 1, 2],
      [1, 0, undefined],
    ]);
  });

  describe('the gaps of a month without a fixed number of rows', () => {
    const DAY_MS = 86_400_000;
    const FEBRUARY = Date.UTC(2024, 1, 1);
    const BARS: Series = { market: 'um', dataset: 'klines', symbol: 'BTCUSDT' };
    /** Rows that begin on these days of February, where 1 is the first. */
    const rowsOn = (series: Series, days: readonly number[]): string =>
      days
        .map((day) => FEBRUARY + (day - 1) * DAY_MS)
        .map((at, id) =>
          series.interval === undefined ? `${id},1,2,${id},${id},${at},true\n` : bar(at, at + 1),
        )
        .join('');
    const from = (first: number, to: number): number[] =>
      Array.from({ length: to - first + 1 }, (_, index) => first + index);

    it.each<[string, Series, number[], object, string[]]>([
      ['days without trades', TRADES, [...from(1, 9), ...from(11, 27)], {}, ['10 11', '28 01']],
      ['days before the first trade', TRADES, from(4, 29), {}, ['01 04']],
      [
        'the last day, if a trade is seconds before the month',
        TRADES,
        [0.9999, ...from(1, 28)],
        {},
        ['29 01'],
      ],
      ['no days of a period that is not over', TRADES, from(1, 9), { rest: { open: true } }, []],
      ['the last week', { ...BARS, interval: '1w' }, [5, 12, 19], {}, ['26 01']],
      ['the first week', { ...BARS, interval: '1w' }, [12, 19, 26], {}, ['05 12']],
      [
        'no week where weeks are published when they close',
        { ...BARS, interval: '1w' },
        [-2, 5, 12, 19],
        {},
        [],
      ],
      ['two bars of three days', { ...BARS, interval: '3d' }, [2, 5, 14, 17, 20, 23, 26, 29], {}, ['08 14']],
      ['nothing of a month in one bar', { ...BARS, interval: '1mo' }, [1], {}, []],
    ])('are %s', async (_, series, days, more, gaps) => {
      const month = received('2024-02', rowsOn(series, days));
      const object = { ...month.object, ...more } as typeof month.object;
      const made = await converter.convert({ series, staged, received: [{ ...month, object }] });
      const found = made.written.get('2024-02.zip')?.gaps ?? [];
      expect(
        found.map((gap) => gap.map((at) => at.slice('2024-02-'.length, '2024-02-01'.length)).join(' ')),
      ).toEqual(gaps);
    });
  });

  describe('the settlements that a month lacks', () => {
    /** Rows of February 2024: hours from its start, hours since the row before, milliseconds after the minute. */
    const month = (rows: readonly (readonly [number, number, number?])[]): string =>
      rows.map(([hour, since, ms = 0]) => `${Date.UTC(2024, 1, 1, hour) + ms},${since},${hour}\n`).join('');
    const every = (hours: number, from: number, to: number): [number, number][] =>
      Array.from({ length: (to - from) / hours + 1 }, (_, index) => [from + index * hours, hours]);
    const LAST = 29 * 24 - 8;

    it.each<[string, [number, number, number?][], number, string[]]>([
      ['are none of a whole month', every(8, 0, LAST), 87, []],
      ['are those between two rows', [...every(8, 0, 16), ...every(8, 40, LAST)], 87, ['02T00 02T16']],
      ['are those at its ends', every(8, 16, LAST - 16), 87, ['01T00 01T16', '29T08 01T00']],
      [
        'follow an interval that changes',
        [
          ...every(8, 0, 48),
          ...every(4, 52, 60),
          ...every(1, 61, 64),
          ...every(1, 67, 67),
          ...every(8, 72, LAST),
        ],
        95,
        ['03T17 03T19'],
      ],
      ['are none where times vary', [[0, 8, 47], [8, 8, -20], ...every(8, 16, LAST)], 87, []],
    ])('%s', async (_, rows, expected, gaps) => {
      const facts = (await make({ '2024-02': month(rows) })).written.get('2024-02.zip');
      const found = (facts?.gaps ?? []).map((gap) => gap.map((at) => at.slice(8, 13)).join(' '));
      expect([facts?.expectedRows, found]).toEqual([expected, gaps]);
    });

    it('count a second row of the same minute as a conflict', async () => {
      const rows = month([[0, 8], [8, 8], [8, 8, 5], ...every(8, 16, LAST)]);
      const facts = (await make({ '2024-02': rows })).written.get('2024-02.zip');
      expect(facts).toMatchObject({ rows: 88, expectedRows: 87, idConflicts: 1, duplicates: 0 });
    });
  });

  describe('the times of rows', () => {
    const WEEKLY: Series = { market: 'spot', dataset: 'klines', interval: '1w', symbol: 'BTCUSDT' };
    const THREE_DAYS: Series = { ...WEEKLY, interval: '3d' };
    const MONTHS: Series = { ...WEEKLY, interval: '1mo' };
    const at = (text: string): number => Date.parse(`${text}Z`);
    const oneRow = (text: string, series: Series): string =>
      series.dataset === 'metrics'
        ? metric('BTCUSD_PERP').replace('2024-01-15 00:05:00', text.replace('T', ' '))
        : series.dataset === 'klines'
          ? bar(at(text), at(text) + 59_999)
          : `${at(text)},8,1\n`;

    it.each([
      ['the first instant of the day', '2024-01-15', '2024-01-15T00:00:00', FUNDING],
      ['00:00 of the next day', '2024-01-15', '2024-01-16T00:00:00', METRICS],
      ['seconds before the day', '2024-01-15', '2024-01-14T23:59:57', KLINES],
      ['a week that opened in the month before', '2024-02', '2024-01-29T00:00:00', WEEKLY],
      ['three days that opened in the month before', '2024-02', '2024-01-29T23:59:59', THREE_DAYS],
      ['a month that opened in the month before', '2024-02', '2024-01-01T00:00:00', MONTHS],
    ])('may be %s', async (_, label, time, series) => {
      const { edgeSeconds } = specOf(series.market, series.dataset);
      const objects = [received(label, oneRow(time, series))];
      const made = await converter.convert({ series, staged, edgeSeconds, received: objects });
      expect([made.rows, made.failed.size]).toEqual([1, 0]);
    });

    it.each([
      ['another year', '2024-01-15', '2022-01-15T00:00:00', FUNDING],
      ['the day before', '2024-01-15', '2024-01-14T12:00:00', KLINES],
      ['the next day', '2024-01-15', '2024-01-16T00:01:00', METRICS],
      ['the next month', '2024-02', '2024-03-04T00:00:00', WEEKLY],
      ['a week before the week before', '2024-02', '2024-01-22T00:00:00', WEEKLY],
      ['five days before', '2024-02', '2024-01-27T00:00:00', THREE_DAYS],
      ['two months before', '2024-02', '2023-12-01T00:00:00', MONTHS],
    ])('that are of %s fail the object, and the others are written', async (_, label, time, series) => {
      const { edgeSeconds } = specOf(series.market, series.dataset);
      const other = label.length === 7 ? '2024-04' : '2024-01-17';
      const right = oneRow(`${other.padEnd(10, '-01')}T00:00:00`, series);
      const objects = [received(label, oneRow(time, series)), received(other, right)];
      const made = await converter.convert({ series, staged, edgeSeconds, received: objects });
      const error = made.failed.get(`${label}.zip`);
      expect([error?.code, error?.retryable]).toEqual(['rows-outside-period', false]);
      expect(error?.message).toBe(
        `${label}.csv: its rows are from ${time}Z … ${time}Z, its period is ${label}`,
      );
      expect([...made.written.keys()]).toEqual([`${other}.zip`]);
    });
  });

  it('the Parquet file has microsecond UTC-by-contract times, typed columns and its provenance', async () => {
    const made = await make({ '2024-01-15': funding(0) });
    const facts = await parquetMetadata(made.file);
    const types = facts.schema.slice(1).map(({ name, type, converted_type: as }) => [name, as ?? type]);
    expect(types).toEqual([
      ['calc_time', 'TIMESTAMP_MICROS'],
      ['funding_interval_hours', expect.stringMatching(/^INT_?64$/)],
      ['last_funding_rate', 'DOUBLE'],
      ['mark_price', 'DOUBLE'],
    ]);
    expect(facts.schema[1]?.logical_type).toMatchObject({ isAdjustedToUTC: false });
    const provenance = facts.key_value_metadata?.find(({ key }) => key === 'cryptodl')?.value;
    expect(provenance).toBe('{"keys":["2024-01-15.zip"]}');
  });

  it('an unreadable file that is to be added to is an error, and no file appears', async () => {
    const file = join(folder, 'torn.parquet');
    writeFileSync(file, 'PAR1');
    const request = { series: FUNDING, received: [received('2024-01-16', funding(0))] };
    const adding = converter.convert({ ...request, kept: { file, objects: { '2024-01-15': 1 } } });
    await expect(adding).rejects.toThrow('torn.parquet');
  });
});

it('a small partition is read in less memory than a reader asks for by itself', async () => {
  const small = new Converter(join(folder, 'small'), 30e6);
  const content = Array.from({ length: 20_000 }, (_, minute) => funding(minute)).join('');
  try {
    const made = await small.convert({ series: FUNDING, received: [received('2024-01', content)] });
    expect(made.rows).toBe(20_000);
  } finally {
    small.close();
  }
});

describe('a month in place of held days', () => {
  const rows = [0, 1, 2].map((minute) => funding(minute)).join('');

  it.each([
    ['rest', [], 3],
    ['sidecar', ['month-incomplete'], 0],
  ] as const)('with the same rows, and days from %s', async (verified, failed, written) => {
    const held = await make({ '2024-01-15': rows });
    const [first, last] = ['2024-01-15T00:00:00Z', '2024-01-15T00:02:00Z'];
    const lines = [objectLine('2024-01-15', { rows: 3, first, last, verified })];
    const month = await converter.convert({
      series: FUNDING,
      received: [received('2024-01', rows)],
      days: { file: held.file, lines },
    });
    expect([...month.failed.values()].map(({ code }) => code)).toEqual(failed);
    expect(month.rows).toBe(written);
  });
});
