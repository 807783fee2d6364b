/** The counts of a run, for closing block, JSON summary and exit code, and the next command after failures. */
import { UTC } from '../model/calendar.js';
import type { DayStart } from '../model/calendar.js';
import { Counters } from '../model/counters.js';
import type { Counts } from '../model/counters.js';
import type { ErrorCode } from '../model/errors.js';
import type { Outcome, OutcomeKind } from '../model/outcome.js';
import type { AbsenceReason } from '../model/absence-reasons.js';
import type { RunStatus } from '../model/exit-code.js';
import type { ArchiveObject, Format, Series } from '../model/task.js';
import { shellWord } from '../text/printable.js';
import { DatasetTally } from './dataset-tally.js';
import type { DatasetFigures } from './dataset-tally.js';
import { countOutcome, examplesOf, NOTES, outcomesOf } from './outcome-counts.js';
import type { CountName, Note } from './outcome-counts.js';

/** Examples of each kind in the closing block, at most. The failure report has all failures. */
const EXAMPLES = 5;

export class Tally extends Counters<CountName> {
  readonly #dayStart: DayStart;
  readonly #datasets = new Map<string, DatasetTally>();
  /** By error code, reason of absence, `partial`, or name of a note. */
  readonly examples = new Map<string, string[]>();
  /** New columns of the archive that were told, with their dataset. */
  readonly newColumns = new Set<string>();
  /** The series and format of the first object with rows in the lake. */
  written: { readonly series: Series; readonly format: Format } | undefined;

  constructor(dayStart: DayStart = UTC, counts: Counts<CountName> = {}) {
    super(counts);
    this.#dayStart = dayStart;
  }

  count(
    series: Series,
    object: Pick<ArchiveObject, 'key' | 'period' | 'lastModified'>,
    outcome: Outcome,
  ): void {
    countOutcome(this, outcome, object.period);
    for (const [kind, text] of examplesOf(object.key, outcome)) {
      if (kind in NOTES) this.add(kind as Note);
      const texts = this.examples.get(kind);
      if (texts === undefined) this.examples.set(kind, [text]);
      else if (texts.length < EXAMPLES) texts.push(text);
    }
    const name = `${series.market} ${series.dataset}`;
    const known = this.#datasets.get(name);
    const dataset = known ?? new DatasetTally(series, this.#dayStart);
    if (known === undefined) this.#datasets.set(name, dataset);
    dataset.count(series, object, outcome);
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

  /** The counts on which the exit code depends. */
  get status(): Pick<
    RunStatus,
    'waitedTooLong' | 'failedRetryable' | 'failedPermanent' | 'holes' | 'partial'
  > {
    return {
      waitedTooLong: this.of('waitedTooLong'),
      failedRetryable: this.of('failedRetryable'),
      failedPermanent: this.of('failedPermanent') + this.of('skippedPaths'),
      holes: this.of('absentBy.hole'),
      partial: this.of('outcome.partial'),
    };
  }
}

// The next command after a run with failures.

/** The next command. `reportPath`: the path as it is shown to the user. */
export function nextStep(failed: Pick<Counters<CountName>, 'of'>, reportPath: string): string {
  const retry = `cryptodl retry ${shellWord(reportPath)}`;
  const stale = failed.of('failedBy.sidecar-stale');
  const mayCome = failed.of('failedRetryable') + failed.of('waitedTooLong');
  if (mayCome === 0 && failed.of('failedPermanent') > 0)
    return `${AGAIN}; ${shellWord(reportPath)} names the objects`;
  return stale > 0 && stale === mayCome ? `${retry} --stale-checksum warn` : retry;
}

/** The next step after failures that `cryptodl retry` cannot change. */
const AGAIN = 'run the same command again later: a retry now fails the same way';
