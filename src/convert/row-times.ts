/** The facts that follow from the times of the rows of an object: gaps, and further rows for the same bar. */
import { REASON_FACTS } from '../model/absence-reasons.js';
import { parseDay, startOfDay } from '../model/calendar.js';
import { DAY_MS } from '../model/units.js';
import { MAX_GAPS, type IdFacts } from '../model/outcome.js';
import type { SourceObject, Series } from '../model/task.js';
import { rowSeconds, type DatasetSpec } from '../exchange/exchange-spec.js';
import { LONG_BAR_DAYS, barSeconds, expectedRows } from './expected-rows.js';
import type { ResultRow } from './duckdb.js';
import { isAscending, merged, type RowTimes } from './read-times.js';

export interface TimeFacts {
  /** The times of the first and the last row, ISO 8601. */
  readonly first: string;
  readonly last: string;
  /** ISO instants `[from, to)`, ascending, at most `MAX_GAPS`. */
  readonly gaps: readonly (readonly [string, string])[];
  /** Rows after the first of their bar, and rows outside of the period. */
  readonly extraBars: number;
  /** The rows that the object must have by the schedule of its own rows. */
  readonly expected?: number;
  /** For scheduled rows, minutes since 1970 in place of ids, see `IdFacts`. */
  readonly ids?: IdFacts;
}

/**
 * The facts about an object from the sorted times of its rows, without exact duplicates. `hours`: for rows of a schedule, the hours since the row
 * before; the times are then those of the schedule, each once. Rows on their grid, each once, within the period and as many as expected lack none.
 */
export function timeFacts(
  sorted: RowTimes,
  { spec, series, object, hours = [] }: TimedObject & { readonly hours?: readonly number[] },
): TimeFacts {
  const [first = 0, last = 0] = [sorted[0], sorted.at(-1)];
  const ends = { first: instantOfUs(first), last: instantOfUs(last) };
  if (hours.length > 0) return { ...ends, ...scheduleFacts(sorted, hours, { spec, series, object }) };
  const grid = rowSeconds(spec, series.interval);
  const bar = barSeconds(spec, series);
  const expected = expectedRows(spec, series, object);
  const period = boundsOf(object, spec);
  const labels = grid === undefined ? period : labelBounds(sorted, period, grid * 1e6, { spec, object });
  const isIrregular =
    first < labels.fromUs ||
    last >= labels.toUs ||
    (grid !== undefined && (isOffGrid(sorted, grid) || !isAscending(sorted)));
  const mayHaveGaps = grid !== undefined && (isIrregular || sorted.length < (expected ?? 0));
  const mayHaveExtraBars = bar !== undefined && (isIrregular || sorted.length > (expected ?? sorted.length));
  return {
    ...ends,
    gaps:
      grid === undefined
        ? gapsOfMonth(sorted, { spec, series, object })
        : mayHaveGaps
          ? gapsBetween(sorted, { fromUs: labels.fromUs - grid * 1e6, toUs: labels.toUs }, grid * 1e6)
          : [],
    extraBars: mayHaveExtraBars ? countExtra(sorted, period, bar * 1e6) : 0,
  };
}

interface TimedObject {
  readonly spec: DatasetSpec;
  readonly series: Series;
  readonly object: SourceObject;
}

/** Microseconds `[from, to)` since the epoch. */
interface Bounds {
  readonly fromUs: number;
  readonly toUs: number;
}

function boundsOf({ period }: SourceObject, spec: DatasetSpec): Bounds {
  return { fromUs: startOfDay(period.from, spec) * 1000, toUs: startOfDay(period.to, spec) * 1000 };
}

function isOffGrid(times: RowTimes, seconds: number): boolean {
  const step = seconds * 1e6;
  for (const time of times) if (time % step !== 0) return true;
  return false;
}

function countExtra(sorted: RowTimes, { fromUs, toUs }: Bounds, step: number): number {
  let bars = 0;
  let last = Number.NaN;
  for (const time of sorted) {
    const bar = Math.floor(time / step);
    if (time >= fromUs && time < toUs && bar !== last) {
      bars += 1;
      last = bar;
    }
  }
  return sorted.length - bars;
}

/**
 * The bounds of the times in the rows of a period. In archives that label a row with the end of its interval, all times are one interval
 * later: the last row tells this, or the first row if the last rows are missing.
 */
function labelBounds(
  sorted: RowTimes,
  { fromUs, toUs }: Bounds,
  step: number,
  { spec: { rest }, object: { period } }: Pick<TimedObject, 'spec' | 'object'>,
): Bounds {
  const endsBefore = rest !== undefined && 'joins' in rest ? parseDay(rest.endLabelsBefore ?? '') : undefined;
  const mayBeEnds = endsBefore !== undefined && period.from < endsBefore;
  const [first = 0, last = 0] = [sorted[0], sorted.at(-1)];
  const areEnds = last >= toUs - step / 2 || Math.abs(first - fromUs - step) < step / 2;
  const shift = mayBeEnds && areEnds ? step : 0;
  return { fromUs: fromUs + shift, toUs: toUs + shift };
}

/**
 * The gaps of a monthly object whose days have no fixed number of rows: missing bars of several days, else days without rows. No row is
 * missing after the last row of a dataset that has ended.
 */
function gapsOfMonth(
  sorted: RowTimes,
  { spec, series, object }: TimedObject,
): readonly (readonly [string, string])[] {
  if (object.period.cadence !== 'monthly' || object.rest?.open === true) return [];
  const { fromUs, toUs } = boundsOf(object, spec);
  const barDays = LONG_BAR_DAYS[series.interval ?? ''];
  const step = (barDays ?? 1) * DAY_MS * 1000;
  const startOfDayOf = (time: number): number => fromUs + Math.floor((time - fromUs) / step) * step;
  // A bar of several days may open before its period, but not after it.
  const earliest = barDays === undefined ? fromUs : -Infinity;
  const times = (barDays === undefined ? sorted.map(startOfDayOf) : sorted).filter(
    (time) => time >= earliest && time < toUs,
  );
  const [first = fromUs, last = fromUs] = [times[0], times.at(-1)];
  // In an object that begins with a bar of the month before, the last bar that closes after the month is in the next object.
  const end = first < fromUs ? toUs - step : toUs;
  const isLastMonth = spec.spans.monthly?.last?.from === object.period.from;
  const bounds = {
    fromUs: first - (Math.floor((first - fromUs) / step) + 1) * step,
    toUs: last + (isLastMonth ? 1 : Math.max(1, Math.ceil((end - last) / step))) * step,
  };
  return gapsBetween(times, bounds, step, toUs);
}

/** Microseconds. */
const [MINUTE, HOUR] = [60e6, 3600e6];

/**
 * The facts about a monthly object with a schedule: a row at t says that the row before it is at t − hours. After the last row, its
 * interval goes on. `ids.first` is one minute after the row that must be the last one of the object before.
 */
function scheduleFacts(
  sorted: RowTimes,
  hours: readonly number[],
  { spec, object }: TimedObject,
): Pick<TimeFacts, 'gaps' | 'extraBars' | 'expected' | 'ids'> {
  const { fromUs, toUs } = boundsOf(object, spec);
  const { rest } = object;
  const isFirst = rest !== undefined && REASON_FACTS[rest.reasonIfEmpty].at === 'start';
  const gaps: [string, string][] = [];
  let expected = sorted.length;
  /** Adds a gap of `lacking` rows: from the time of the first of them to `end`. */
  const addGap = (lacking: number, first: number, end: number): void => {
    if (lacking <= 0) return;
    expected += lacking;
    gaps.push([instantOfUs(first), instantOfUs(end)]);
  };
  const stepOf = (index: number): number => Math.max(1, hours[index] ?? 0) * HOUR;
  const [first = fromUs] = sorted;
  const lackingFirst = isFirst ? 0 : Math.max(0, Math.floor((first - fromUs) / stepOf(0)));
  const firstExpected = first - lackingFirst * stepOf(0);
  addGap(lackingFirst, firstExpected, first);
  let previous = first;
  for (const [index, time] of sorted.entries()) {
    const lacking = Math.floor((time - previous - MINUTE) / stepOf(index));
    addGap(lacking, time - lacking * stepOf(index), time);
    previous = time;
  }
  const step = stepOf(sorted.length - 1);
  addGap(Math.floor((toUs - MINUTE - previous) / step), previous + step, toUs);
  const ids = { first: (firstExpected - stepOf(0)) / MINUTE + 1, last: previous / MINUTE };
  const isJudged = rest?.open !== true;
  return { ...(isJudged ? { gaps: longestGaps(gaps), expected } : { gaps: [] }), extraBars: 0, ids };
}

/**
 * The times that no row covers. Each row covers one step, and `from` counts as a row. Times vary slightly, so only a distance of one and a
 * half steps or more is a gap. A gap ends at `until` at the latest.
 */
function gapsBetween(
  sorted: RowTimes,
  { fromUs, toUs }: Bounds,
  step: number,
  until = Infinity,
): readonly (readonly [string, string])[] {
  const points = merged([sorted, Float64Array.of(fromUs, toUs)]);
  const gaps: [string, string][] = [];
  let covered = Number.NaN;
  for (const point of points) {
    if (point >= covered + step / 2) gaps.push([instantOfUs(covered), instantOfUs(Math.min(point, until))]);
    // No row is expected after the end of the period.
    covered = point === toUs ? Number.NaN : point + step;
  }
  return longestGaps(gaps);
}

/** The longest `MAX_GAPS` gaps, in order of time. Daily objects may have the rows of whole days, so those gaps matter most. */
export function longestGaps<T extends readonly [string, string]>(gaps: readonly T[]): readonly T[] {
  if (gaps.length <= MAX_GAPS) return gaps;
  const lengthOf = ([from, to]: T): number => Date.parse(to) - Date.parse(from);
  const longest = new Set(gaps.toSorted((a, b) => lengthOf(b) - lengthOf(a)).slice(0, MAX_GAPS));
  return gaps.filter((gap) => longest.has(gap));
}

/** An instant in the form of the queries: without a fraction, or with the significant digits of it. */
export function instantOfUs(microseconds: number): string {
  const seconds = Math.floor(microseconds / 1e6);
  const fraction = String(microseconds - seconds * 1e6)
    .padStart(6, '0')
    .replace(/(?<!0)0+$/, '');
  const text = new Date(seconds * 1000).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length);
  return fraction === '' ? `${text}Z` : `${text}.${fraction}Z`;
}

/** A time in the form of DuckDB, `2024-01-01 00:00:00` → ISO 8601. */
export const isoInstant = (row: ResultRow, name: string): string => `${String(row[name]).replace(' ', 'T')}Z`;
