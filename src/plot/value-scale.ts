/** The value axis of a chart: its range, its round numbers, and numbers as short text. */
import { numberText } from '../model/units.js';

export interface ValueScale {
  readonly low: number;
  readonly high: number;
  /** Round numbers within the range, ascending. */
  readonly ticks: readonly number[];
  /** The text of a tick. */
  readonly text: (value: number) => string;
}

/** A scale for values from `low` to `high` with at most `most` ticks. Equal values get a range around them. */
export function valueScale(low: number, high: number, most: number): ValueScale {
  const [bottom, top] = spread(low, high);
  let step = niceStep((top - bottom) / Math.max(1, most));
  // Rounding outward may give one tick more than asked for.
  while (ticksOf(bottom, top, step).length > most) step = niceStep(step * 1.01);
  return {
    low: bottom,
    high: top,
    ticks: ticksOf(bottom, top, step),
    text: (value) => tickText(value, step, Math.max(Math.abs(bottom), Math.abs(top))),
  };
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

const UNITS: readonly (readonly [number, string])[] = [
  [1e12, 'T'],
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'k'],
];
/** Numbers from here on have a unit. A price of 100,000 is read more easily in full. */
const WITH_UNIT = 1e7;
const LARGEST = 1e15;
/** The width of a text of the axis. */
export const LONGEST_TEXT = 10;

function tickText(value: number, step: number, size: number): string {
  if (Math.abs(value) < step * 1e-6) return '0';
  if (size >= LARGEST || step < 1e-8)
    return value.toExponential(digitsBetween(value, step)).replace('e+', 'e');
  const [unit, name] = size >= WITH_UNIT ? unitOf(size) : [1, ''];
  const text = grouped((value / unit).toFixed(decimalsOf(step / unit))) + name;
  return text.length <= LONGEST_TEXT ? text : value.toPrecision(4);
}

/** The power of ten of the leading digit. */
function exponentOf(number: number): number {
  return Math.floor(Math.log10(Math.abs(number)) + 1e-9);
}

/** Decimals after the leading digit that tell neighbouring ticks apart. */
function digitsBetween(value: number, step: number): number {
  return Math.min(4, Math.max(0, exponentOf(value) - exponentOf(step)));
}

function unitOf(size: number): readonly [number, string] {
  return UNITS.find(([unit]) => size >= unit) ?? [1, ''];
}

function decimalsOf(step: number): number {
  return Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9)));
}

/** A single number with up to eight significant digits: `43,120.1`, `0.00012`, `12.35M`. */
export function valueText(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= LARGEST || size < 1e-6) return shortExponent(value);
  if (size >= WITH_UNIT) {
    const [unit, name] = unitOf(size);
    return `${Number((value / unit).toPrecision(4))}${name}`;
  }
  const decimals = Math.max(0, 8 - Math.max(1, Math.floor(Math.log10(size)) + 1));
  const text = value.toFixed(Math.min(12, decimals));
  return grouped(text.includes('.') ? text.replace(/(?:\.|(?<![.0]))0+$/, '') : text);
}

function shortExponent(value: number): string {
  return Number(value.toPrecision(4)).toExponential().replace('e+', 'e');
}

/** An amount like a volume, with three significant digits or a unit. */
export function amountText(value: number): string {
  if (Math.abs(value) >= LARGEST) return shortExponent(value);
  if (Math.abs(value) < 1000) return String(Number(value.toPrecision(4)));
  const [unit, name] = unitOf(Math.abs(value));
  return `${Number((value / unit).toPrecision(3))}${name}`;
}

function grouped(text: string): string {
  const [whole = '', ...rest] = text.split('.');
  return [numberText(whole), ...rest].join('.');
}
