/** The outcomes of a run by market and dataset. */
import { LATE_MS } from '../model/absence-reasons.js';
import { DAY_MS, dayPeriod, monthOf, monthPeriod, periodText, startOfDay } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import { Counters } from '../model/counters.js';
import type { Outcome, OutcomeKind } from '../model/outcome.js';
import type { ArchiveObject, Period, Series } from '../model/task.js';
import { parseDurationMs } from '../model/units.js';
import { countOutcome, outcomesOf } from './outcome-counts.js';
import type { CountName } from './outcome-counts.js';

export interface DatasetFigures {
  readonly market: string;
  readonly dataset: string;
  readonly outcomes: Readonly<Record<OutcomeKind, number>>;
  /** Holes, which are also counted as absent. */
  readonly holes: number;
  /** The days of the objects that the lake holds, and of holes and failures. */
  readonly days: { readonly held: number; readonly missing: number };
  readonly rows: number;
  readonly bytes: number;
  /** The newest period of the run that the lake holds, `2024-01-15` or `2024-01`; null if it holds none. */
  readonly newest: string | null;
  /** The end of that period in epoch milliseconds. */
  readonly newestEndMs: number | null;
  /** From the end of the newest period that the archive had published to its publication, in milliseconds. */
  readonly publicationDelayMs: number | null;
  /** The oldest period after `newest` that the archive had not published, and its end in epoch milliseconds. */
  readonly unpublished: string | null;
  readonly unpublishedEndMs: number | null;
  /** The time from which the publication of the period after `newest` is late; null if no further one is due. */
  readonly freshUntilMs: number | null;
}

/** The outcomes of one dataset of a market. */
export class DatasetTally {
  readonly #counts = new Counters<CountName>();
  readonly #name: Pick<DatasetFigures, 'market' | 'dataset'>;
  readonly #dayStart: DayStart;
  #newest: Period | undefined;
  /** The newest held period of series that have each period. */
  #newestOfAll: Period | undefined;
  /** The end of the newest period after the end of a series or of the dataset. */
  #endedTo = 0;
  #published: { readonly to: number; readonly atMs: number } | undefined;
  /** By their last day. */
  readonly #unpublished = new Map<number, Period>();

  constructor({ market, dataset }: Pick<Series, 'market' | 'dataset'>, dayStart: DayStart) {
    this.#name = { market, dataset };
    this.#dayStart = dayStart;
  }

  count(
    series: Series,
    { period, lastModified }: Pick<ArchiveObject, 'period' | 'lastModified'>,
    outcome: Outcome,
  ): void {
    countOutcome(this.#counts, outcome, period);
    if (outcome.kind === 'absent') {
      if (outcome.reason === 'not-published-yet' && hasEachPeriod(series, period))
        this.#unpublished.set(period.to, period);
      if (outcome.reason === 'delisted' || outcome.reason === 'dataset-ended')
        this.#endedTo = Math.max(this.#endedTo, period.to);
    }
    if (outcome.kind === 'absent' || outcome.kind === 'failed') return;
    if (period.to > (this.#newest?.to ?? 0)) this.#newest = period;
    if (hasEachPeriod(series, period) && period.to > (this.#newestOfAll?.to ?? 0)) this.#newestOfAll = period;
    const atMs = lastModified === undefined ? Number.NaN : Date.parse(lastModified);
    if (!Number.isNaN(atMs) && period.to > (this.#published?.to ?? 0))
      this.#published = { to: period.to, atMs };
  }

  get figures(): DatasetFigures {
    const counts = this.#counts;
    const [newest, published] = [this.#newest, this.#published];
    const next = [...this.#unpublished.values()]
      .filter(({ to }) => to > (newest?.to ?? 0))
      .toSorted((one, other) => one.to - other.to)[0];
    return {
      ...this.#name,
      outcomes: outcomesOf(counts),
      holes: counts.of('absentBy.hole'),
      days: { held: counts.of('days.held'), missing: counts.of('days.missing') },
      rows: counts.of('rows'),
      bytes: counts.of('bytes'),
      newest: newest === undefined ? null : periodText(newest),
      newestEndMs: this.#endOf(newest),
      unpublished: next === undefined ? null : periodText(next),
      unpublishedEndMs: this.#endOf(next),
      freshUntilMs: this.#lateFrom(next ?? this.#dueNext()),
      publicationDelayMs:
        published === undefined
          ? null
          : Math.max(0, published.atMs - startOfDay(published.to, this.#dayStart)),
    };
  }

  #endOf(period: Period | undefined): number | null {
    return period === undefined ? null : startOfDay(period.to, this.#dayStart);
  }

  #lateFrom(period: Period | undefined): number | null {
    return period === undefined ? null : startOfDay(period.to, this.#dayStart) + LATE_MS[period.cadence];
  }

  /** The period after the newest held one; undefined if the series have ended. */
  #dueNext(): Period | undefined {
    const held = this.#newestOfAll;
    if (held === undefined || this.#endedTo > held.to) return undefined;
    return held.cadence === 'daily' ? dayPeriod(held.to) : monthPeriod(monthOf(held.to));
  }
}

/** Bars that are longer than a day have no object on most days. */
function hasEachPeriod({ interval }: Series, { cadence }: Period): boolean {
  return (
    interval === undefined ||
    cadence === 'monthly' ||
    (parseDurationMs(interval) ?? Number.POSITIVE_INFINITY) <= DAY_MS
  );
}
