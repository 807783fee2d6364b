/** The times of the rows of an object, and the facts that follow from them: gaps, and further rows for the same bar. */
import { REASON_FACTS } from '../model/absence-reasons.js';
import { DAY_MS, parseDay, startOfDay } from '../model/calendar.js';
import { MAX_GAPS } from '../model/outcome.js';
import type { IdFacts } from '../model/outcome.js';
import type { ArchiveObject, Series } from '../model/task.js';
import type { ColumnSpec } from '../exchange/facts.js';
import { rowSeconds } from '../exchange/exchange-spec.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import { LONG_BAR_DAYS } from './columns.js';
import type { Row } from './duckdb.js';

const [NEWLINE, COMMA, ZERO] = [0x0a, 0x2c, 0x30];

/** The times of the rows of one object, in the order of the rows: microseconds since the epoch, each a safe integer. */
export type RowTimes = Float64Array;

/**
 * Reads the first cell of each line from byte `from` on. Undefined if there are not exactly `rows` lines, or if a cell has another form: a
 * column `time` has 13 digits (milliseconds) or 16 digits (microseconds), a column `datetime` has `2024-01-31 23:59:59`.
 */
export function readTimes(
  csv: Buffer,
  { type }: Pick<ColumnSpec, 'type'>,
  { from, rows }: { readonly from: number; readonly rows: number },
): RowTimes | undefined {
  const times = new Float64Array(rows);
  const read = type === 'datetime' ? readDateTime : readEpoch;
  let at = from;
  for (let row = 0; row < rows; row += 1) {
    const time = read(csv, at);
    if (!(time <= Number.MAX_SAFE_INTEGER)) return undefined;
    times[row] = time;
    const end = csv.indexOf(NEWLINE, at);
    at = end < 0 ? csv.length : end + 1;
  }
  return at === csv.length ? times : undefined;
}

/** NaN for anything else than 13 or 16 digits without a leading zero, and a comma. */
function readEpoch(csv: Buffer, from: number): number {
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

/** The places of the signs in `2024-01-31 23:59:59,`. */
const SIGNS = Array.from(Buffer.from('0000-00-00 00:00:00,'), (sign, at) => [at, sign]).filter(
  ([, sign]) => sign !== ZERO,
);

/** NaN for any other form, for dates and times that do not exist, and for years before 2000 or after 2999. */
function readDateTime(csv: Buffer, from: number): number {
  const twoDigits = (at: number): number => {
    const tens = (csv[from + at] ?? 0) - ZERO;
    const ones = (csv[from + at + 1] ?? 0) - ZERO;
    return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
  };
  for (const [at = 0, sign] of SIGNS) if (csv[from + at] !== sign) return Number.NaN;
  const [year, month, day] = [twoDigits(0) * 100 + twoDigits(2), twoDigits(5), twoDigits(8)];
  const [hour, minute, second] = [twoDigits(11), twoDigits(14), twoDigits(17)];
  const midnight = new Date(Date.UTC(year, month - 1, day));
  const isDate = midnight.getUTCMonth() === month - 1 && midnight.getUTCDate() === day;
  if (!isDate || !(year >= 2000 && year <= 2999)) return Number.NaN;
  if (!(hour <= 23 && minute <= 59 && second <= 59)) return Number.NaN;
  return (midnight.getTime() + ((hour * 60 + minute) * 60 + second) * 1000) * 1000;
}

/** The times of the objects of a file, in the order of the file. */
export interface TimeOrder {
  /** The times of each object, ascending. An object whose times ascend strictly keeps its array. */
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
  const ends = { first: instantText(first), last: instantText(last) };
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
  readonly object: ArchiveObject;
}

/** Microseconds `[from, to)` since the epoch. */
interface Bounds {
  readonly fromUs: number;
  readonly toUs: number;
}

function boundsOf({ period }: ArchiveObject, spec: DatasetSpec): Bounds {
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
    gaps.push([instantText(first), instantText(end)]);
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
    if (point >= covered + step / 2) gaps.push([instantText(covered), instantText(Math.min(point, until))]);
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
export function offGridExpression(spec: DatasetSpec, { interval }: Series): string {
  const seconds = rowSeconds(spec, interval);
  return seconds === undefined ? 'false' : `epoch_us(instant) % ${seconds * 1e6} <> 0`;
}

/** Whether an object has so many bars that they must be of a shorter interval. Times off the grid do not prove this: the archive has some. */
export function hasShorterBars(
  spec: DatasetSpec,
  series: Series,
  object: ArchiveObject,
  rows: number,
): boolean {
  const expected = barSeconds(spec, series) === undefined ? undefined : expectedRows(spec, series, object);
  return expected !== undefined && rows > 2 * expected;
}

/** A time in the form of DuckDB, `2024-01-01 00:00:00` → ISO 8601. */
export function isoInstant(row: Row, name: string): string {
  return `${String(row[name]).replace(' ', 'T')}Z`;
}
