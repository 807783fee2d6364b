/** The files of `cryptodl plot`: text of a lake stays text, and equal or single values still give a picture. */
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { describe, expect, it } from 'vitest';
import { makeChart } from '../../src/plot/chart.js';
import type { Chart } from '../../src/plot/chart.js';
import { chartHtml } from '../../src/plot/html.js';
import type { Bar } from '../../src/plot/read-bars.js';
import { chartSvg, SVG_SIZE } from '../../src/plot/svg.js';
import { candleGrid } from '../../src/plot/time-grid.js';

const HOUR_MS = 3_600_000;
const START = Date.parse('2024-01-01T00:00:00Z');
const HOSTILE = `</script></svg><img src=x onerror="alert(1)"> & 'x' \u0007`;

function barOf(at: number, [open, high, low, close]: readonly [number, number, number, number]): Bar {
  const first = START + at * HOUR_MS;
  return { at, first, last: first, open, high, low, close, volume: 0 };
}

function chartOf(bars: readonly Bar[], symbol = 'BTCUSDT', notes: readonly string[] = []): Chart {
  const span = { from: START, to: START + 24 * HOUR_MS };
  return makeChart({
    series: { market: 'um', dataset: 'klines', interval: '1h', symbol },
    columns: { kind: 'candles', hasVolume: true },
    bars,
    grid: candleGrid(span, { most: SVG_SIZE.candles, interval: '1h', dayStartMs: 0 }),
    breaks: [],
    notes,
    dayStartMs: 0,
  });
}

describe('hostile text', () => {
  const chart = chartOf([barOf(0, [1, 2, 0.5, 1.5])], HOSTILE, [HOSTILE]);

  it('stays text in SVG', () => {
    const svg = chartSvg(chart);
    expect(XMLValidator.validate(svg)).toBe(true);
    const parsed = new XMLParser({ ignoreAttributes: false }).parse(svg) as {
      svg: { title: { '#text': string } };
    };
    expect(parsed.svg.title['#text']).toBe(`${HOSTILE.replace('\u0007', '\uFFFD')} um klines 1h`);
    expect(svg).not.toContain('<img');
  });

  it('stays text in a page', () => {
    const [before = '', open = '', data = ''] = chartHtml(chart);
    expect([before, open].join('')).not.toContain('onerror');
    expect(data).not.toMatch(/[<>&]/);
    expect((JSON.parse(data) as { notes: string[] }).notes).toEqual([HOSTILE]);
  });
});

describe('numbers of an SVG', () => {
  it.each<[string, Bar[]]>([
    ['one flat candle', [barOf(3, [5, 5, 5, 5])]],
    ['huge prices', [barOf(0, [1e150, 2e150, 1e149, 1.5e150]), barOf(5, [1, 1, 1, 1])]],
    ['tiny prices', [barOf(0, [1e-12, 2e-12, 1e-13, 1.5e-12])]],
    ['negative prices', [barOf(0, [-1, 1, -3, -2]), barOf(1, [-2, 2, -2, 2])]],
  ])('are finite and within the picture for %s', (_, bars) => {
    const svg = chartSvg(chartOf(bars));
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    const ys = [...svg.matchAll(/[MV][\d.]+ ([\d.-]+)/g)].map(([, y]) => Number(y));
    expect(Math.min(...ys)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...ys)).toBeLessThanOrEqual(540);
  });
});
