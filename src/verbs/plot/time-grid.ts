/** Divides a range of time into steps of a chart, and finds the labels of the time axis. Times are epoch milliseconds. */
import { SECOND_MS, HOUR_MS, MINUTE_MS, DAY_MS } from '../../model/units.js';
import { intervalMs } from '../../exchange/exchange-spec.js';

/** Equal steps, or steps of calendar months. */
export type TimeGrid = Readonly<ReturnType<typeof gridOf>>;

interface Step {
  readonly unit: 'ms' | 'months';
  readonly length: number;
  readonly text: string;
}

const STEPS: readonly Step[] = [
  ...stepsOf('second', 'ms', SECOND_MS, [1, 2, 5, 10, 15, 30]),
  ...stepsOf('minute', 'ms', MINUTE_MS, [1, 2, 3, 5, 10, 15, 20, 30]),
  ...stepsOf('hour', 'ms', HOUR_MS, [1, 2, 3, 4, 6, 8, 12]),
  ...stepsOf('day', 'ms', DAY_MS, [1, 2, 3]),
  ...stepsOf('week', 'ms', 7 * DAY_MS, [1, 2]),
  ...stepsOf('month', 'months', 1, [1, 2, 3, 6]),
  ...stepsOf('year', 'months', 12, [1, 2, 5, 10, 100]),
];

function stepsOf(name: string, unit: Step['unit'], length: number, counts: readonly number[]): Step[] {
  return counts.map((count) => ({
    unit,
    length: count * length,
    text: `${count} ${name}${count === 1 ? '' : 's'}`,
  }));
}

/** Times `[from, to)`. */
export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

/** At most `most` steps of a round length for `[from, to)`. A fixed step holds whole rows of `interval`. Days begin `dayStartMs` after 00:00 UTC. */
export function timeGrid(
  range: TimeRange,
  terms: { readonly most: number; readonly interval: string; readonly dayStartMs: number },
): TimeGrid {
  const { most, interval, dayStartMs } = terms;
  const grids = STEPS.filter((step) => holdsWhole(step, interval)).map((step) =>
    gridOf(step, range, dayStartMs),
  );
  const fitting = grids.find(({ count }) => count <= most) ?? grids.at(-1);
  if (fitting === undefined) throw new RangeError('no step holds whole rows');
  return fitting;
}

function holdsWhole({ unit, length }: Step, interval: string): boolean {
  if (unit === 'months') return true;
  if (/^\d+(mo|M)$/.test(interval)) return false;
  const ms = interval === '1w' ? 7 * DAY_MS : intervalMs(interval);
  return Number.isNaN(ms) || length % ms === 0;
}

/** `dayStartMs`: the time from 00:00 UTC to the start of a day of the exchange. */
function gridOf(step: Step, { fromMs, toMs }: TimeRange, dayStartMs: number) {
  const first = numberOf(step, fromMs - dayStartMs);
  return {
    count: numberOf(step, Math.max(fromMs, toMs - 1) - dayStartMs) - first + 1,
    /** The start of a step. For the index `count`, the end of the last step. */
    startOf: (index: number): number => startOf(step, first + index) + dayStartMs,
    /** SQL for the index of the step of a time, which is also given as SQL. */
    indexSql: (time: string): string => `${numberSql(step, `(${time} - ${dayStartMs})`)} - ${first}`,
    /** `3 hours` */
    text: step.text,
    dayStartMs,
  };
}

/** The number of the step that has this time. Steps of a fixed length are counted from 1970, those of months from the year 0. */
function numberOf(step: Step, ms: number): number {
  if (step.unit === 'ms') return Math.floor((ms - originOf(step)) / step.length);
  const date = new Date(ms);
  return Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / step.length);
}

function numberSql(step: Step, ms: string): string {
  if (step.unit === 'ms') return `CAST(floor((${ms} - ${originOf(step)}) / ${step.length}) AS BIGINT)`;
  const date = `epoch_ms(CAST(${ms} AS BIGINT))`;
  return `(year(${date}) * 12 + month(${date}) - 1) // ${step.length}`;
}

function startOf(step: Step, number: number): number {
  if (step.unit === 'ms') return originOf(step) + number * step.length;
  return Date.UTC(1900, number * step.length - 1900 * 12);
}

/** Weeks begin on a Monday, and 1970-01-01 was a Thursday. */
const originOf = ({ length }: Step): number => (length % (7 * DAY_MS) === 0 ? 4 * DAY_MS : 0);

/** A label of the time axis at the start of a step. */
type TimeTick = ReturnType<typeof ticksOf>[number];

/** Labels that do not touch. `stepWidth`: the width of a step in characters. */
export function timeTicks({ count, startOf: of, dayStartMs }: TimeGrid, stepWidth: number): TimeTick[] {
  const starts = Array.from({ length: count }, (_, index) => of(index) - dayStartMs);
  let ticks: TimeTick[] = [];
  for (const step of STEPS) {
    const next = ticksOf(step, starts);
    // No tick of this step is in the range. The labels of the next shorter step stay, without those that touch.
    if (next.length === 0) break;
    ticks = next;
    if (apart(ticks, stepWidth).length === ticks.length) return ticks;
  }
  return apart(ticks, stepWidth);
}

/** A step of the chart may begin after the time that its label names. The first one is labelled only if it begins exactly with a step of the axis. */
function ticksOf(step: Step, starts: readonly number[]) {
  return starts.flatMap((start, index) => {
    const [number, before] = [numberOf(step, start), numberOf(step, starts[index - 1] ?? start - 1)];
    return number === before ? [] : [{ index, text: tickText(step, startOf(step, number)) }];
  });
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The largest unit that begins here: a year, then a month, a day, a time of day. */
function tickText({ unit, length }: Step, start: number): string {
  const date = new Date(start);
  const year = date.getUTCFullYear();
  if (year !== new Date(start - 1).getUTCFullYear()) return String(year);
  const month = MONTHS[date.getUTCMonth()] ?? '';
  if (unit === 'months') return month;
  if (start % DAY_MS === 0) return `${month} ${date.getUTCDate()}`;
  return date.toISOString().slice(11, length < MINUTE_MS ? 19 : 16);
}

/** The ticks without those that touch the one before. */
function apart(ticks: readonly TimeTick[], stepWidth: number): TimeTick[] {
  const kept: TimeTick[] = [];
  for (const tick of ticks) {
    const last = kept.at(-1);
    // A label has two spaces behind it.
    if (last === undefined || (tick.index - last.index) * stepWidth >= last.text.length + 2) kept.push(tick);
  }
  return kept;
}
