/** Days of ticks that end hours before midnight, or begin hours after it, where the days around them do not. */
import { parsePeriod } from '../model/calendar.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { Series } from '../model/task.js';

const DAY_MS = 86_400_000;
/** Shorter pauses at a border are common. */
const LONG_MS = 2 * 3600_000;
/** So many rows would be in the empty stretch at the rate of the rest of the day: fewer are missing by chance. */
const EXPECTED_ROWS = 10;
const NEAR_DAYS = 7;
const FEWEST_NEIGHBOURS = 2;
/** The empty stretch of a neighbour is shorter by this factor. */
const SHORTER = 10;

/** Their rows have no grain, and come at all hours. */
const TICKS: ReadonlySet<string> = new Set(['aggTrades', 'trades', 'bookTicker']);

export function hasTicks({ dataset }: Series): boolean {
  return TICKS.has(dataset);
}

/** What is known of the rows of a day. */
export interface DayRows extends Pick<ObjectLine, 'rows' | 'first' | 'last'> {
  readonly day: number;
}

/** Epoch milliseconds `[from, to)` of one day, at its begin or at its end. */
export interface EmptyStretch {
  readonly day: number;
  readonly at: 'begin' | 'end';
  readonly from: number;
  readonly to: number;
}

export function isLongStretch(ms: number): boolean {
  return ms > LONG_MS;
}

/** The long stretches without a row at the borders of a day that has many rows for the rest of it. */
export function longStretches(rows: DayRows): EmptyStretch[] {
  const { rows: count = 0, first = '', last = '' } = rows;
  const spanMs = Date.parse(last) - Date.parse(first);
  const isLong = ({ from, to }: EmptyStretch): boolean =>
    count > 1 && isLongStretch(to - from) && (to - from) * (count - 1) >= EXPECTED_ROWS * spanMs;
  return [stretchAt(rows, 'begin'), stretchAt(rows, 'end')].filter(isLong);
}

/**
 * The stretches that most held days within a week, two at least, do not have. Nothing is told of the begin of the first
 * day, which may be that of the listing, and of the end of the last day of a series that has ended.
 */
export function cutStretches(lines: readonly ObjectLine[], hasEnded: boolean): EmptyStretch[] {
  const days = new Map<number, DayRows>();
  for (const line of lines) {
    const { rows, first, last } = line;
    if (line.cadence !== 'daily' || line.open === true || first === undefined || last === undefined) continue;
    const period = parsePeriod(line.cadence, line.period);
    if (period !== undefined && rows !== undefined)
      days.set(period.from, { day: period.from, rows, first, last });
  }
  const ends = lines.map((line) => parsePeriod(line.cadence, line.period));
  const [start, end] = [ends[0]?.from, ends.at(-1)?.to];
  const isOfSeries = ({ day, at }: EmptyStretch): boolean =>
    at === 'begin' ? day === start : hasEnded && day + 1 === end;
  return [...days.values()]
    .flatMap(longStretches)
    .filter((stretch) => !isOfSeries(stretch) && isUnusual(stretch, days));
}

function isUnusual({ day, at, from, to }: EmptyStretch, days: ReadonlyMap<number, DayRows>): boolean {
  let neighbours = 0;
  let shorter = 0;
  for (let near = day - NEAR_DAYS; near <= day + NEAR_DAYS; near += 1) {
    const rows = near === day ? undefined : days.get(near);
    if (rows === undefined) continue;
    const stretch = stretchAt(rows, at);
    neighbours += 1;
    if ((stretch.to - stretch.from) * SHORTER <= to - from) shorter += 1;
  }
  return neighbours >= FEWEST_NEIGHBOURS && shorter * 2 > neighbours;
}

function stretchAt({ day, first = '', last = '' }: DayRows, at: 'begin' | 'end'): EmptyStretch {
  const start = day * DAY_MS;
  return at === 'begin'
    ? { day, at, from: start, to: Date.parse(first) }
    : { day, at, from: Date.parse(last), to: start + DAY_MS };
}
