/** A chart: what every picture of it shows, on a terminal or in a file. */
import type { Series } from '../../model/task.js';
import type { ChartColumns } from './choose-series.js';
import type { Bar } from './read-bars.js';
import type { TimeGrid, TimeRange } from './time-grid.js';
import { amountText, valueText } from './value-scale.js';
import { dataElement, embedded, pageShell } from '../../terminal/page-shell.js';

export interface Chart {
  readonly series: Series;
  readonly kind: 'candles' | 'line';
  /** In the order of their steps; at least one. */
  readonly bars: readonly Bar[];
  readonly grid: TimeGrid;
  /** Whether any bar has a volume. */
  readonly hasVolume: boolean;
  /** `BTCUSDT um klines 1h` */
  readonly title: string;
  /** `2024-01-01 … 2024-01-07 UTC`, `a candle is 3 hours` */
  readonly subtitle: readonly string[];
  /** `last 43,120.1 (+2.31 %)`, `high 44,000`, … */
  readonly figures: readonly string[];
  /** Lines below the picture. */
  readonly notes: readonly string[];
  /** The indices of bars that a line does not join with the one before, because rows are missing between them. */
  readonly breaks: readonly number[];
}

export interface ChartParts extends Pick<Chart, 'series' | 'bars' | 'grid' | 'notes'> {
  readonly columns: ChartColumns;
  /** Times without rows, ascending. */
  readonly breaks: readonly TimeRange[];
}

export function makeChart({ series, columns, bars, grid, breaks, notes }: ChartParts): Chart {
  const { market, dataset, interval, symbol } = series;
  const isCandles = columns.kind === 'candles';
  const column = isCandles ? [] : [columns.column.name];
  const step = isCandles ? [`a candle is ${grid.text}`] : [];
  return {
    series,
    kind: columns.kind,
    bars,
    grid,
    hasVolume: bars.some(({ volume }) => volume > 0),
    title: [symbol, market, dataset, interval, ...column].filter(Boolean).join(' '),
    subtitle: [`${rangeText(bars)} UTC`, ...step],
    figures: figuresOf(bars, isCandles),
    notes,
    breaks: bars.flatMap(({ first }, at) => {
      const last = bars[at - 1]?.last ?? Infinity;
      return breaks.some(({ from, to }) => from < first && to > last) ? [at] : [];
    }),
  };
}

/** `2024-01-01 08:00` */
function minuteText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 16).replace('T', ' ');
}

/** The days of the first and the last row; the times too if both are on one day. */
function rangeText(bars: readonly Bar[]): string {
  const [from, to] = [minuteText(bars[0]?.first ?? 0), minuteText(bars.at(-1)?.last ?? 0)];
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
    ...(volume > 0 ? [`volume ${amountText(volume)}`] : []),
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

export function isUp({ open, close }: Bar): boolean {
  return close >= open;
}

// A chart as a page with its own script, which zooms and shows the values under the pointer.

/** The largest number of steps. The script joins candles that would be narrower than three pixels. */
export const MOST_STEPS = 2000;

export function chartHtml(chart: Chart): string[] {
  const shell = pageShell('plot');
  const data = dataElement('plot');
  return [shell.before, data.before, embedded(chartData(chart)), data.after, shell.after];
}

/** `assets/plot/data.d.ts` has its type for the script. */
function chartData(chart: Chart): object {
  const { kind, title, subtitle, figures, notes, hasVolume, bars, grid, breaks } = chart;
  return {
    kind,
    title,
    subtitle,
    figures,
    notes,
    hasVolume,
    // Candles stand at the start of their step, also where its first row is missing.
    bars: bars.map((bar) => [
      kind === 'candles' ? grid.startOf(bar.at) : bar.first,
      kind === 'candles' ? grid.startOf(bar.at + 1) : bar.last,
      bar.open,
      bar.high,
      bar.low,
      bar.close,
      bar.volume,
    ]),
    breaks,
  };
}
