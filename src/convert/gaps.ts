/** For objects with rows at regular times: gaps between the rows, and further rows for the same bar. */
import { startOfDay } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import { MAX_GAPS } from '../lake/manifest.js';
import type { ArchiveObject, Series } from '../model/task.js';
import type { DatasetSpec } from '../source/venue.js';
import { rowSeconds } from '../source/venue.js';
import { instantExpression, writtenColumns } from './columns.js';
import type { Conversion } from './conversion.js';
import type { Row, DuckDbSession } from './duckdb.js';
import { quoteName, timestampLiteral } from './sql.js';

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
  const seconds = interval === undefined ? undefined : rowSeconds(spec, interval);
  return seconds === undefined || seconds > 86_400 ? undefined : seconds;
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

/**
 * The number of extra rows per object, by ordinal: further rows for a bar that has one, and rows outside of the period. Exact duplicates
 * do not count. Objects without extra rows are left out.
 */
export async function countExtraBars(
  session: DuckDbSession,
  { spec, series }: Conversion,
  sought: readonly ObjectPeriod[],
): Promise<ReadonlyMap<number, number>> {
  const seconds = barSeconds(spec, series);
  if (seconds === undefined || sought.length === 0) return new Map();
  const [ordinal, instant] = [quoteName('.ordinal'), instantExpression(spec)];
  const cells = writtenColumns(spec).map(({ name }) => quoteName(name));
  const rows =
    await session.rows(`WITH periods (ord, from_at, to_at) AS (VALUES ${periodValues(sought, spec)})
    SELECT ord, count(*) - count(DISTINCT epoch_us(instant) // ${seconds * 1e6})
        FILTER (instant >= from_at AND instant < to_at) AS extra
    FROM (SELECT DISTINCT ${cells.join(', ')}, ${instant} AS instant, ${ordinal} AS ord FROM rows) JOIN periods USING (ord)
    GROUP BY ord HAVING extra > 0`);
  return new Map(rows.map((row) => [Number(row['ord']), Number(row['extra'])]));
}

/** An object in the relation `rows`, identified by its ordinal. */
export interface ObjectPeriod {
  readonly ordinal: number;
  readonly period: ArchiveObject['period'];
}

/** The gaps of some objects by ordinal: ISO instants `[from, to)`, ascending, at most `MAX_GAPS` of each. */
export async function findGaps(
  session: DuckDbSession,
  { spec, series }: Conversion,
  sought: readonly ObjectPeriod[],
): Promise<Map<number, (readonly [string, string])[]>> {
  const seconds = rowSeconds(spec, series.interval);
  const gaps = new Map<number, (readonly [string, string])[]>();
  if (seconds === undefined || sought.length === 0) return gaps;
  for (const row of await session.rows(gapsQuery(spec, sought, seconds))) {
    const ordinal = Number(row['ord']);
    const gap = [isoInstant(row, 'gap_from'), isoInstant(row, 'gap_to')] as const;
    gaps.set(ordinal, [...(gaps.get(ordinal) ?? []), gap]);
  }
  return gaps;
}

/**
 * Ordinals of objects with irregular times: a regular time between the first and the last row is missing or repeated, or a row is at
 * another time. An object that has the expected number of rows and is not among them has no gap.
 */
export async function findIrregularObjects(
  session: DuckDbSession,
  { spec, series }: Conversion,
): Promise<ReadonlySet<number>> {
  const seconds = rowSeconds(spec, series.interval);
  if (seconds === undefined) return new Set();
  const instant = instantExpression(spec);
  const rows = await session.rows(`SELECT ${quoteName('.ordinal')} AS ord FROM rows GROUP BY ord
    HAVING count(DISTINCT ${instant}) < count(*) OR count_if(epoch_us(${instant}) % ${seconds * 1e6} <> 0) > 0
      OR epoch_us(max(${instant})) - epoch_us(min(${instant})) <> (count(*) - 1) * ${seconds * 1e6}`);
  return new Set(rows.map((row) => Number(row['ord'])));
}

/**
 * If the time of a row is the end of its interval (metrics), all times are one interval later than in the period. Times vary slightly,
 * so only a distance of one and a half intervals or more counts as a gap.
 */
function gapsQuery(spec: DatasetSpec, sought: readonly ObjectPeriod[], seconds: number): string {
  const step = `INTERVAL ${seconds} SECOND`;
  const half = `INTERVAL ${seconds * 500} MILLISECOND`;
  return `WITH periods (ord, from_at, to_at) AS (VALUES ${periodValues(sought, spec)}
    ), own AS (
      SELECT DISTINCT ${quoteName('.ordinal')} AS ord, ${instantExpression(spec)} AS instant FROM rows
    ), bounds AS (
      SELECT ord, from_at, to_at, CASE WHEN max(instant) >= to_at THEN ${step} ELSE INTERVAL 0 SECOND END AS shift
      FROM own JOIN periods USING (ord) GROUP BY ord, from_at, to_at
    ), points AS (
      SELECT ord, instant, instant + ${step} AS covered FROM own SEMI JOIN periods USING (ord)
      UNION ALL SELECT ord, from_at + shift - ${step}, from_at + shift FROM bounds
      UNION ALL SELECT ord, to_at + shift, NULL FROM bounds
    )
    SELECT ord, gap_from, gap_to
    FROM (SELECT ord, instant AS gap_to, lag(covered) OVER (PARTITION BY ord ORDER BY instant) AS gap_from FROM points)
    WHERE gap_to >= gap_from + ${half}
    QUALIFY row_number() OVER (PARTITION BY ord ORDER BY gap_from) <= ${MAX_GAPS}
    ORDER BY ord, gap_from`;
}

function periodValues(sought: readonly ObjectPeriod[], dayStart: DayStart): string {
  const instant = (day: number): string => timestampLiteral(startOfDay(day, dayStart));
  return sought
    .map(({ ordinal, period }) => `(${ordinal}, ${instant(period.from)}, ${instant(period.to)})`)
    .join(', ');
}

/** A time as formatted by DuckDB, `2024-01-01 00:00:00` → ISO. */
export function isoInstant(row: Row, name: string): string {
  return `${String(row[name]).replace(' ', 'T')}Z`;
}
