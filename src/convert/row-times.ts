/** The times of the rows of an object, and the facts that follow from them: gaps, and further rows for the same bar. */
import { REASON_FACTS } from '../model/absence-reasons.js';
import { DAY_MS, parseDay, startOfDay } from '../model/calendar.js';
import { MAX_GAPS } from '../model/outcome.js';
import type { IdFacts } from '../model/outcome.js';
import type { ArchiveObject, Series } from '../model/task.js';
import type { ColumnSpec } from '../source/facts.js';
import { rowSeconds } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { LONG_BAR_DAYS } from './columns.js';
import type { Row } from './duckdb.js';

const [NEWLINE, COMMA, ZERO] = [0x0a, 0x2c, 0x30];
const [DASH, COLON, SPACE] = [0x2d, 0x3a, 0x20];

/** The times of the rows of one object, in the order of the rows: microseconds since the epoch, each a safe integer. */
export type RowTimes = Float64Array;

/**
 * Reads the times of exactly `rows` rows that begin at byte `from`. Undefined if the number of lines differs, or if a line begins with
 * anything else than digits of a column `time` (13: milliseconds, 16: microseconds) or `2024-01-31 23:59:59` of a column `datetime`,
 * each followed by a comma.
 */
export function readTimes(
  csv: Buffer,
  { type }: Pick<ColumnSpec, 'type'>,
  { from, rows }: { readonly from: number; readonly rows: number },
): RowTimes | undefined {
  const times = new Float64Array(rows);
  const readTime = type === 'datetime' ? new DateTimes() : new Epochs();
  let at = from;
  for (let row = 0; row < rows; row += 1) {
    const time = readTime.at(csv, at);
    if (!(time <= Number.MAX_SAFE_INTEGER)) return undefined;
    times[row] = time;
    const end = csv.indexOf(NEWLINE, at);
    at = end < 0 ? csv.length : end + 1;
  }
  return at === csv.length ? times : undefined;
}

class Epochs {
  /** NaN for anything else than digits and a comma. */
  at(csv: Buffer, from: number): number {
    let value = 0;
    let at = from;
    for (; at < from + 17; at += 1) {
      const digit = (csv[at] ?? 0) - ZERO;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (csv[at] !== COMMA || csv[from] === ZERO) return Number.NaN;
    if (at - from === 13) return value * 1000;
    return at - from === 16 ? value : Number.NaN;
  }
}

class DateTimes {
  // Nearly all rows of an object have the same date.
  #date = 0;
  #dayMs = 0;

  /** NaN for any other form, and for dates and times that do not exist. */
  at(csv: Buffer, from: number): number {
    const two = (at: number): number => {
      const tens = (csv[from + at] ?? 0) - ZERO;
      const ones = (csv[from + at + 1] ?? 0) - ZERO;
      return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
    };
    const isRightForm =
      csv[from + 4] === DASH &&
      csv[from + 7] === DASH &&
      csv[from + 10] === SPACE &&
      csv[from + 13] === COLON &&
      csv[from + 16] === COLON &&
      csv[from + 19] === COMMA;
    if (!isRightForm) return Number.NaN;
    const [hour, minute, second] = [two(11), two(14), two(17)];
    if (!(hour <= 23 && minute <= 59 && second <= 59)) return Number.NaN;
    const dayMs = this.#startOf(two(0) * 100 + two(2), two(5), two(8));
    return (dayMs + ((hour * 60 + minute) * 60 + second) * 1000) * 1000;
  }

  #startOf(year: number, month: number, day: number): number {
    const date = (year * 100 + month) * 100 + day;
    if (date === this.#date) return this.#dayMs;
    if (!(year >= 2000 && year <= 2999)) return Number.NaN;
    const dayMs = Date.UTC(year, month - 1, day);
    const real = new Date(dayMs);
    if (real.getUTCMonth() !== month - 1 || real.getUTCDate() !== day) return Number.NaN;
    this.#date = date;
    this.#dayMs = dayMs;
    return dayMs;
  }
}

/** The times of the objects of a file, in the order of the file. */
export interface TimeOrder {
  /** The times of each object, ascending. */
  readonly sorted: readonly RowTimes[];
  /** Whether each row of the file is later than the one before. */
  readonly isOrdered: boolean;
  /** Whether two rows, of one object or of two, have the same time. */
  readonly hasDuplicates: boolean;
}

export function orderOf(objects: readonly RowTimes[]): TimeOrder {
  const sorted = objects.map((times) => (isAscending(times) ? times : times.toSorted()));
  const areApart = sorted.every(
    (times, index) => index === 0 || (times[0] ?? 0) > (sorted[index - 1]?.at(-1) ?? 0),
  );
  return {
    sorted,
    isOrdered: areApart && sorted.every((times, index) => times === objects[index]),
    hasDuplicates: !(areApart ? sorted.every(isAscending) : isAscending(merged(sorted))),
  };
}

function isAscending(times: RowTimes): boolean {
  for (let row = 1; row < times.length; row += 1)
    if (!((times[row] ?? 0) > (times[row - 1] ?? 0))) return false;
  return true;
}

function merged(objects: readonly RowTimes[]): RowTimes {
  const all = new Float64Array(objects.reduce((sum, { length }) => sum + length, 0));
  let from = 0;
  for (const times of objects) {
    all.set(times, from);
    from += times.length;
  }
  return all.sort();
}

export interface TimeFacts {
  /** ISO 8601. */
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
 * The facts about an object from the sorted times of its rows, without those of exact duplicates. `isOrdered`: the rows of the whole file were
 * ascending before. A row count that is expected, of rows in order and on the grid, is not searched for gaps.
 */
export function timeFacts(
  sorted: RowTimes,
  { spec, series, object, isOrdered, hours = [] }: TimesOf & TimesContext,
): TimeFacts {
  const [first = 0, last = 0] = [sorted[0], sorted.at(-1)];
  const grid = rowSeconds(spec, series.interval);
  const bar = barSeconds(spec, series);
  const expected = expectedRows(spec, series, object);
  const period = boundsOf(object, spec);
  const labels = grid === undefined ? period : labelBounds(sorted, period, grid * 1e6, { spec, object });
  const isIrregular =
    first < labels.from ||
    last >= labels.to ||
    (bar !== undefined && isOffGrid(sorted, bar)) ||
    (!isOrdered &&
      grid !== undefined &&
      (isOffGrid(sorted, grid) || last - first !== (sorted.length - 1) * grid * 1e6 || !isAscending(sorted)));
  const mayHaveGaps = grid !== undefined && (isIrregular || sorted.length < (expected ?? 0));
  const mayHaveExtraBars = bar !== undefined && (isIrregular || sorted.length > (expected ?? sorted.length));
  const ends = { first: instantText(first), last: instantText(last) };
  if (hours.length > 0) return { ...ends, ...scheduleFacts(sorted, hours, { spec, series, object }) };
  return {
    ...ends,
    gaps:
      grid === undefined
        ? gapsOfMonth(sorted, { spec, series, object })
        : mayHaveGaps
          ? gapsBetween(sorted, { from: labels.from - grid * 1e6, to: labels.to }, grid * 1e6)
          : [],
    extraBars: mayHaveExtraBars ? countExtra(sorted, period, bar * 1e6) : 0,
  };
}

interface TimesContext {
  readonly isOrdered: boolean;
  /** The hours of each row since the row before, if the rows have them. `sorted` then has scheduled minutes, each once. */
  readonly hours?: readonly number[];
}

interface TimesOf {
  readonly spec: DatasetSpec;
  readonly series: Series;
  readonly object: ArchiveObject;
}

interface Bounds {
  readonly from: number;
  readonly to: number;
}

function boundsOf({ period }: ArchiveObject, spec: DatasetSpec): Bounds {
  return { from: startOfDay(period.from, spec) * 1000, to: startOfDay(period.to, spec) * 1000 };
}

function isOffGrid(times: RowTimes, seconds: number): boolean {
  const step = seconds * 1e6;
  for (const time of times) if (time % step !== 0) return true;
  return false;
}

function countExtra(sorted: RowTimes, { from, to }: Bounds, step: number): number {
  let bars = 0;
  let last = Number.NaN;
  for (const time of sorted) {
    const bar = Math.floor(time / step);
    if (time >= from && time < to && bar !== last) {
      bars += 1;
      last = bar;
    }
  }
  return sorted.length - bars;
}

/**
 * The times that the labels of a period can have. Where archives label a row with the end of its interval, all are one interval later than the
 * period: the last row tells that, or the first one, if the last ones are missing.
 */
function labelBounds(
  sorted: RowTimes,
  { from, to }: Bounds,
  step: number,
  { spec: { rest }, object: { period } }: Pick<TimesOf, 'spec' | 'object'>,
): Bounds {
  const endsBefore = rest !== undefined && 'joins' in rest ? parseDay(rest.endLabelsBefore ?? '') : undefined;
  const mayBeEnds = endsBefore !== undefined && period.from < endsBefore;
  const shift = mayBeEnds && ((sorted.at(-1) ?? 0) >= to || sorted[0] === from + step) ? step : 0;
  return { from: from + shift, to: to + shift };
}

/**
 * The gaps of a monthly object whose days have no fixed number of rows: bars of several days that are missing, else days without rows. Nothing is
 * missing after the last row of a dataset that has ended.
 */
function gapsOfMonth(
  sorted: RowTimes,
  { spec, series, object }: TimesOf,
): readonly (readonly [string, string])[] {
  if (object.period.cadence !== 'monthly' || object.rest?.open === true) return [];
  const { from, to } = boundsOf(object, spec);
  const barDays = LONG_BAR_DAYS[series.interval ?? ''];
  const step = (barDays ?? 1) * DAY_MS * 1000;
  const dayOf = (time: number): number => from + Math.floor((time - from) / step) * step;
  // A bar of several days may open before its period, but not after it.
  const earliest = barDays === undefined ? from : -Infinity;
  const times = (barDays === undefined ? sorted.map(dayOf) : sorted).filter(
    (time) => time >= earliest && time < to,
  );
  const [first = from, last = from] = [times[0], times.at(-1)];
  // In an object that begins with a bar of the month before, the last bar that closes after the month is in the next object.
  const end = first < from ? to - step : to;
  const isEnd = spec.spans.monthly?.last?.from === object.period.from;
  const bounds = {
    from: first - (Math.floor((first - from) / step) + 1) * step,
    to: last + (isEnd ? 1 : Math.max(1, Math.ceil((end - last) / step))) * step,
  };
  return gapsBetween(times, bounds, step, to);
}

const [MINUTE, HOUR] = [60e6, 3600e6];

/**
 * The gaps of a monthly object with a schedule: a row at t says that the row before it was at t − hours. After the last row, its own interval
 * goes on. A row that must come before the first one, in the
 * object before, is known to its minute.
 */
function scheduleFacts(
  sorted: RowTimes,
  hours: readonly number[],
  { spec, object }: TimesOf,
): Pick<TimeFacts, 'gaps' | 'extraBars' | 'expected' | 'ids'> {
  const { from, to } = boundsOf(object, spec);
  const { rest } = object;
  const isFirst = rest !== undefined && REASON_FACTS[rest.reasonIfEmpty].at === 'start';
  const gaps: [string, string][] = [];
  let expected = sorted.length;
  /** Adds the gap of the rows that are missing in a time before `end`, if any fits in. */
  const addGap = (lacking: number, first: number, end: number): void => {
    if (lacking <= 0) return;
    expected += lacking;
    gaps.push([instantText(first), instantText(end)]);
  };
  const stepOf = (index: number): number => Math.max(1, hours[index] ?? 0) * HOUR;
  const [first = from] = sorted;
  const lackingFirst = isFirst ? 0 : Math.max(0, Math.floor((first - from) / stepOf(0)));
  const firstExpected = first - lackingFirst * stepOf(0);
  addGap(lackingFirst, firstExpected, first);
  let before = first;
  for (const [index, time] of sorted.entries()) {
    const lacking = Math.floor((time - before - MINUTE) / stepOf(index));
    addGap(lacking, time - lacking * stepOf(index), time);
    before = time;
  }
  const step = stepOf(sorted.length - 1);
  addGap(Math.floor((to - MINUTE - before) / step), before + step, to);
  const ids = { first: (firstExpected - stepOf(0)) / MINUTE + 1, last: before / MINUTE };
  const isJudged = rest?.open !== true;
  return { ...(isJudged ? { gaps: longestGaps(gaps), expected } : { gaps: [] }), extraBars: 0, ids };
}

/**
 * Each row covers one step, and both bounds are points. Times vary slightly, so only a distance of one and a half intervals or more counts as a
 * gap. A gap ends at `until` at the latest.
 */
function gapsBetween(
  sorted: RowTimes,
  { from, to }: Bounds,
  step: number,
  until = Infinity,
): readonly (readonly [string, string])[] {
  const points = merged([sorted, Float64Array.of(from, to)]);
  const gaps: [string, string][] = [];
  let covered = Number.NaN;
  for (const point of points) {
    if (point >= covered + step / 2) gaps.push([instantText(covered), instantText(Math.min(point, until))]);
    // No row is expected after the end of the period.
    covered = point === to ? Number.NaN : point + step;
  }
  return longestGaps(gaps);
}

/** At most `MAX_GAPS` of the gaps, in order of time: the longest ones, because daily objects may have the rows of days without rows. */
export function longestGaps<T extends readonly [string, string]>(gaps: readonly T[]): readonly T[] {
  if (gaps.length <= MAX_GAPS) return gaps;
  const lengthOf = ([from, to]: T): number => Date.parse(to) - Date.parse(from);
  const longest = new Set(gaps.toSorted((a, b) => lengthOf(b) - lengthOf(a)).slice(0, MAX_GAPS));
  return gaps.filter((gap) => longest.has(gap));
}

/** An instant as the queries format it: without a fraction, or with its significant digits. */
export function instantText(microseconds: number): string {
  const seconds = Math.floor(microseconds / 1e6);
  const fraction = String(microseconds - seconds * 1e6)
    .padStart(6, '0')
    .replace(/(?<!0)0+$/, '');
  const text = new Date(seconds * 1000).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length);
  return fraction === '' ? `${text}Z` : `${text}.${fraction}Z`;
}

// How many rows an object of regular times must have, and at which times.

/** The number of rows that a period must have; undefined for rows at irregular times, bars longer than a day, and a period that is not over. */
export function expectedRows(
  spec: DatasetSpec,
  { interval }: Series,
  { period, rest }: ArchiveObject,
): number | undefined {
  const seconds = rowSeconds(spec, interval);
  if (seconds === undefined || rest?.open === true) return undefined;
  return ((period.to - period.from) * 86_400) / seconds;
}

/** Length of a bar in seconds; undefined for datasets without bars, and for bars longer than a day, which may open outside their period. */
export function barSeconds(spec: DatasetSpec, { interval }: Series): number | undefined {
  return interval === undefined ? undefined : rowSeconds(spec, interval);
}

/** SQL expression that is true for a row that is not on the time grid of its interval. */
export function offGridExpression(spec: DatasetSpec, series: Series): string {
  const seconds = barSeconds(spec, series);
  return seconds === undefined ? 'false' : `epoch_us(instant) % ${seconds * 1e6} <> 0`;
}

/** Whether an object has so many bars that they must be of a shorter interval. Single bars off the grid occur in the archive. */
export function hasShorterBars(
  spec: DatasetSpec,
  series: Series,
  object: ArchiveObject,
  rows: number,
): boolean {
  const expected = barSeconds(spec, series) === undefined ? undefined : expectedRows(spec, series, object);
  return expected !== undefined && rows > 2 * expected;
}

/** A time as formatted by DuckDB, `2024-01-01 00:00:00` → ISO. */
export function isoInstant(row: Row, name: string): string {
  return `${String(row[name]).replace(' ', 'T')}Z`;
}
