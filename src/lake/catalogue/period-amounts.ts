/** The expected and missing amounts of the days or months of a series. */
import { DAY_SECONDS } from '../../model/units.js';
import { type Gap } from './gap.js';
import type { Amounts, SeriesStates } from './day-states.js';
import { dayText, monthOf, monthStart, monthText } from '../../model/calendar.js';
import { overlap } from './spans.js';

/** Ranges of more days are shown by month. */
export const MOST_DAYS = 60;

/** The length of the periods of the heat-map, `--json` and `--csv`, see `--by`. */
export type CoveragePeriod = 'day' | 'month';
type Judged = Pick<SeriesStates, 'from' | 'to' | 'rowSeconds' | 'gaps'>;

interface PeriodAmounts extends Amounts {
  /** `2024-01-15` or `2024-01`. */
  readonly period: string;
  /** `[start, end)` in the seconds of gaps. */
  readonly start: number;
  readonly end: number;
  /** Those with a time in the period. */
  readonly gaps: readonly Gap[];
}

/** The amounts of each period, from the period of the first day on. */
export function periodsOf(series: Judged, by: CoveragePeriod): PeriodAmounts[] {
  const { from, to, rowSeconds = DAY_SECONDS, gaps } = series;
  if (from >= to) return [];
  const periods: { start: number; end: number; expected: number; missing: number; gaps: Gap[] }[] = [];
  for (let start = from; start < to;) {
    const end = by === 'day' ? start + 1 : Math.min(to, monthStart(monthOf(start) + 1));
    const expected = ((end - start) * DAY_SECONDS) / rowSeconds;
    periods.push({ start: start * DAY_SECONDS, end: end * DAY_SECONDS, expected, missing: 0, gaps: [] });
    start = end;
  }
  let first = 0;
  for (const gap of gaps) {
    const { fromSeconds, toSeconds } = gap;
    while ((periods[first]?.end ?? Infinity) <= fromSeconds) first += 1;
    for (let i = first; i < periods.length; i += 1) {
      const period = periods[i];
      if (period === undefined || period.start >= toSeconds) break;
      period.gaps.push(gap);
      const share = overlap(fromSeconds, toSeconds, period.start, period.end) / (toSeconds - fromSeconds);
      const amount = gap.amount * share;
      if (gap.isMissing) period.missing += amount;
      else period.expected -= amount;
    }
  }
  return periods.map(({ expected, missing, ...period }) => ({
    ...period,
    period:
      by === 'day' ? dayText(period.start / DAY_SECONDS) : monthText(monthOf(period.start / DAY_SECONDS)),
    expected: Math.max(0, Math.round(expected)),
    missing: Math.min(Math.round(missing), Math.max(0, Math.round(expected))),
  }));
}
