/** Where rows of a regular grain are missing within an object. */
import { dayText } from '../calendar.js';
import { MOST_GAPS } from '../lake/manifest.js';
import type { ArchiveObject, Series } from '../task.js';
import type { DatasetSpec } from '../venue/venue.js';
import { rowSeconds } from '../venue/venue.js';
import { instantOf } from './columns.js';
import type { Conversion } from './conversion.js';
import type { Row, Session } from '../duckdb.js';
import { quoteName } from '../sql.js';

/** Rows that a period must have; undefined where that is not fixed, and for what is not over yet. */
export function expectedRows(
  spec: DatasetSpec,
  { interval }: Series,
  { period, rest }: ArchiveObject,
): number | undefined {
  const seconds = rowSeconds(spec, interval);
  if (seconds === undefined || rest?.open === true) return undefined;
  return ((period.to - period.from) * 86_400) / seconds;
}

/** The missing rows of one object of the relation `rows`, ISO instants `[from, to)`, ascending, the first hundred. */
export async function findGaps(
  session: Session,
  { spec, series }: Conversion,
  { period }: ArchiveObject,
  ordinal: number,
): Promise<(readonly [string, string])[]> {
  const seconds = rowSeconds(spec, series.interval);
  if (seconds === undefined) return [];
  const found = await session.rows(gapsQuery(spec, { ...boundsOf(period), seconds, ordinal }));
  return found.map((row) => [isoInstant(row, 'gap_from'), isoInstant(row, 'gap_to')] as const);
}

interface Bounds {
  readonly from: string;
  readonly to: string;
  readonly seconds: number;
  readonly ordinal: number;
}

/**
 * Labels at the end of their interval (metrics) lie one grain later than the period. Times jitter: half a grain more than
 * expected is a missing row.
 */
function gapsQuery(spec: DatasetSpec, { from, to, seconds, ordinal }: Bounds): string {
  const grain = `INTERVAL ${seconds} SECOND`;
  const half = `INTERVAL ${seconds * 500} MILLISECOND`;
  return `WITH own AS (
      SELECT DISTINCT ${instantOf(spec)} AS instant FROM rows WHERE ${quoteName('.ordinal')} = ${ordinal}
    ), bounds AS (
      SELECT CASE WHEN max(instant) >= TIMESTAMP '${to}' THEN ${grain} ELSE INTERVAL 0 SECOND END AS shift FROM own
    ), points AS (
      SELECT instant, instant + ${grain} AS covered FROM own
      UNION ALL SELECT TIMESTAMP '${from}' + shift - ${grain}, TIMESTAMP '${from}' + shift FROM bounds
      UNION ALL SELECT TIMESTAMP '${to}' + shift, NULL FROM bounds
    )
    SELECT gap_from, gap_to
    FROM (SELECT instant AS gap_to, lag(covered) OVER (ORDER BY instant) AS gap_from FROM points)
    WHERE gap_to >= gap_from + ${half} ORDER BY gap_from LIMIT ${MOST_GAPS}`;
}

function boundsOf({ from, to }: ArchiveObject['period']): { from: string; to: string } {
  return { from: `${dayText(from)} 00:00:00`, to: `${dayText(to)} 00:00:00` };
}

/** `2024-01-01 00:00:00` as DuckDB prints it → ISO. */
export function isoInstant(row: Row, name: string): string {
  return `${String(row[name]).replace(' ', 'T')}Z`;
}
