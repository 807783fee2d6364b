/** The counts of a run, for closing block, JSON summary and exit code, and the next command after failures. */
import { UTC, type DayStart } from '../../model/calendar.js';
import { Counters, type Counts } from '../../model/counters.js';
import type { ErrorCode } from '../../model/errors.js';
import type { Outcome, OutcomeKind } from '../../model/outcome.js';
import type { AbsenceReason } from '../../model/absence-reasons.js';
import type { RunStatus } from '../../model/exit-code.js';
import type { ArchiveObject, Format, Series } from '../../model/task.js';
import { shellWord } from '../../text/printable.js';
import { DatasetTally, type DatasetFigures } from './dataset-tally.js';
import { countOutcome, outcomesOf, type CountName } from './count-outcome.js';

/** Examples of each kind in the closing block, at most. The failure report has all failures. */
const EXAMPLES = 3;

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

  count(
    series: Series,
    object: Pick<ArchiveObject, 'key' | 'period' | 'lastModified'>,
    outcome: Outcome,
  ): void {
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

/** The next command after a run with failures. `reportPath`: the path as it is shown to the user. */
export function nextStep(failed: Pick<Counters<CountName>, 'of'>, reportPath: string): string {
  const retry = `cryptodl retry ${shellWord(reportPath)}`;
  const stale = failed.of('failedBy.sidecar-stale');
  const mayCome = failed.of('failedRetryable') + failed.of('waitedTooLong');
  if (mayCome === 0 && failed.of('failedPermanent') > 0)
    return `run the same command again later: a retry now fails the same way; ${shellWord(reportPath)} names the objects`;
  return stale > 0 && stale === mayCome ? `${retry} --stale-checksum warn` : retry;
}
