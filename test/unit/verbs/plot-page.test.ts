/** The page of `cryptodl plot`: text of a lake stays text, and its steps have the times and values of their rows. */
import { describe, expect, it } from 'vitest';
import { chartHtml, makeChart } from '../../../src/verbs/plot/chart.js';
import type { Chart } from '../../../src/verbs/plot/chart.js';
import type { Bar } from '../../../src/verbs/plot/read-bars.js';
import { timeGrid } from '../../../src/verbs/plot/time-grid.js';
import type { TimeRange } from '../../../src/verbs/plot/time-grid.js';

const HOUR_MS = 3_600_000;
const START = Date.parse('2024-01-01T00:00:00Z');
const HOSTILE = `</script></svg><img src=x onerror="alert(1)"> & 'x' \u0007`;

function barOf(index: number, [open, high, low, close]: readonly [number, number, number, number]): Bar {
  const first = START + index * HOUR_MS;
  return { index, firstMs: first, lastMs: first, open, high, low, close, volume: 0 };
}

const SPAN = { fromMs: START, toMs: START + 24 * HOUR_MS };
const PARTS = { breaks: [], notes: [] } as const;

function chartOf(bars: readonly Bar[], symbol = 'BTCUSDT', notes: readonly string[] = []): Chart {
  return makeChart({
    ...PARTS,
    series: { market: 'um', dataset: 'klines', interval: '1h', symbol },
    columns: { kind: 'candles', hasVolume: true },
    bars,
    grid: timeGrid(SPAN, { most: 170, interval: '1h', dayStartMs: 0 }),
    notes,
  });
}

/** Prices without intervals, so that a step may have several. */
function lineOf(bars: readonly Bar[], breaks: readonly TimeRange[] = []): Chart {
  const column = { name: 'price', type: 'number', doc: '', nullable: false, restOnly: false } as const;
  const series = { market: 'um', dataset: 'trades', symbol: 'BTCUSDT' };
  const columns = { kind: 'line', column } as const;
  return makeChart({
    ...PARTS,
    series,
    columns,
    bars,
    grid: timeGrid(SPAN, { most: 24, interval: '', dayStartMs: 0 }),
    breaks,
  });
}

/** The data for the script of the page. */
function dataOf(chart: Chart): { bars: number[][]; breaks: number[] } {
  const [, , data = ''] = chartHtml(chart);
  return JSON.parse(data) as { bars: number[][]; breaks: number[] };
}

it('hostile text stays text in a page', () => {
  const chart = chartOf([barOf(0, [1, 2, 0.5, 1.5])], HOSTILE, [HOSTILE]);
  const [before = '', open = '', data = ''] = chartHtml(chart);
  expect([before, open].join('')).not.toContain('onerror');
  expect(data).not.toMatch(/[<>&]/);
  expect((JSON.parse(data) as { notes: string[] }).notes).toEqual([HOSTILE]);
});

describe('the steps of a picture', () => {
  const [first, second] = [barOf(0, [1, 4, 0.5, 2]), barOf(3, [2, 3, 1, 2.5])];
  const within = { fromMs: START + HOUR_MS, toMs: START + 3 * HOUR_MS };

  it('of a page are candles at the start of their step, also if its first rows are missing', () => {
    const late = { ...second, firstMs: second.firstMs + 600_000, lastMs: second.firstMs + 900_000 };
    const start = START + 3 * HOUR_MS;
    expect(dataOf(chartOf([late])).bars).toEqual([[start, start + HOUR_MS, 2, 3, 1, 2.5, 0]]);
    expect(dataOf(lineOf([late])).bars[0]?.slice(0, 2)).toEqual([late.firstMs, late.lastMs]);
  });

  it('of a page name the values before which a line is broken', () => {
    expect(dataOf(lineOf([first, second])).breaks).toEqual([]);
    expect(dataOf(lineOf([first, second], [within])).breaks).toEqual([1]);
  });
});
