/** Finds days of tick data without rows for hours after or before midnight, although most days around them have rows there. */
import { startOfDay } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { HeldSpan } from '../lake/held-objects.js';
import type { Series } from '../model/task.js';

/** Shorter pauses at midnight are common. */
const LONG_MS = 2 * 3600_000;
/** At the rate of the rest of the day, the stretch would have at least this many rows. With fewer, the pause may be chance. */
const EXPECTED_ROWS = 10;
const NEAR_DAYS = 7;
const FEWEST_NEIGHBOURS = 2;
/** A near day counts as shorter if this many times the length of its stretch is at most the length of the long stretch. */
const LONG_TO_SHORT = 10;

const TICKS: ReadonlySet<string> = new Set(['aggTrades', 'trades', 'bookTicker']);

/** True for datasets with rows at irregular times, at all hours of the day. */
export function hasTicks({ dataset }: Series): boolean {
  return TICKS.has(dataset);
}

/** Number, first and last time of the rows of a day. */
export interface DayRows extends Pick<ObjectLine, 'rows' | 'first' | 'last'> {
  readonly day: number;
}

/** Epoch milliseconds `[from, to)` without rows, at the start or the end of a day. */
export interface EmptyStretch {
  readonly day: number;
  readonly at: 'begin' | 'end';
  readonly from: number;
  readonly to: number;
  /** The number of ids that are missing at its midnight. Undefined if only the length of the stretch tells that rows are missing. */
  readonly ids?: number;
}

/** Whether a pause at midnight is longer than two hours. */
export function isLongStretch(ms: number): boolean {
  return ms > LONG_MS;
}

/** Long stretches without rows at the start and the end of a day that otherwise has many rows. */
export function longStretches(day: DayRows, dayStart: DayStart): EmptyStretch[] {
  return longOf(timesOf(day.day, day), day.rows ?? 0, dayStart);
}

/** The first and the last row of a day, in epoch milliseconds. Texts are read once: a lake has hundreds of thousands of days. */
interface DayTimes {
  readonly day: number;
  readonly first: number;
  readonly last: number;
}

function timesOf(day: number, { first = '', last = '' }: Pick<ObjectLine, 'first' | 'last'>): DayTimes {
  return { day, first: Date.parse(first), last: Date.parse(last) };
}

function longOf(times: DayTimes, rows: number, dayStart: DayStart): EmptyStretch[] {
  const [begin, end] = [stretchAt(times, 'begin', dayStart), stretchAt(times, 'end', dayStart)];
  const isLong = ({ from, to }: EmptyStretch): boolean =>
    rows > 1 &&
    isLongStretch(to - from) &&
    (to - from) * (rows - 1) >= EXPECTED_ROWS * (times.last - times.first);
  return [begin, end].filter(isLong);
}

/**
 * Long stretches that are unusual: on most held days among the 7 days before and the 7 days after, and on at least two, the same stretch
 * is at most a tenth as long.
 * Leaves out the start of the first day, because the symbol may have been listed during that day, and stretches next to a day on which
 * the symbol is proven not to trade (`isIdle`).
 */
export function cutStretches(
  held: readonly HeldSpan[],
  isIdle: (day: number) => boolean,
  dayStart: DayStart,
): EmptyStretch[] {
  const days = new Map<number, DayTimes>();
  const long: EmptyStretch[] = [];
  for (const { facts, from: day } of held) {
    const { cadence, open, rows, first, last } = facts;
    if (cadence !== 'daily' || open === true || first === undefined || last === undefined) continue;
    if (rows === undefined) continue;
    const times = timesOf(day, facts);
    days.set(day, times);
    long.push(...longOf(times, rows, dayStart));
  }
  const start = held[0]?.from;
  const isSeriesEdge = ({ day, at }: EmptyStretch): boolean =>
    at === 'begin' ? day === start || isIdle(day - 1) : isIdle(day + 1);
  const { missing, proven } = seamsOf(held, dayStart);
  const unusual = long.filter(
    (stretch) =>
      !proven.has(midnightOf(stretch)) && !isSeriesEdge(stretch) && isUnusual(stretch, days, dayStart),
  );
  return [...missing, ...unusual].sort((a, b) => a.from - b.from);
}

/** The day that begins at the midnight of a stretch. */
function midnightOf({ day, at }: EmptyStretch): number {
  return at === 'begin' ? day : day + 1;
}

/**
 * Compares the last id of each object with the first id of the next one: `missing` has the longer stretch of each midnight at which ids are
 * missing, or both if both are long. `proven`: the midnights at which ids decide, so that a silence is none of trades that are missing. Ids that begin anew prove nothing.
 */
function seamsOf(
  held: readonly HeldSpan[],
  dayStart: DayStart,
): { readonly missing: EmptyStretch[]; readonly proven: ReadonlySet<number> } {
  const missing: EmptyStretch[] = [];
  const proven = new Set<number>();
  for (const [index, { facts: line, from: day }] of held.entries()) {
    const before = held[index - 1];
    const [last, first] = [before?.facts.ids?.last, line.ids?.first];
    if (before?.to !== day || before.facts.open === true || last === undefined || first === undefined)
      continue;
    const ids = first - last - 1;
    if (ids < 0) continue;
    proven.add(day);
    if (ids === 0 || endsWithGap(before, dayStart)) continue;
    const tail = stretchAt(timesOf(day - 1, before.facts), 'end', dayStart);
    const head = stretchAt(timesOf(day, line), 'begin', dayStart);
    const longer = head.to - head.from > tail.to - tail.from ? head : tail;
    const long = [tail, head].filter(({ from, to }) => isLongStretch(to - from));
    for (const stretch of long.length > 1 ? long : [longer])
      missing.push({ ...stretch, to: Math.max(stretch.to, stretch.from + 1), ids });
  }
  return { missing, proven };
}

/** Whether the missing rows before the end of an object are a gap of it already. */
function endsWithGap({ facts, to }: HeldSpan, dayStart: DayStart): boolean {
  const [, end = ''] = facts.gaps?.at(-1) ?? [];
  return Date.parse(end) >= startOfDay(to, dayStart);
}

/** Whether the next object proves that no row is missing at the end of an object with scheduled rows, which its own schedule does not tell. */
export function isProvenWhole({ facts, to }: HeldSpan, next: HeldSpan | undefined): boolean {
  const [last, first] = [facts.ids?.last, next?.facts.ids?.first];
  return next?.from === to && last !== undefined && first === last + 1;
}

function isUnusual(
  { day, at, from, to }: EmptyStretch,
  days: ReadonlyMap<number, DayTimes>,
  dayStart: DayStart,
): boolean {
  let neighbours = 0;
  let shorter = 0;
  for (let near = day - NEAR_DAYS; near <= day + NEAR_DAYS; near += 1) {
    const times = near === day ? undefined : days.get(near);
    if (times === undefined) continue;
    const stretch = stretchAt(times, at, dayStart);
    neighbours += 1;
    if ((stretch.to - stretch.from) * LONG_TO_SHORT <= to - from) shorter += 1;
  }
  return neighbours >= FEWEST_NEIGHBOURS && shorter * 2 > neighbours;
}

function stretchAt({ day, first, last }: DayTimes, at: 'begin' | 'end', dayStart: DayStart): EmptyStretch {
  return at === 'begin'
    ? { day, at, from: startOfDay(day, dayStart), to: first }
    : { day, at, from: last, to: startOfDay(day + 1, dayStart) };
}
