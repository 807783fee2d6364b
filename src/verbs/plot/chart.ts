/** A chart: what every picture of it shows, on a terminal or in a file. */
import { instantText } from '../../model/units.js';
import { dataElement, embedded, pageShell } from '../../terminal/page-shell.js';
import type { Bar, BarQuery } from './read-bars.js';
import type { TimeRange } from './time-grid.js';
import { volumeText, valueText } from './value-scale.js';

export interface ChartParts extends Pick<BarQuery, 'series' | 'columns' | 'grid'> {
  /** In the order of their steps; at least one. */
  readonly bars: readonly Bar[];
  /** Times without rows, ascending. */
  readonly breaks: readonly TimeRange[];
  /** Lines below the picture. */
  readonly notes: readonly string[];
}

export type Chart = Readonly<ReturnType<typeof makeChart>>;

export function makeChart({ series, columns, bars, grid, breaks, notes }: ChartParts) {
  const { market, dataset, interval, symbol } = series;
  const isCandles = columns.kind === 'candles';
  const column = isCandles ? undefined : columns.column.name;
  return {
    kind: columns.kind,
    /** `BTCUSDT um klines 1h` */
    title: [symbol, market, dataset, interval, column].filter(Boolean).join(' '),
    /** `2024-01-01 … 2024-01-07 UTC`, `a candle is 3 hours` */
    subtitle: [`${rangeText(bars)} UTC`, ...(isCandles ? [`a candle is ${grid.text}`] : [])],
    /** `last 43,120.1 (+2.31 %)`, `high 44,000`, … */
    figures: figuresOf(bars, isCandles),
    notes,
    hasVolume: bars.some(({ volume }) => volume > 0),
    bars,
    grid,
    /** The indices of bars that a line does not join with the one before, because rows are missing between them. */
    breaks: bars.flatMap(({ firstMs }, at) => {
      const beforeMs = bars[at - 1]?.lastMs ?? Infinity;
      return breaks.some(({ fromMs, toMs }) => fromMs < firstMs && toMs > beforeMs) ? [at] : [];
    }),
  };
}

/** The days of the first and the last row; the times too if both are on one day. */
function rangeText(bars: readonly Bar[]): string {
  const ends = [bars[0]?.firstMs ?? 0, bars.at(-1)?.lastMs ?? 0];
  const [from = '', to = ''] = ends.map((ms) => instantText(ms).slice(0, 16));
  const [first, last] = [from.slice(0, 10), to.slice(0, 10)];
  if (first !== last) return `${first} … ${last}`;
  return from === to ? from : `${from} … ${to.slice(11)}`;
}

function figuresOf(bars: readonly Bar[], isCandles: boolean): string[] {
  const { low, high } = extremes(bars);
  const [first, last] = [bars[0]?.open ?? 0, bars.at(-1)?.close ?? 0];
  const volume = bars.reduce((sum, bar) => sum + bar.volume, 0);
  const change = isCandles && first > 0 ? ` (${changeText(last / first - 1)})` : '';
  return [
    `last ${valueText(last)}${change}`,
    `high ${valueText(high)}`,
    `low ${valueText(low)}`,
    ...(volume > 0 ? [`volume ${volumeText(volume)}`] : []),
  ];
}

/** `+2.31 %`, from the first to the last price. */
function changeText(share: number): string {
  const percent = (share * 100).toFixed(2);
  return `${share > 0 ? '+' : ''}${percent === '-0.00' ? '0.00' : percent} %`;
}

export function extremes(bars: readonly Bar[]): { readonly low: number; readonly high: number } {
  return { low: Math.min(...bars.map(({ low }) => low)), high: Math.max(...bars.map(({ high }) => high)) };
}

export const isUp = ({ open, close }: Bar): boolean => close >= open;

/** The largest number of steps. The script joins candles that would be narrower than three pixels. */
export const MOST_STEPS = 2000;

export function chartHtml(chart: Chart): string[] {
  const { grid, ...shown } = chart;
  // Candles stand at the start of their step, also where its first row is missing.
  const bars = chart.bars.map(({ index, firstMs, lastMs, open, high, low, close, volume }) => {
    const times =
      chart.kind === 'candles' ? [grid.startOf(index), grid.startOf(index + 1)] : [firstMs, lastMs];
    return [...times, open, high, low, close, volume];
  });
  const shell = pageShell('plot');
  const data = dataElement('plot');
  // `assets/plot/data.d.ts` has the type of the data for the script.
  return [shell.before, data.before, embedded({ ...shown, bars }), data.after, shell.after];
}
