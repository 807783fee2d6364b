/** What `bars` has made of a series, and of all of them. */
import type { Series } from '../../model/task.js';

/** What was made, of one symbol or of all. The figures of months are 0 with --dry-run. */
export interface Amounts {
  /** Days of the months that are made. */
  readonly days: number;
  /** Days between the first and the last day of the source, in months of the range, that the source does not have. They have no bars. */
  readonly missingDays: number;
  readonly bars: number;
  /** Bars that lack rows of the source, and absent ones of which it has no rows. */
  readonly short: number;
  readonly bytes: number;
}

export interface BuiltSeries extends Series, Amounts {
  /**
   * `made`, or with --dry-run what would be made; `skipped`: the bars of the lake are up to date; `empty`: the source has no whole bar in
   * the range.
   */
  readonly outcome: 'made' | 'skipped' | 'empty' | 'failed';
  /** Why it failed, or why there is nothing to make. */
  readonly text?: string;
  /** `klines 1m` */
  readonly source?: string;
  readonly months: readonly string[];
}

export const NOTHING = { days: 0, bars: 0, short: 0, bytes: 0, missingDays: 0 };

export function addAmounts(sums: Record<keyof Amounts, number>, more: Partial<Amounts>): void {
  for (const name of Object.keys(NOTHING) as (keyof Amounts)[]) sums[name] += more[name] ?? 0;
}
