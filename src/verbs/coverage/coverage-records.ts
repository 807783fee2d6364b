/** Coverage for programs: NDJSON and CSV. Times are ISO 8601, spans are half-open. */
import { DAY_SECONDS } from '../../model/units.js';
import { type Gap } from '../../lake/catalogue/gap.js';
import type { Amounts, SeriesStates } from '../../lake/catalogue/day-states.js';
import type { Format, Series } from '../../model/task.js';
import { csvLine } from '../../text/csv.js';
import { percentOf, unitOf } from '../../lake/catalogue/series-table.js';
import type { Doubts } from '../../lake/catalogue/doubts.js';
import { periodsOf, type CoveragePeriod } from '../../lake/catalogue/period-amounts.js';

/** Amounts in rows or days. */
interface AmountsRecord {
  /** Without the excused ones. */
  readonly expected: number;
  readonly held: number;
  readonly missing: number;
  /** Rounded down, so that only a complete series has 100; null if nothing is expected. */
  readonly percent: number | null;
}

/** The coverage of a series in one format. `excused` is the amount of the gaps in which no data is expected. */
export interface SeriesRecord
  extends
    Series,
    AmountsRecord,
    Doubts,
    Pick<SeriesStates, 'excused' | 'objects' | 'restObjects' | 'duplicates' | 'revisions'> {
  /** Null if the lake holds no file of the series. */
  readonly format: Format | null;
  /** ISO instants `[from, to)`. */
  readonly from: string;
  readonly to: string;
  readonly unit: 'rows' | 'days';
  readonly rows: number | null;
  /** ISO instants of the first and the last row. */
  readonly first: string | null;
  readonly last: string | null;
  readonly gaps: readonly GapRecord[];
  readonly by: CoveragePeriod;
  /** `2024-01-15` or `2024-01`. */
  readonly periods: readonly (AmountsRecord & { readonly period: string })[];
}

/** ISO instants `[from, to)`, the amount in the unit of the series, the reason and its evidence. */
interface GapRecord extends Pick<Gap, 'reason' | 'evidence'> {
  readonly from: string;
  readonly to: string;
  readonly rows?: number;
  readonly days?: number;
  /** False if no data is expected. */
  readonly missing: boolean;
  /** Present if the exact place of the missing rows is not known. */
  readonly located?: false;
}

/** One object per series and format. */
export function seriesRecord(states: SeriesStates, by: CoveragePeriod): SeriesRecord {
  const { series, format, from, to, objects, restObjects, rows, duplicates, revisions } = states;
  const unit = unitOf(states);
  const instantOf = (seconds: number): string =>
    new Date((seconds + states.dayStartSeconds) * 1000).toISOString();
  return {
    ...series,
    format: format ?? null,
    from: instantOf(from * DAY_SECONDS),
    to: instantOf(to * DAY_SECONDS),
    unit,
    ...amountsRecord(states),
    excused: states.excused,
    objects,
    restObjects,
    rows: rows ?? null,
    duplicates,
    ...states.doubts,
    revisions,
    first: states.firstInstant ?? null,
    last: states.lastInstant ?? null,
    gaps: states.gaps.map((gap) => ({
      from: instantOf(gap.fromSeconds),
      to: instantOf(gap.toSeconds),
      reason: gap.reason,
      [unit]: gap.amount,
      missing: gap.isMissing,
      ...(gap.evidence === undefined ? {} : { evidence: gap.evidence }),
      ...(gap.isLoose === true ? { located: false } : {}),
    })),
    by,
    periods: periodsOf(states, by).map(({ period, ...amounts }) => ({ period, ...amountsRecord(amounts) })),
  };
}

function amountsRecord({ expected, missing }: Amounts): AmountsRecord {
  const percent = percentOf({ expected, missing });
  const rounded = percent === undefined ? null : Math.floor(percent * 10_000) / 10_000;
  return { expected, held: expected - missing, missing, percent: rounded };
}

export const CSV_HEAD =
  'market,dataset,interval,symbol,format,period,unit,expected,held,missing,percent,reasons\n';

/** A line of CSV per series and period. `reasons` includes those of gaps in which no data is expected. */
export function csvLines(states: SeriesStates, by: CoveragePeriod): string[] {
  const { market, dataset, interval, symbol } = states.series;
  const about = [market, dataset, interval ?? null, symbol, states.format ?? null];
  return periodsOf(states, by).map(({ period, gaps, ...amounts }) => {
    const { expected, held, missing, percent } = amountsRecord(amounts);
    const reasons = [...new Set(gaps.map(({ reason }) => reason))].join(' ');
    const counted = [unitOf(states), expected, held, missing, percent];
    return csvLine([...about, period, ...counted, reasons === '' ? null : reasons]);
  });
}
