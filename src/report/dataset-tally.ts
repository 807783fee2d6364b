/** The outcomes of a run by market and dataset. */
import { LATE_MS } from '../model/absence-reasons.js';
import { DAY_MS, dayPeriod, monthOf, monthPeriod, periodText, startOfDay } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import type { Outcome, OutcomeKind } from '../model/outcome.js';
import type { ArchiveObject, Period, Series } from '../model/task.js';
import { parseDurationMs } from '../model/units.js';

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

interface Counts {
  readonly outcomes: Record<OutcomeKind, number>;
  holes: number;
  readonly days: { held: number; missing: number };
  rows: number;
  bytes: number;
  newest: Period | undefined;
  /** The newest held period of series that have each period. */
  newestOfAll: Period | undefined;
  /** The end of the newest period after the end of a series or of the dataset. */
  endedTo: number;
  published: { readonly to: number; readonly atMs: number } | undefined;
  /** By their last day. */
  readonly unpublished: Map<number, Period>;
}

export class DatasetTally {
  readonly #counts = new Map<string, { readonly series: Series; readonly counts: Counts }>();
  readonly #dayStart: DayStart;

  constructor(dayStart: DayStart) {
    this.#dayStart = dayStart;
  }

  count(
    series: Series,
    { period, lastModified }: Pick<ArchiveObject, 'period' | 'lastModified'>,
    outcome: Outcome,
  ): void {
    const counts = this.#of(series);
    counts.outcomes[outcome.kind] += 1;
    const isMissing = outcome.kind === 'failed' || (outcome.kind === 'absent' && outcome.reason === 'hole');
    if (isMissing) counts.days.missing += period.to - period.from;
    else if (outcome.kind !== 'absent') counts.days.held += period.to - period.from;
    if (outcome.kind === 'absent') {
      if (outcome.reason === 'hole') counts.holes += 1;
      if (outcome.reason === 'not-published-yet' && hasEachPeriod(series, period))
        counts.unpublished.set(period.to, period);
      if (outcome.reason === 'delisted' || outcome.reason === 'dataset-ended')
        counts.endedTo = Math.max(counts.endedTo, period.to);
      return;
    }
    if (outcome.kind === 'failed') return;
    if (counts.newest === undefined || period.to > counts.newest.to) counts.newest = period;
    if (hasEachPeriod(series, period) && period.to > (counts.newestOfAll?.to ?? 0))
      counts.newestOfAll = period;
    const atMs = lastModified === undefined ? Number.NaN : Date.parse(lastModified);
    if (!Number.isNaN(atMs) && period.to > (counts.published?.to ?? 0))
      counts.published = { to: period.to, atMs };
    if (outcome.kind === 'skipped') return;
    counts.rows += outcome.keptRows === undefined ? (outcome.rows ?? 0) : 0;
    counts.bytes += outcome.keptRows === undefined ? outcome.bytes : 0;
  }

  get figures(): DatasetFigures[] {
    return [...this.#counts.values()].map(({ series: { market, dataset }, counts }) => {
      const { newest, published, outcomes, unpublished, holes, days, rows, bytes } = counts;
      const next = [...unpublished.values()]
        .filter(({ to }) => to > (newest?.to ?? 0))
        .reduce<Period | undefined>(
          (one, other) => (one === undefined || other.to < one.to ? other : one),
          undefined,
        );
      return {
        market,
        dataset,
        outcomes: { ...outcomes },
        holes,
        days: { ...days },
        rows,
        bytes,
        newest: newest === undefined ? null : periodText(newest),
        newestEndMs: newest === undefined ? null : startOfDay(newest.to, this.#dayStart),
        unpublished: next === undefined ? null : periodText(next),
        unpublishedEndMs: next === undefined ? null : startOfDay(next.to, this.#dayStart),
        freshUntilMs: this.#lateFrom(next ?? periodAfter(counts)),
        publicationDelayMs:
          published === undefined
            ? null
            : Math.max(0, published.atMs - startOfDay(published.to, this.#dayStart)),
      };
    });
  }

  #lateFrom(period: Period | undefined): number | null {
    return period === undefined ? null : startOfDay(period.to, this.#dayStart) + LATE_MS[period.cadence];
  }

  #of(series: Series): Counts {
    const name = `${series.market} ${series.dataset}`;
    const known = this.#counts.get(name);
    if (known !== undefined) return known.counts;
    const counts: Counts = {
      outcomes: { ok: 0, partial: 0, skipped: 0, absent: 0, failed: 0 },
      holes: 0,
      days: { held: 0, missing: 0 },
      rows: 0,
      bytes: 0,
      newest: undefined,
      newestOfAll: undefined,
      endedTo: 0,
      published: undefined,
      unpublished: new Map(),
    };
    this.#counts.set(name, { series, counts });
    return counts;
  }
}

/** The period after the newest held one; undefined if the series have ended. */
function periodAfter({ newestOfAll: held, endedTo }: Counts): Period | undefined {
  if (held === undefined || endedTo > held.to) return undefined;
  return held.cadence === 'daily' ? dayPeriod(held.to) : monthPeriod(monthOf(held.to));
}

/** Bars that are longer than a day have no object on most days. */
function hasEachPeriod({ interval }: Series, { cadence }: Period): boolean {
  return (
    interval === undefined ||
    cadence === 'monthly' ||
    (parseDurationMs(interval) ?? Number.POSITIVE_INFINITY) <= DAY_MS
  );
}
