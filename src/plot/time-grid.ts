/** Divides a range of time into steps of a chart, and finds the labels of the time axis. Times are epoch milliseconds. */
import { DAY_MS } from '../model/calendar.js';
import { intervalMs } from '../source/venue.js';

/** Equal steps, or steps of calendar months. */
export interface TimeGrid {
  readonly count: number;
  /** The start of a step. For the index `count`, the end of the last step. */
  readonly startOf: (index: number) => number;
  /** SQL for the index of the step of a time, which is also given as SQL. */
  readonly indexSql: (ms: string) => string;
  /** `3 hours`; undefined for the steps of a line, which have no round length. */
  readonly text: string | undefined;
}

type Step = { readonly ms: number } | { readonly months: number };

const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000];

const STEPS: readonly Step[] = [
  ...[1, 2, 5, 10, 15, 30].map((count) => ({ ms: count * SECOND })),
  ...[1, 2, 3, 5, 10, 15, 20, 30].map((count) => ({ ms: count * MINUTE })),
  ...[1, 2, 3, 4, 6, 8, 12].map((count) => ({ ms: count * HOUR })),
  ...[1, 2, 3, 7, 14].map((count) => ({ ms: count * DAY_MS })),
  ...[1, 2, 3, 6, 12, 24, 60, 120].map((months) => ({ months })),
];
const LONGEST: Step = { months: 1200 };

/** Weeks begin on a Monday, and 1970-01-01 was a Thursday. */
const FIRST_MONDAY = 4 * DAY_MS;

/**
 * At most `most` steps of a round length for `[from, to)`. A step holds whole rows of `interval`. The days of the exchange begin
 * `dayStartMs` after 00:00 UTC.
 */
export function candleGrid(
  { from, to }: TimeRange,
  {
    most,
    interval,
    dayStartMs,
  }: { readonly most: number; readonly interval: string; readonly dayStartMs: number },
): TimeGrid {
  const fitting = STEPS.filter((step) => holdsWhole(step, interval))
    .map((step) => gridOf(step, from, to, dayStartMs))
    .find(({ count }) => count <= most);
  return fitting ?? gridOf(LONGEST, from, to, dayStartMs);
}

/** Times `[from, to)`. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** `count` equal steps for the pixels of a line. */
export function lineGrid({ from, to }: TimeRange, count: number): TimeGrid {
  const ms = Math.max(1, to - from) / count;
  return {
    count,
    startOf: (index) => from + index * ms,
    indexSql: (time) =>
      `least(${count - 1}, greatest(0, CAST(floor((${time} - ${from}) / ${ms}) AS BIGINT)))`,
    text: undefined,
  };
}

function holdsWhole(step: Step, interval: string): boolean {
  if (/^\d+mo$|^\d+M$/.test(interval)) return 'months' in step;
  const ms = interval === '1w' ? 7 * DAY_MS : intervalMs(interval);
  if ('months' in step) return true;
  return Number.isNaN(ms) || step.ms % ms === 0;
}

function gridOf(step: Step, from: number, to: number, dayStartMs: number): TimeGrid {
  if ('months' in step) return monthGrid(step.months, from, to, dayStartMs);
  const { ms } = step;
  const origin = dayStartMs + originOf(ms);
  const first = Math.floor((from - origin) / ms);
  const start = origin + first * ms;
  return {
    count: Math.max(1, Math.ceil((to - start) / ms)),
    startOf: (index) => start + index * ms,
    indexSql: (time) => `CAST(floor((${time} - ${start}) / ${ms}) AS BIGINT)`,
    text: stepText(step),
  };
}

function monthGrid(months: number, from: number, to: number, dayStartMs: number): TimeGrid {
  const monthOf = (ms: number): number => {
    const date = new Date(ms - dayStartMs);
    return date.getUTCFullYear() * 12 + date.getUTCMonth();
  };
  const first = Math.floor(monthOf(from) / months);
  return {
    count: Math.floor(monthOf(Math.max(from, to - 1)) / months) - first + 1,
    startOf: (index) => monthStart((first + index) * months) + dayStartMs,
    indexSql: (time) => {
      const date = `epoch_ms(CAST(${time} - ${dayStartMs} AS BIGINT))`;
      return `(year(${date}) * 12 + month(${date}) - 1) // ${months} - ${first}`;
    },
    text: stepText({ months }),
  };
}

function stepText(step: Step): string {
  const units: readonly (readonly [number, string])[] =
    'months' in step
      ? [
          [12, 'year'],
          [1, 'month'],
        ]
      : [
          [7 * DAY_MS, 'week'],
          [DAY_MS, 'day'],
          [HOUR, 'hour'],
          [MINUTE, 'minute'],
          [SECOND, 'second'],
        ];
  const length = 'months' in step ? step.months : step.ms;
  const [size, name] = units.find(([unit]) => length % unit === 0) ?? [1, ''];
  return `${length / size} ${name}${length === size ? '' : 's'}`;
}

/** A label of the time axis at the start of a step. */
export interface TimeTick {
  readonly index: number;
  readonly text: string;
}

/** Labels that do not touch: `stepWidth` is the width of a step, and `textWidth` that of a text with the space behind it. */
export function timeTicks(
  grid: Pick<TimeGrid, 'count' | 'startOf'>,
  {
    stepWidth,
    textWidth,
    dayStartMs,
  }: {
    readonly stepWidth: number;
    readonly textWidth: (text: string) => number;
    readonly dayStartMs: number;
  },
): TimeTick[] {
  const starts = Array.from({ length: grid.count }, (_, index) => grid.startOf(index) - dayStartMs);
  let ticks: TimeTick[] = [];
  for (const step of [...STEPS, LONGEST]) {
    const next = ticksOf(step, starts);
    // A range within one step has no tick of it: its texts of shorter steps are cut to those that fit.
    if (next.length === 0) break;
    ticks = next;
    if (areApart(ticks, stepWidth, textWidth)) return ticks;
  }
  return separated(ticks, stepWidth, textWidth);
}

function ticksOf(step: Step, starts: readonly number[]): TimeTick[] {
  const numbers = starts.map((start) => numberOf(step, start));
  return starts.flatMap((start, index) => {
    // A step of the chart may begin after the time that its label names. The first step is labelled only if it begins exactly with a step of the axis.
    const isNew =
      index === 0 ? numberOf(step, start - 1) !== numbers[0] : numbers[index] !== numbers[index - 1];
    return isNew ? [{ index, text: tickText(step, startOf(step, numbers[index] ?? 0)) }] : [];
  });
}

/** Steps of a fixed length are counted from 1970, months from the year 0. */
function numberOf(step: Step, ms: number): number {
  if ('ms' in step) return Math.floor((ms - originOf(step.ms)) / step.ms);
  const date = new Date(ms);
  return Math.floor((date.getUTCFullYear() * 12 + date.getUTCMonth()) / step.months);
}

function startOf(step: Step, number: number): number {
  if ('ms' in step) return originOf(step.ms) + number * step.ms;
  return monthStart(number * step.months);
}

function originOf(ms: number): number {
  return ms % (7 * DAY_MS) === 0 ? FIRST_MONDAY : 0;
}

/** Months are counted from the year 0. */
function monthStart(month: number): number {
  return Date.UTC(0, month - 1900 * 12);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The largest unit that begins here: a year, then a month, a day, a time of day. */
function tickText(step: Step, start: number): string {
  const date = new Date(start);
  const earlier = new Date(start - 1);
  const month = MONTHS[date.getUTCMonth()] ?? '';
  const isNewYear = date.getUTCFullYear() !== earlier.getUTCFullYear();
  if ('months' in step) return isNewYear || step.months >= 12 ? String(date.getUTCFullYear()) : month;
  if (isNewYear) return String(date.getUTCFullYear());
  const isNewDay = start % DAY_MS === 0;
  if (step.ms >= DAY_MS || isNewDay) return `${month} ${date.getUTCDate()}`;
  return date.toISOString().slice(11, step.ms < MINUTE ? 19 : 16);
}

function areApart(
  ticks: readonly TimeTick[],
  stepWidth: number,
  textWidth: (text: string) => number,
): boolean {
  return ticks.every(({ index }, at) => {
    const last = ticks[at - 1];
    return last === undefined || (index - last.index) * stepWidth >= textWidth(last.text);
  });
}

function separated(
  ticks: readonly TimeTick[],
  stepWidth: number,
  textWidth: (text: string) => number,
): TimeTick[] {
  const kept: TimeTick[] = [];
  for (const tick of ticks) if (areApart([...kept.slice(-1), tick], stepWidth, textWidth)) kept.push(tick);
  return kept;
}
