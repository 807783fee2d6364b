/** What an audit finds wrong in the archive, as plain data. */
import type { Series } from '../model/task.js';
import { durationText, numberText } from '../model/units.js';

/**
 * - `short-month`: the monthly object has no row of days that have some.
 * - `rows-missing`, `rows-extra`: rows that only the daily objects have, that only the monthly object has.
 * - `rows-differ`: the same row with other values.
 * - `labels-shift`: the same rows under labels that are an interval later or earlier.
 * - `ids-disordered`, `ids-missing`, `ids-conflicting` (one id with different values): of trades.
 * - `columns-constant`: what varies otherwise does not within this object.
 */
type FindingKind =
  | 'short-month'
  | 'rows-missing'
  | 'rows-extra'
  | 'rows-differ'
  | 'labels-shift'
  | 'ids-disordered'
  | 'ids-missing'
  | 'ids-conflicting'
  | 'columns-constant';

export interface Finding {
  readonly kind: FindingKind;
  /** The object that it is about. */
  readonly key: string;
  /** How many rows (or ids) it is about. */
  readonly rows: number;
  /** `2024-01-15`, ascending. */
  readonly days?: readonly string[];
  /** Columns that differ, with the number of rows; those that are constant. */
  readonly columns?: Readonly<Record<string, number>>;
  /** How much later the labels are, in ms. */
  readonly shiftMs?: number;
  /** The first of its rows: what names it, and what each side says. */
  readonly example?: Readonly<Record<string, unknown>>;
}

/** What the audit of one month of one series came to. */
export interface MonthAudit {
  readonly series: Series;
  /** `2024-01` */
  readonly month: string;
  readonly findings: readonly Finding[];
  /** Days whose rows were compared with those of the monthly object. */
  readonly daysCompared: number;
  readonly rows: number;
  /** The daily objects have everything that the monthly object has, and more, or something else. */
  readonly isMonthlyWorse: boolean;
  /** Rows of the monthly object on days that have no daily object. */
  readonly rowsWithoutDay: number;
}

// A finding of an audit as a person gets to read it.

const MOST_DAYS = 5;

/** Without the series and the month. */
export function findingText(finding: Finding): string {
  const { kind, rows, example } = finding;
  const rowsText = `${numberText(rows)} ${rows === 1 ? 'row' : 'rows'}`;
  switch (kind) {
    case 'short-month':
      return rows === 0
        ? `no row of ${daysText(finding)} between others, and no daily object of it`
        : `no row of ${daysText(finding)}; the daily objects have ${rowsText} of it`;
    case 'rows-missing':
      return `${rowsText} only in the daily objects, of ${daysText(finding)}${firstText(example)}`;
    case 'rows-extra':
      return `${rowsText} only in the monthly object, of ${daysText(finding)}${firstText(example)}`;
    case 'rows-differ':
      return `${rowsText} differ in ${columnsText(finding)}${firstText(example)}`;
    case 'labels-shift':
      return shiftText(finding);
    case 'ids-disordered':
      return `${rowsText} with an id below that of the row before${firstText(example)}`;
    case 'ids-missing':
      return `${numberText(rows)} ids missing${firstText(example)}`;
    case 'ids-conflicting':
      return `${rowsText} with the id of another row and other values${firstText(example)}`;
    case 'columns-constant':
      return `${Object.keys(finding.columns ?? {}).join(', ')} never ${Object.keys(finding.columns ?? {}).length === 1 ? 'changes' : 'change'} in ${rowsText}${finding.days === undefined ? '' : ` of ${daysText(finding)}`}`;
  }
}

function daysText({ days = [] }: Finding): string {
  const more = days.length - MOST_DAYS;
  return days.slice(0, MOST_DAYS).join(', ') + (more > 0 ? ` and ${more} more days` : '');
}

function columnsText({ columns = {} }: Finding): string {
  return Object.entries(columns)
    .map(([name, rows]) => `${name} (${numberText(rows)})`)
    .join(', ');
}

function shiftText({ rows, days = [], shiftMs = 0 }: Finding): string {
  const interval = durationText(Math.abs(shiftMs));
  const [day] = days;
  return day === undefined
    ? `${numberText(rows)} rows are those of the daily objects, labelled ${interval} ${shiftMs > 0 ? 'later' : 'earlier'}`
    : `from ${day} on labels are those of the ${shiftMs > 0 ? 'ends' : 'starts'} of ${interval}, before of the ${shiftMs > 0 ? 'starts' : 'ends'}`;
}

function firstText(example: Finding['example']): string {
  if (example === undefined) return '';
  const cells = Object.entries(example).map(([name, value]) => `${name} ${String(value)}`);
  return `; first ${cells.join(', ')}`;
}
