/** The scale of a value axis, and numbers as text. */

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

const exponentOf = (number: number): number => Math.floor(Math.log10(Math.abs(number)) + 1e-9);

/** The width of a text of the axis. */
export const LONGEST_TEXT = 10;

/** A number with up to `digits` significant digits that fits the axis. */
export function shortText(value: number, digits: number): string {
  const text = textOf(value, digits, 1e7);
  return text.length <= LONGEST_TEXT ? text : textOf(value, Math.min(digits, 5), 1e7);
}

/** A single number: `43,120.1`, `0.00012`, `12.35M`. A price of 100,000 is read more easily in full. */
export const valueText = (value: number): string => textOf(value, 8, 1e7);

/** An amount like a volume, with three significant digits: `921`, `1.32K`. */
export const volumeText = (value: number): string => textOf(value, 3, 1000);

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
