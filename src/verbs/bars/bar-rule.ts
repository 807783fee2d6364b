/** Bars of equal length, aligned to multiples since 1970-01-01 UTC; weeks begin on a Monday. */
import { HOUR_MS, MINUTE_MS, DAY_MS } from '../../model/units.js';
import { usage } from '../../model/errors.js';

export type BarRule = Readonly<ReturnType<typeof parseBar>>;

const UNITS: Readonly<Record<string, number>> = { w: 7 * DAY_MS, d: DAY_MS, h: HOUR_MS, m: MINUTE_MS };
/** Monday 1970-01-05. */
const FIRST_MONDAY_MS = 4 * DAY_MS;
/** Each month has the start of a bar of this length, so each month with bars has a file. */
const LONGEST_MS = 28 * DAY_MS;

/** Throws a usage error for a text that is no length. In the largest unit: 60m are 1h. Seven days are no week, because weeks begin on a Monday. */
export function parseBar(text: string) {
  const [, number = '', unit = ''] = /^(\d{1,7})([mhdw])$/.exec(text) ?? [];
  const lengthMs = Number(number) * (UNITS[unit] ?? 0);
  const units = unit === 'w' ? ['w'] : ['d', 'h', 'm'];
  const largest = units.find((one) => lengthMs % (UNITS[one] ?? 1) === 0);
  if (lengthMs === 0 || lengthMs > LONGEST_MS || largest === undefined)
    throw usage(
      `bars: "${text}" is no bar`,
      'a bar is a number with m, h, d or w up to 28d (15m, 7m, 2h, 3d, 1w)',
    );
  // As in the path of the series: `15m`.
  const interval = `${lengthMs / (UNITS[largest] ?? 1)}${largest}`;
  // `originMs`: a start of a bar, in epoch milliseconds.
  return { lengthMs, originMs: unit === 'w' ? FIRST_MONDAY_MS : 0, interval };
}

/** The start of the bar that has this time, in epoch milliseconds. */
export const barStart = ({ lengthMs, originMs }: BarRule, atMs: number): number =>
  Math.floor((atMs - originMs) / lengthMs) * lengthMs + originMs;

/** The first start of a bar at or after this time. */
export const nextStart = (rule: BarRule, atMs: number): number => barStart(rule, atMs + rule.lengthMs - 1);
