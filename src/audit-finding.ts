/** What an audit finds wrong in the archive, as plain data. */
import type { Series } from './task.js';

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
