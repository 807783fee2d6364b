/** Scales, ticks and pictures of `cryptodl plot` for any values and sizes, and bars compared with a model. */
import * as fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { createEngine } from '../../../src/convert/duckdb.js';
import { makeChart } from '../../../src/verbs/plot/chart.js';
import { LONGEST_TEXT, valueScale, valueText } from '../../../src/verbs/plot/value-scale.js';
import { chartText, plotColumns } from '../../../src/verbs/plot/draw-text.js';
import { barQuery, type Bar } from '../../../src/verbs/plot/read-bars.js';
import { timeGrid, timeTicks } from '../../../src/verbs/plot/time-grid.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { findDataset } from '../../../src/exchange/exchange-spec.js';
import { scratchFolder } from '../../helpers/folders.js';

const HOUR_MS = 3_600_000;
const START = Date.parse('2024-01-01T00:00:00Z');
const SPEC = findDataset(loadBinance(), 'um', 'klines');
const SERIES = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' } as const;
const CANDLES = { kind: 'candles', hasVolume: true } as const;

const engine = createEngine({ tempFolder: scratchFolder() });
afterAll(() => {
  engine.close();
});

const value = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e150, max: 1e150 }),
  fc.double({ noNaN: true, min: -100, max: 100 }),
  fc.double({ noNaN: true, min: 1e-12, max: 1e-9 }),
  fc.constantFrom(0, 1, 43_120.1, 1e15),
);

describe('a value scale', () => {
  it('holds its values, and has distinct round ticks that fit the axis', () => {
    fc.assert(
      fc.property(value, value, fc.integer({ min: 2, max: 20 }), (a, b, most) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        const scale = valueScale(low, high, most);
        expect(scale.low).toBeLessThanOrEqual(low);
        expect(scale.high).toBeGreaterThanOrEqual(high);
        expect(scale.high).toBeGreaterThan(scale.low);
        expect(scale.ticks.length).toBeLessThanOrEqual(most);
        const texts = scale.ticks.map(scale.text);
        for (const text of texts) expect(text.length).toBeLessThanOrEqual(LONGEST_TEXT + 2);
      }),
    );
  });

  it.each([
    [1.05e-9, 1.6e-9, ['1.2e-9', '1.4e-9', '1.6e-9']],
    [41_118, 43_458, ['42,000', '43,000']],
    [-0.0003, 0.0004, ['-0.0002', '0', '0.0002', '0.0004']],
    [0, 5.1e9, ['0', '2B', '4B']],
    [99_990, 100_010, ['99,990', '100,000', '100,010']],
    [1e16, 3e16, ['1e16', '2e16', '3e16']],
  ])('from %f to %f', (low, high, texts) => {
    const scale = valueScale(low, high, 4);
    expect(scale.ticks.map(scale.text)).toEqual(texts);
  });

  it.each([
    [0, '0'],
    [43_120.1, '43,120.1'],
    [-0.0003, '-0.0003'],
    [1.35e-9, '1.35e-9'],
    [12_345_678, '12.35M'],
    [1e20, '1e20'],
    [0.1 + 0.2, '0.3'],
  ])('writes %f as %s', (number, text) => {
    expect(valueText(number)).toBe(text);
  });
});

const range = fc
  .tuple(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 1, max: 60_000 }))
  .map(([from, hours]) => ({ fromMs: START + from * HOUR_MS, toMs: START + (from + hours) * HOUR_MS }));

describe('a time grid', () => {
  it('covers the range in at most as many steps as asked for, each a whole number of rows', () => {
    fc.assert(
      fc.property(
        range,
        fc.integer({ min: 24, max: 400 }),
        fc.constantFrom('1m', '1h', '4h', '1d'),
        (all, most, interval) => {
          const grid = timeGrid(all, { most, interval, dayStartMs: 0 });
          expect(grid.count).toBeLessThanOrEqual(most);
          expect(grid.startOf(0)).toBeLessThanOrEqual(all.fromMs);
          expect(grid.startOf(1)).toBeGreaterThan(all.fromMs);
          expect(grid.startOf(grid.count)).toBeGreaterThanOrEqual(all.toMs);
          expect(grid.startOf(grid.count - 1)).toBeLessThan(all.toMs);
        },
      ),
    );
  });

  it('begins weeks on Mondays, months on their first day, and days at the start of the exchange', () => {
    const day = 24 * HOUR_MS;
    const gridOf = (days: number, most: number, dayStartMs = 0) =>
      timeGrid({ fromMs: START + 3 * day, toMs: START + days * day }, { most, interval: '1d', dayStartMs });
    const first = (grid: ReturnType<typeof gridOf>) => new Date(grid.startOf(0)).toISOString().slice(0, 13);
    expect([gridOf(300, 50).text, first(gridOf(300, 50))]).toEqual(['1 week', '2024-01-01T00']);
    expect([gridOf(900, 40).text, first(gridOf(900, 40))]).toEqual(['1 month', '2024-01-01T00']);
    expect([gridOf(30, 30, 8 * HOUR_MS).text, first(gridOf(30, 30, 8 * HOUR_MS))]).toEqual([
      '1 day',
      '2024-01-03T08',
    ]);
  });

  it('has no step shorter than a row of weeks or of months', () => {
    const all = { fromMs: START, toMs: START + 300 * 24 * HOUR_MS };
    const textOf = (interval: string) => timeGrid(all, { most: 400, interval, dayStartMs: 0 }).text;
    expect(['1d', '1w', '1mo'].map(textOf)).toEqual(['1 day', '1 week', '1 month']);
  });

  it.each([
    ['days', 40],
    ['weeks', 10],
    ['months', 3],
  ] as const)('of %s puts a row into its step in SQL too, with the days of the exchange', async (_, most) => {
    const duckdb = await engine.connect();
    const all = { fromMs: START, toMs: START + 40 * 24 * HOUR_MS };
    const grid = timeGrid(all, { most, interval: '1h', dayStartMs: 8 * HOUR_MS });
    for (let index = 0; index < grid.count; index += 1) {
      const times = [grid.startOf(index), grid.startOf(index + 1) - 1];
      const [row = {}] = await duckdb.rows(
        `SELECT ${times.map((ms, at) => `${grid.indexSql(`${ms}::DOUBLE`)} AS t${at}`).join(', ')}`,
      );
      expect(Object.values(row).map(Number)).toEqual([index, index]);
    }
    duckdb.close();
  });

  it('has labels of days at the start of the days of the exchange', () => {
    const [dayStartMs, day] = [8 * HOUR_MS, 24 * HOUR_MS];
    const all = { fromMs: START + day + dayStartMs, toMs: START + 4 * day + dayStartMs };
    const grid = timeGrid(all, { most: 20, interval: '1h', dayStartMs });
    const ticks = timeTicks(grid, 2);
    expect(ticks.map(({ index, text }) => [new Date(grid.startOf(index)).toISOString(), text])).toEqual([
      ['2024-01-02T08:00:00.000Z', 'Jan 2'],
      ['2024-01-03T08:00:00.000Z', 'Jan 3'],
      ['2024-01-04T08:00:00.000Z', 'Jan 4'],
    ]);
  });

  it('has labels that do not touch', () => {
    fc.assert(
      fc.property(range, fc.integer({ min: 28, max: 200 }), (all, columns) => {
        const grid = timeGrid(all, { most: columns, interval: '1h', dayStartMs: 0 });
        const ticks = timeTicks(grid, 1);
        const touching = ticks.filter(({ index, text }, at) => {
          const next = ticks[at + 1]?.index ?? Infinity;
          return next - index < text.length + 2;
        });
        expect(touching).toEqual([]);
      }),
    );
  });
});

const bars = fc
  .array(
    fc.record({
      at: fc.integer({ min: 0, max: 47 }),
      prices: fc.array(value, { minLength: 4, maxLength: 4 }),
      volume: fc.double({ noNaN: true, min: 0, max: 1e12 }),
    }),
    { minLength: 1, maxLength: 40 },
  )
  .map((all) => {
    const byStep = new Map(all.map((one) => [one.at, one]));
    return [...byStep.values()]
      .sort((a, b) => a.at - b.at)
      .map(({ at: index, prices, volume }): Bar => {
        const [open = 0, close = 0] = prices;
        const first = START + index * HOUR_MS;
        return {
          index,
          firstMs: first,
          lastMs: first,
          open,
          close,
          high: Math.max(...prices),
          low: Math.min(...prices),
          volume,
        };
      });
  });

describe('a picture', () => {
  it('fits the terminal, whatever the values', () => {
    const size = fc.record({
      columns: fc.integer({ min: 40, max: 200 }),
      rows: fc.integer({ min: 16, max: 60 }),
    });
    fc.assert(
      fc.property(bars, size, fc.boolean(), (all, { columns, rows }, isLine) => {
        const span = { fromMs: START, toMs: START + 48 * HOUR_MS };
        const room = plotColumns(columns);
        const grid = timeGrid(span, { most: room, interval: '1h', dayStartMs: 0 });
        const column = { name: 'close', type: 'number', doc: '', nullable: false, restOnly: false } as const;
        const chart = makeChart({
          series: SERIES,
          columns: isLine ? { kind: 'line', column } : CANDLES,
          bars:
            all.filter(({ index }) => index < grid.count).length > 0
              ? all.filter(({ index }) => index < grid.count)
              : [{ ...(all[0] as Bar), index: 0 }],
          grid,
          breaks: [],
          notes: [],
        });
        const lines = chartText(chart, { columns, rows, hasColour: false });
        // The figures of numbers with many digits may need a line of their own, which the terminal breaks.
        for (const line of lines.slice(-8)) expect(line.length).toBeLessThanOrEqual(columns);
        expect(lines.length).toBeLessThan(rows);
        expect(lines.join('\n')).toMatch(/[┃█╻╹▀▄╽╿│]/);
      }),
    );
  });
});

type Row = readonly [ms: number, open: number, high: number, low: number, close: number, volume: number];

/** The bars of rows in order, step by step. */
function modelOf(rows: readonly Row[], stepOf: (ms: number) => number): Bar[] {
  const steps = new Map<number, Bar>();
  for (const [ms, open, high, low, close, volume] of rows) {
    if ([open, high, low, close].some((price) => !Number.isFinite(price))) continue;
    const index = stepOf(ms);
    const own = steps.get(index) ?? {
      index,
      firstMs: ms,
      lastMs: ms,
      open,
      high: -Infinity,
      low: Infinity,
      close,
      volume: 0,
    };
    steps.set(index, {
      ...own,
      lastMs: ms,
      close,
      high: Math.max(own.high, open, high, low, close),
      low: Math.min(own.low, open, high, low, close),
      volume: own.volume + (Number.isFinite(volume) ? volume : 0),
    });
  }
  return [...steps.values()];
}

describe('the bars of rows', () => {
  const price = fc.oneof(fc.integer({ min: 1, max: 1000 }), fc.constantFrom(NaN, Infinity, -Infinity));
  const row = fc.tuple(price, price, price, price, price);

  it.each([
    ['candles of hours', 300, 4 * HOUR_MS],
    ['candles of days', 40, 24 * HOUR_MS],
    ['candles of months', 24, undefined],
  ] as const)(
    'of %s are those of a model, and leave out values that are no numbers',
    async (_, most, stepMs) => {
      const duckdb = await engine.connect();
      const hours = stepMs === undefined ? 9000 : 700;
      await fc.assert(
        fc.asyncProperty(fc.array(row, { minLength: 50, maxLength: 90 }), async (prices) => {
          const gap = Math.floor(hours / prices.length);
          const rows = prices.map(([o, h, l, c, v], at): Row => [START + at * gap * HOUR_MS, o, h, l, c, v]);
          const span = { fromMs: START, toMs: START + hours * HOUR_MS };
          const grid = timeGrid(span, { most, interval: '1h', dayStartMs: 0 });
          const sqlOf = (number: number): string =>
            Number.isFinite(number) ? String(number) : `'${number}'::DOUBLE`;
          const values = rows.map(
            ([ms, ...numbers]) => `('BTCUSDT', '1h', epoch_ms(${ms}), ${numbers.map(sqlOf).join(', ')})`,
          );
          await duckdb.run(
            `CREATE OR REPLACE TABLE um_klines AS FROM (VALUES ${values.join(', ')}) AS t(symbol, "interval", open_time, open, high, low, close, volume)`,
          );
          if (SPEC === undefined) throw new Error('klines is a dataset');
          const found = await duckdb.rows(
            barQuery({ series: SERIES, spec: SPEC, columns: CANDLES, grid, range: span }),
          );
          const read = found.map((each) => Object.values(each).map(Number));
          const date = (ms: number): Date => new Date(ms);
          const stepOf = (ms: number): number =>
            stepMs === undefined
              ? (date(ms).getUTCFullYear() - 2024) * 12 + date(ms).getUTCMonth()
              : Math.floor((ms - START) / (grid.startOf(1) - grid.startOf(0)));
          const expected = modelOf(rows, stepOf);
          expect(read).toEqual(
            expected.map(({ index, firstMs: first, lastMs: last, open, high, low, close, volume }) => [
              index,
              first,
              last,
              open,
              high,
              low,
              close,
              volume,
            ]),
          );
          for (const { open, high, low, close } of expected)
            expect(high >= Math.max(open, close) && low <= Math.min(open, close)).toBe(true);
        }),
        { numRuns: 15 },
      );
      duckdb.close();
    },
  );
});
