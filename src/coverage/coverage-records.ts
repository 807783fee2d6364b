/** Coverage as NDJSON and CSV. Times are ISO 8601, spans are half-open. */
import { dayText, monthOf, monthStart, monthText } from '../model/calendar.js';
import type { Series } from '../model/task.js';
import { percentOf, periodsOf } from './gaps.js';
import type { Amounts, Gap, Grain } from './gaps.js';
import { DAY_SECONDS } from './series-coverage.js';
import type { SeriesCoverage } from './series-coverage.js';
import { unitOf } from './series-table.js';

/** One object per series and format. */
export function seriesRecord(
  coverage: SeriesCoverage,
  gaps: readonly Gap[],
  amounts: Amounts,
  by: Grain,
): Record<string, unknown> {
  const { series, format, from, to, objects, restObjects, rows, duplicates, revisions } = coverage;
  const unit = unitOf(coverage);
  return {
    event: 'series',
    ...series,
    format: format ?? null,
    from: instant(from * DAY_SECONDS),
    to: instant(to * DAY_SECONDS),
    unit,
    ...amountsRecord(amounts),
    objects,
    restObjects,
    rows: rows ?? null,
    duplicates,
    revisions,
    first: coverage.first ?? null,
    last: coverage.last ?? null,
    gaps: gaps.map((gap) => ({
      from: instant(gap.from),
      to: instant(gap.to),
      reason: gap.reason,
      [unit]: gap.amount,
      missing: gap.isMissing,
      ...(gap.isLoose === true ? { located: false } : {}),
    })),
    by,
    periods: periodsOf(coverage, gaps, by).map((period, index) => ({
      period: periodName(from, index, by),
      ...amountsRecord(period),
    })),
  };
}

function amountsRecord(amounts: Amounts): Record<string, number | null> {
  const { expected, missing } = amounts;
  return { expected, held: expected - missing, missing, percent: rounded(percentOf(amounts)) };
}

/** Rounds down, so that only a complete series has 100. */
function rounded(percent: number | undefined): number | null {
  return percent === undefined ? null : Math.floor(percent * 10_000) / 10_000;
}

/** ISO 8601 text of seconds since 1970. */
export function instant(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

/** Name of the period that is `index` periods after that of day `from`. */
function periodName(from: number, index: number, by: Grain): string {
  return by === 'day' ? dayText(from + index) : monthText(monthOf(from) + index);
}

export const CSV_HEAD =
  'market,dataset,interval,symbol,format,period,unit,expected,held,missing,percent,reasons';

/** One line per series and period. `reasons` includes those of gaps in which no data can exist. */
export function csvLines(coverage: SeriesCoverage, gaps: readonly Gap[], by: Grain): string[] {
  const { series, format, from } = coverage;
  const about = seriesCells(series, format ?? '');
  let first = 0;
  return periodsOf(coverage, gaps, by).map((period, index) => {
    const name = periodName(from, index, by);
    const end = endOf(from, index, by) * DAY_SECONDS;
    const start = (index === 0 ? from : endOf(from, index - 1, by)) * DAY_SECONDS;
    while ((gaps[first]?.to ?? Infinity) <= start) first += 1;
    const reasons = new Set<string>();
    for (let at = first; (gaps[at]?.from ?? Infinity) < end; at += 1) {
      const gap = gaps[at];
      if (gap !== undefined && gap.to > start) reasons.add(gap.reason);
    }
    const { expected, held, missing, percent } = amountsRecord(period);
    const cells = [...about, name, unitOf(coverage), expected, held, missing, percent ?? ''];
    return `${cells.join(',')},${[...reasons].join(' ')}`;
  });
}

/** The day after the period. */
function endOf(from: number, index: number, by: Grain): number {
  return by === 'day' ? from + index + 1 : monthStart(monthOf(from) + index + 1);
}

function seriesCells({ market, dataset, interval, symbol }: Series, format: string): string[] {
  return [market, dataset, interval ?? '', symbol, format].map((cell) =>
    /[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell,
  );
}
