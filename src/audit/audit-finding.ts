/** The findings of an audit as data, and their texts. */
import type { Series } from '../model/task.js';
import { durationText, listText, numberText } from '../model/units.js';

/**
 * - `short-month`: the monthly object has no rows of days whose daily objects have rows, or of days between its first and last row.
 * - `rows-missing`: rows that only the daily objects have. `rows-extra`: rows that only the monthly object has.
 * - `rows-differ`: rows with the same key and different values.
 * - `labels-shift`: the same rows with times one interval later or earlier.
 * - `ids-disordered`, `ids-missing`, `ids-conflicting` (one id with different values): ids of trades.
 */
type AuditFindingKind =
  | 'short-month'
  | 'rows-missing'
  | 'rows-extra'
  | 'rows-differ'
  | 'labels-shift'
  | 'ids-disordered'
  | 'ids-missing'
  | 'ids-conflicting';

export interface AuditFinding {
  readonly kind: AuditFindingKind;
  /** Key of the affected object. */
  readonly key: string;
  /** Number of affected rows (or ids). */
  readonly rows: number;
  /** `2024-01-15`, ascending. */
  readonly days?: readonly string[];
  /** Columns that differ, with the number of rows. */
  readonly columns?: Readonly<Record<string, number>>;
  /** The shift of the labels in milliseconds; positive: later. */
  readonly shiftMs?: number;
  /** The first case: sort key, ids, values of both cadences. */
  readonly example?: Readonly<Record<string, unknown>>;
}

/** The result for one month of one series. */
export interface MonthAudit {
  readonly series: Series;
  /** `2024-01` */
  readonly month: string;
  readonly findings: readonly AuditFinding[];
  /** Number of days whose rows were compared with those of the monthly object. */
  readonly daysCompared: number;
  readonly rows: number;
  /** True when the daily objects have all rows of the monthly object on the compared days, and more rows or other values. */
  readonly isMonthlyWorse: boolean;
  /** Rows of the monthly object on days that have no readable daily object. */
  readonly rowsWithoutDay: number;
}

/** The text without series, month and kind: `2 rows, close (2); first open_time 2024-01-05 04:00:00, …`. */
export function findingText({ kind, rows, days = [], columns = {}, shiftMs, example }: AuditFinding): string {
  const unit = kind === 'ids-missing' ? 'id' : 'row';
  const parts = [
    `${numberText(rows)} ${unit}${rows === 1 ? '' : 's'}`,
    listText(days),
    ...Object.entries(columns).map(([name, count]) => `${name} (${numberText(count)})`),
    shiftMs === undefined ? '' : `${durationText(Math.abs(shiftMs))} ${shiftMs > 0 ? 'later' : 'earlier'}`,
  ];
  const cells = Object.entries(example ?? {}).map(([name, value]) => `${name} ${String(value)}`);
  const first = cells.length === 0 ? '' : `; first ${cells.join(', ')}`;
  return `${parts.filter(Boolean).join(', ')}${first}`;
}
