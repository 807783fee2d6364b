/** The counts of a run, for closing block, JSON summary and exit code. */
import { UTC, periodAt, periodText, startOfDay, type DayStart } from '../../model/calendar.js';
import { Counters, type Counts } from '../../model/counters.js';
import type { ErrorCode } from '../../model/errors.js';
import type { Outcome, OutcomeKind } from '../../model/outcome.js';
import { LATE_MS, type AbsenceReason } from '../../model/absence-reasons.js';
import type { RunStatus } from '../../model/exit-code.js';
import type { SourceObject, Format, Series, Period } from '../../model/task.js';
import { countOutcome, outcomesOf, type CountName } from './count-outcome.js';
import { DAY_MS, parseDurationMs } from '../../model/units.js';

/** Examples of each kind in the closing block, at most. The failure report has all failures. */
const EXAMPLES = 3;

type CountedObject = Pick<SourceObject, 'key' | 'period' | 'lastModified'>;

export class Tally extends Counters<CountName> {
  readonly #datasets = new Map<string, DatasetTally>();
  /** Texts about the first objects that a count has. */
  readonly examples = new Map<CountName, string[]>();
  /** New columns of the archive that were told, with their dataset. */
  readonly newColumns = new Set<string>();
  /** The series and format of the first object with rows in the lake. */
  written: { readonly series: Series; readonly format: Format } | undefined;

  constructor(
    private readonly dayStart: DayStart = UTC,
    counts: Counts<CountName> = {},
  ) {
    super(counts);
  }

  count(series: Series, object: CountedObject, outcome: Outcome): void {
    const name = `${series.market} ${series.dataset}`;
    const dataset = this.#datasets.get(name) ?? new DatasetTally(series, this.dayStart);
    this.#datasets.set(name, dataset);
    dataset.note(series, object, outcome);
    countOutcome(outcome, object, (counted, count, example) => {
      this.add(counted, count);
      dataset.add(counted, count);
      if (example === undefined) return;
      const texts = this.examples.get(counted) ?? [];
      if (texts.length < EXAMPLES) this.examples.set(counted, [...texts, example]);
    });
  }

  get outcomes(): Readonly<Record<OutcomeKind, number>> {
    return outcomesOf(this);
  }

  get absentBy(): Readonly<Partial<Record<AbsenceReason, number>>> {
    return this.by('absentBy');
  }

  get failedBy(): Readonly<Partial<Record<ErrorCode, number>>> {
    return this.by('failedBy');
  }

  get datasets(): DatasetFigures[] {
    return [...this.#datasets.values()].map(({ figures }) => figures);
  }

  get status() {
    return {
      waitedTooLong: this.of('waitedTooLong'),
      failedRetryable: this.of('failedRetryable'),
      failedPermanent: this.of('failedPermanent') + this.of('skippedPaths'),
      holes: this.of('absentBy.hole'),
      partial: this.of('outcome.partial'),
    } satisfies Partial<RunStatus>;
  }
}

export type DatasetFigures = Readonly<DatasetTally['figures']>;

class DatasetTally extends Counters<CountName> {
  #newest: Period | undefined;
  /** The newest held period of series that have each period. */
  #newestOfAll: Period | undefined;
  /** The end of the newest period after the end of a series or of the dataset. */
  #endedTo = 0;
  #published: { readonly to: number; readonly atMs: number } | undefined;
  /** By their last day. */
  readonly #unpublished = new Map<number, Period>();

  constructor(
    private readonly name: Pick<Series, 'market' | 'dataset'>,
    private readonly dayStart: DayStart,
  ) {
    super();
  }

  /** Notes which periods are held, published and unpublished. */
  note(series: Series, { period, lastModified }: CountedObject, outcome: Outcome): void {
    const isOfEach = hasEachPeriod(series, period);
    if (outcome.kind === 'absent') {
      if (outcome.reason === 'not-published-yet' && isOfEach) this.#unpublished.set(period.to, period);
      if (outcome.reason === 'delisted' || outcome.reason === 'dataset-ended')
        this.#endedTo = Math.max(this.#endedTo, period.to);
    }
    if (outcome.kind === 'absent' || outcome.kind === 'failed') return;
    if (period.to > (this.#newest?.to ?? 0)) this.#newest = period;
    if (isOfEach && period.to > (this.#newestOfAll?.to ?? 0)) this.#newestOfAll = period;
    const atMs = lastModified === undefined ? Number.NaN : Date.parse(lastModified);
    if (!Number.isNaN(atMs) && period.to > (this.#published?.to ?? 0))
      this.#published = { to: period.to, atMs };
  }

  get figures() {
    const [newest, held, published] = [this.#newest, this.#newestOfAll, this.#published];
    const [next] = [...this.#unpublished.values()]
      .filter(({ to }) => to > (newest?.to ?? 0))
      .toSorted((one, other) => one.to - other.to);
    // None is due after the newest held period if the series have ended.
    const hasDue = held !== undefined && this.#endedTo <= held.to;
    const due = next ?? (hasDue ? periodAt(held.cadence, held.to) : undefined);
    const endMs = ({ to }: Pick<Period, 'to'>): number => startOfDay(to, this.dayStart);
    const { market, dataset } = this.name;
    return {
      market,
      dataset,
      outcomes: outcomesOf(this),
      /** Holes, which are also counted as absent. */
      holes: this.of('absentBy.hole'),
      /** The days of the objects that the lake holds, and of holes and failures. */
      days: { held: this.of('days.held'), missing: this.of('days.missing') },
      rows: this.of('rows'),
      bytes: this.of('bytes'),
      /** The newest period of the run that the lake holds, `2024-01-15` or `2024-01`, and its end in epoch milliseconds; null if it holds none. */
      newest: newest === undefined ? null : periodText(newest),
      newestEndMs: newest === undefined ? null : endMs(newest),
      /** The oldest period after `newest` that the archive had not published, and its end in epoch milliseconds. */
      unpublished: next === undefined ? null : periodText(next),
      unpublishedEndMs: next === undefined ? null : endMs(next),
      /** The time from which the publication of the period after `newest` is late; null if no further one is due. */
      freshUntilMs: due === undefined ? null : endMs(due) + LATE_MS[due.cadence],
      /** From the end of the newest period that the archive had published to its publication, in milliseconds. */
      publicationDelayMs: published === undefined ? null : Math.max(0, published.atMs - endMs(published)),
    };
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
