/** The times of the rows of objects, read from their CSVs, and the order of these times. */
import type { ColumnSpec } from '../exchange/facts.js';
import { NEWLINE } from '../text/csv.js';

const [COMMA, ZERO] = [0x2c, 0x30];

/** The times of the rows of one object, in the order of the rows: microseconds since the epoch, each a safe integer. */
export type RowTimes = Float64Array;

/**
 * Reads the first cell of each line from `fromByte` on. Undefined if there are not exactly `rows` lines, or if a cell has another form: a
 * column `time` has 13 digits (milliseconds) or 16 digits (microseconds), a column `datetime` has `2024-01-31 23:59:59`.
 */
export function readTimes(
  csv: Buffer,
  { type }: Pick<ColumnSpec, 'type'>,
  { fromByte, rows }: { readonly fromByte: number; readonly rows: number },
): RowTimes | undefined {
  const times = new Float64Array(rows);
  const read = type === 'datetime' ? readDateTime : readEpoch;
  let at = fromByte;
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
function readEpoch(csv: Buffer, fromByte: number): number {
  let value = 0;
  let at = fromByte;
  for (; at < fromByte + 17; at += 1) {
    const digit = (csv[at] ?? 0) - ZERO;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  if (csv[at] !== COMMA || csv[fromByte] === ZERO) return Number.NaN;
  if (at - fromByte === 13) return value * 1000;
  return at - fromByte === 16 ? value : Number.NaN;
}

/** The places of the signs in `2024-01-31 23:59:59,`. */
const SIGNS = Array.from(Buffer.from('0000-00-00 00:00:00,'), (sign, at) => [at, sign]).filter(
  ([, sign]) => sign !== ZERO,
);

/** NaN for any other form, for dates and times that do not exist, and for years before 2000 or after 2999. */
function readDateTime(csv: Buffer, fromByte: number): number {
  const twoDigits = (at: number): number => {
    const tens = (csv[fromByte + at] ?? 0) - ZERO;
    const ones = (csv[fromByte + at + 1] ?? 0) - ZERO;
    return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
  };
  for (const [at = 0, sign] of SIGNS) if (csv[fromByte + at] !== sign) return Number.NaN;
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

export function isAscending(times: RowTimes): boolean {
  for (let row = 1; row < times.length; row += 1)
    if (!((times[row] ?? 0) > (times[row - 1] ?? 0))) return false;
  return true;
}

/** The times of all objects, ascending. */
export function merged(objects: readonly RowTimes[]): RowTimes {
  const all = new Float64Array(objects.reduce((sum, { length }) => sum + length, 0));
  let from = 0;
  for (const times of objects) {
    all.set(times, from);
    from += times.length;
  }
  return all.sort();
}
