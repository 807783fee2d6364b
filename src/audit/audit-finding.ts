/** The findings of an audit as data, and their texts. */
import type { Series } from '../model/task.js';
import { durationText, listText, numberText } from '../model/units.js';

/**
 * - `short-month`: the monthly object has no rows of days whose daily objects have rows, or of days between its first and last row.
 * - `rows-missing`: rows that only the daily objects have. `rows-extra`: rows that only the monthly object has.
 * - `rows-differ`: rows with the same key and different values.
 * - `labels-shift`: the same rows with times one interval later or earlier, or a day from which times mark the other end of the interval.
 * - `ids-disordered`, `ids-missing`, `ids-conflicting` (one id with different values): ids of trades.
 * - `columns-constant`: a column has one value on this day, but varies on most days; or no column of the object varies.
 */
type AuditFindingKind =
  | 'short-month'
  | 'rows-missing'
  | 'rows-extra'
  | 'rows-differ'
  | 'labels-shift'
  | 'ids-disordered'
  | 'ids-missing'
  | 'ids-conflicting'
  | 'columns-constant';

export interface AuditFinding {
  readonly kind: AuditFindingKind;
  /** Key of the affected object. */
  readonly key: string;
  /** Number of affected rows (or ids). */
  readonly rows: number;
  /** `2024-01-15`, ascending. */
  readonly days?: readonly string[];
  /** Columns that differ or are constant, with the number of rows. */
  readonly columns?: Readonly<Record<string, number>>;
  /** The shift of the labels in milliseconds; positive: later. */
  readonly shiftMs?: number;
  /** The first case: sort key, ids, values of both cadences, or meanings of the labels. */
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

/** The text without the series and the month. */
export function findingText(finding: AuditFinding): string {
  const { kind, rows, example } = finding;
  const rowsText = `${numberText(rows)} ${rows === 1 ? 'row' : 'rows'}`;
  switch (kind) {
    case 'short-month':
      return rows === 0
        ? `no rows of ${listText(finding.days ?? [])}, and no readable daily object; there are rows before and after`
        : `no rows of ${listText(finding.days ?? [])}; the daily objects have ${rowsText}`;
    case 'rows-missing':
      return `${rowsText} of ${listText(finding.days ?? [])} only in the daily objects${firstText(example)}`;
    case 'rows-extra':
      return `${rowsText} of ${listText(finding.days ?? [])} only in the monthly object${firstText(example)}`;
    case 'rows-differ':
      return `${rowsText} differ in ${columnsText(finding)}${firstText(example)}`;
    case 'labels-shift':
      return shiftText(finding);
    case 'ids-disordered':
      return `${rowsText} with a smaller id than the previous row${firstText(example)}`;
    case 'ids-missing':
      return `${numberText(rows)} ids missing${firstText(example)}`;
    case 'ids-conflicting':
      return `${rowsText} with the id of another row, but different values${firstText(example)}`;
    case 'columns-constant':
      return `${Object.keys(finding.columns ?? {}).join(', ')} never ${Object.keys(finding.columns ?? {}).length === 1 ? 'changes' : 'change'} in ${rowsText}${finding.days === undefined ? '' : ` of ${listText(finding.days ?? [])}`}`;
  }
}

function columnsText({ columns = {} }: AuditFinding): string {
  return Object.entries(columns)
    .map(([name, rows]) => `${name} (${numberText(rows)})`)
    .join(', ');
}

function shiftText({ rows, days = [], shiftMs = 0 }: AuditFinding): string {
  const interval = durationText(Math.abs(shiftMs));
  const [day] = days;
  return day === undefined
    ? `${numberText(rows)} rows equal those of the daily objects, but their times are ${interval} ${shiftMs > 0 ? 'later' : 'earlier'}`
    : `from ${day} on, times are the ${shiftMs > 0 ? 'ends' : 'starts'} of intervals of ${interval}; before, they are the ${shiftMs > 0 ? 'starts' : 'ends'}`;
}

function firstText(example: AuditFinding['example']): string {
  if (example === undefined) return '';
  const cells = Object.entries(example).map(([name, value]) => `${name} ${String(value)}`);
  return `; first ${cells.join(', ')}`;
}
