/** How many rows an object of regular times must have, and at which times. */
import type { ArchiveObject, Series } from '../model/task.js';
import type { DatasetSpec } from '../source/venue.js';
import { rowSeconds } from '../source/venue.js';
import type { Row } from './duckdb.js';

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
