/** Counts over all series, for the summary, the exit code and the next step. */
import type { SeriesStates } from './day-states.js';
import type { CryptodlError } from '../../model/errors.js';
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { seriesName } from '../../model/task.js';
import { numberText } from '../../model/units.js';
import { printable } from '../../text/printable.js';
import { DoubtSums, type Doubts } from './doubts.js';
import { ExcusedAmounts } from './gap-texts.js';
import { percentOf, amountsText, heldPercentText, unitOf } from './series-table.js';

export interface CoverageTotals extends Doubts {
  /** Series, once for each format. */
  readonly series: number;
  /** Series that lack data. */
  readonly incomplete: number;
  /** Series below `--min`. */
  readonly below: number;
  /** The percentage of the least complete series, rounded down to 4 decimals; null if nothing is expected. */
  readonly leastPercent: number | null;
  /** Errors of manifests and of manifest lines that cannot be read. */
  readonly refused: readonly string[];
  /** Reasons why folders that look like series were left out. */
  readonly skipped?: readonly string[];
}

export class CoverageCounts {
  readonly skipped: string[] = [];
  readonly refused: CryptodlError[] = [];
  /** Series below `--min`, with their percentage. */
  readonly below: string[] = [];
  #series = 0;
  #incomplete = 0;
  readonly #missing = { rows: 0, days: 0 };
  readonly #excused = new ExcusedAmounts();
  readonly #doubts = new DoubtSums();
  #least: { readonly percent: number; readonly text: string } | undefined;

  add(covered: SeriesStates, minPercent: number | undefined): void {
    const percent = percentOf(covered);
    this.#series += 1;
    if (covered.missing > 0) this.#incomplete += 1;
    this.#missing[unitOf(covered)] += covered.missing;
    for (const gap of covered.gaps) if (!gap.isMissing) this.#excused.add(covered, gap);
    const name = printable(seriesName(covered.series));
    this.#doubts.add(name, covered.doubts);
    if (percent === undefined) return;
    const text = `${name} (${heldPercentText(covered)})`;
    if (percent < (this.#least?.percent ?? Infinity)) this.#least = { percent, text };
    if (percent < (minPercent ?? 0)) this.below.push(text);
  }

  get exitCode(): ExitCode {
    return exitCode({ refused: this.refused.length, lasting: this.below.length > 0 });
  }

  /** The last object of `--json`. */
  record(): CoverageTotals {
    const { skipped, refused, below } = this;
    return {
      series: this.#series,
      incomplete: this.#incomplete,
      below: below.length,
      leastPercent: this.#least === undefined ? null : Math.floor(this.#least.percent * 10_000) / 10_000,
      ...this.#doubts.sums,
      refused: refused.map(({ message }) => message),
      ...(skipped.length === 0 ? {} : { skipped }),
    };
  }

  line(): string {
    const count = `${numberText(this.#series)} series`;
    const unread = this.refused.length + this.skipped.length;
    const notes = [
      this.#incomplete === 0
        ? `complete: nothing is missing in ${count}`
        : `incomplete: ${numberText(this.#incomplete)} of ${count} lack ${amountsText(this.#missing)}; the least complete is ${this.#least?.text ?? ''}`,
      this.#excused.text(),
      ...this.#doubts.lines(),
      unread === 0 ? '' : `${numberText(unread)} manifests or lines could not be read`,
    ];
    return notes.filter(Boolean).join('; ');
  }
}
