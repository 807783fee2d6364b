/** Times without rows at the start, at the end or within a held day. */
import { dayOf, startOfDay, type DayStart } from '../../model/calendar.js';
import { HOUR_MS, DAY_MS } from '../../model/units.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import type { HeldSpan } from '../held-objects.js';

/** Shorter stretches at midnight are common. */
const LONG_MS = 2 * HOUR_MS;

/** At the rate of the rest of the day, a long stretch would have at least this many rows. With fewer, it may be chance. */
const FEWEST_EXPECTED_ROWS = 10;

export interface DayRows extends Pick<ObjectLine, 'rows' | 'first' | 'last'> {
  readonly day: number;
}

/** A time without rows at the start or the end of a day, or within it: epoch milliseconds `[from, to)`. */
export interface EmptyStretch {
  readonly day: number;
  readonly at: 'begin' | 'end' | 'within';
  readonly fromMs: number;
  readonly toMs: number;
  /** Ids are missing at its midnight. Undefined for a stretch that was found by times or by few rows. */
  readonly lacksIds?: true;
}

export const isLongStretch = (ms: number): boolean => ms > LONG_MS;

/** Long stretches without rows at the start and the end of a day that otherwise has many rows. */
export const longStretches = (day: DayRows, dayStart: DayStart): EmptyStretch[] =>
  longOf(timesOf(day.day, day), dayStart);

/** The times of the first and the last row of a day: parsed once, because a lake has hundreds of thousands of days. */
export interface DayTimes {
  readonly day: number;
  readonly rows: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

export function timesOf(day: number, { rows = 0, first = '', last = '' }: Omit<DayRows, 'day'>): DayTimes {
  return { day, rows, firstMs: Date.parse(first), lastMs: Date.parse(last) };
}

/** Of the times before the first and after the last row of a day, those that are long for the rate of its rows. */
export function longOf(times: DayTimes, dayStart: DayStart): EmptyStretch[] {
  const [begin, end] = [stretchAt(times, 'begin', dayStart), stretchAt(times, 'end', dayStart)];
  // Without a division by the mean time between rows, which may be 0.
  const isLong = ({ fromMs, toMs }: EmptyStretch): boolean =>
    times.rows > 1 &&
    isLongStretch(toMs - fromMs) &&
    (toMs - fromMs) * (times.rows - 1) >= FEWEST_EXPECTED_ROWS * (times.lastMs - times.firstMs);
  return [begin, end].filter(isLong);
}

/** The silences of less than a day in an object without ids. Its conversion found them by the rate of its rows. Longer ones are days without rows. */
export function silentStretches(
  { gaps = [], ids }: Pick<ObjectLine, 'gaps' | 'ids'>,
  dayStart: DayStart,
): EmptyStretch[] {
  if (ids !== undefined) return [];
  return gaps.flatMap(([start, until]) => {
    const [fromMs, toMs] = [Date.parse(start), Date.parse(until)];
    const day = dayOf(fromMs, dayStart);
    if (toMs - fromMs >= DAY_MS) return [];
    const inDay = toMs === startOfDay(day + 1, dayStart) ? 'end' : 'within';
    return [{ day, at: fromMs === startOfDay(day, dayStart) ? 'begin' : inDay, fromMs, toMs }];
  });
}

/** The silences of an object with ids, at its start and its end. */
export function silentSides({ facts, from, to }: HeldSpan, dayStart: DayStart): EmptyStretch[] {
  return (facts.ids?.silent ?? [])
    .map((at) => stretchAt(timesOf(at === 'begin' ? from : to - 1, facts), at, dayStart))
    .filter((stretch) => stretch.toMs - stretch.fromMs < DAY_MS);
}

/** The time of a day before its first or after its last row. */
export function stretchAt(
  { day, firstMs, lastMs }: DayTimes,
  at: EmptyStretch['at'],
  dayStart: DayStart,
): EmptyStretch {
  return at === 'begin'
    ? { day, at, fromMs: startOfDay(day, dayStart), toMs: firstMs }
    : { day, at, fromMs: lastMs, toMs: startOfDay(day + 1, dayStart) };
}
