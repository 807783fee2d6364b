/** A chart: what every picture of it shows, on a terminal or in a file. */
import type { Bar, BarQuery } from './read-bars.js';
import type { TimeRange } from './time-grid.js';
import { instantText } from '../../model/units.js';
import { dataElement, embedded, pageShell } from '../../terminal/page-shell.js';

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
    breaks: bars.flatMap(({ first }, at) => {
      const last = bars[at - 1]?.last ?? Infinity;
      return breaks.some(({ from, to }) => from < first && to > last) ? [at] : [];
    }),
  };
}

/** The days of the first and the last row; the times too if both are on one day. */
function rangeText(bars: readonly Bar[]): string {
  const ends = [bars[0]?.first ?? 0, bars.at(-1)?.last ?? 0];
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
  const { grid, ...shown } = chart;
  // Candles stand at the start of their step, also where its first row is missing.
  const bars = chart.bars.map(({ at, first, last, open, high, low, close, volume }) => {
    const times = chart.kind === 'candles' ? [grid.startOf(at), grid.startOf(at + 1)] : [first, last];
    return [...times, open, high, low, close, volume];
  });
  const shell = pageShell('plot');
  const data = dataElement('plot');
  // `assets/plot/data.d.ts` has the type of the data for the script.
  return [shell.before, data.before, embedded({ ...shown, bars }), data.after, shell.after];
}

/**
 * A scale for values from `low` to `high` with at most `most` ticks: round numbers within the range, ascending, and the text of a tick. Equal
 * values get a range around them.
 */
export function valueScale(low: number, high: number, most: number) {
  const [bottom, top] = spread(low, high);
  let step = niceStep((top - bottom) / Math.max(1, most));
  // A range of n steps may have n + 1 ticks, because both of its ends may be ticks.
  while (ticksOf(bottom, top, step).length > most) step = niceStep(step * 1.01);
  const ticks = ticksOf(bottom, top, step);
  return { low: bottom, high: top, ticks, text: (value: number) => tickText(value, step) };
}

const SMALLEST = 1e-200;

/** Differences below the precision of a number give no ticks, so the range has a least length. */
function spread(low: number, high: number): [number, number] {
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (high - low > Math.max(size * 1e-9, SMALLEST)) return [low, high];
  const half = size <= SMALLEST ? 1 : size * 0.001;
  return [low - half, high + half];
}

function ticksOf(low: number, high: number, step: number): number[] {
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => (first + at) * step);
}

/** The next number of the form 1, 2 or 5 times a power of ten. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5].find((one) => one * power >= least * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** The digits that tell neighbouring ticks apart. */
function tickText(value: number, step: number): string {
  if (Math.abs(value) < step * 1e-6) return '0';
  return shortText(value, 1 + Math.max(0, exponentOf(value) - exponentOf(step)));
}

function exponentOf(number: number): number {
  return Math.floor(Math.log10(Math.abs(number)) + 1e-9);
}

/** The width of a text of the axis. */
export const LONGEST_TEXT = 10;

/** A number with up to `digits` significant digits that fits the axis. */
export function shortText(value: number, digits: number): string {
  const text = textOf(value, digits, 1e7);
  return text.length <= LONGEST_TEXT ? text : textOf(value, Math.min(digits, 5), 1e7);
}

/** A single number: `43,120.1`, `0.00012`, `12.35M`. A price of 100,000 is read more easily in full. */
export function valueText(value: number): string {
  return textOf(value, 8, 1e7);
}

/** An amount like a volume, with three significant digits: `921`, `1.32K`. */
export function amountText(value: number): string {
  return textOf(value, 3, 1000);
}

/** Numbers from `withUnit` on have a unit and at most four digits. Very large or small ones have an exponent and at most five digits. */
function textOf(value: number, digits: number, withUnit: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-6))
    return Number(value.toPrecision(Math.min(digits, 5)))
      .toExponential()
      .replace('e+', 'e');
  return value.toLocaleString('en', {
    notation: size >= withUnit ? 'compact' : 'standard',
    maximumSignificantDigits: size >= withUnit ? Math.min(digits, 4) : Math.min(digits, 21),
  });
}
