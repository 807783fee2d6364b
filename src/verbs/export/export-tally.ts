/** The counts of an export, its exit code, and the lines at its end. */
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { grouped } from '../../model/by-name.js';
import { seriesName } from '../../model/task.js';
import { bytesText, countText, durationText, listText, numberText } from '../../model/units.js';
import { shownPath } from '../../text/printable.js';
import type { Refused } from './export-file.js';
import type { ExportedFile, FileOutcome } from './write-file.js';
import type { ExportSelection } from './select-export.js';

export const FAILURES: readonly FileOutcome[] = ['foreign', 'unreadable', 'failed'];

export class ExportTally {
  readonly files: Partial<Record<FileOutcome, number>> = {};
  readonly empty: string[] = [];
  /** Series that are left out. */
  readonly refused: Refused[] = [];
  rows = 0;
  bytes = 0;

  add(item: ExportedFile | Refused): void {
    if ('reason' in item) {
      this.refused.push(item);
      return;
    }
    const { outcome, file, rows, bytes } = item;
    this.files[outcome] = this.of(outcome) + 1;
    if (outcome === 'empty') this.empty.push(file);
    if (outcome !== 'written') return;
    this.rows += rows;
    this.bytes += bytes;
  }

  /** Whether the export fails because of a series that is left out. */
  get hasFaults(): boolean {
    return this.refused.some(({ isFault }) => isFault === true);
  }

  of(...outcomes: readonly FileOutcome[]): number {
    return outcomes.reduce((sum, outcome) => sum + (this.files[outcome] ?? 0), 0);
  }

  /** Also files that are not written. */
  get filesWithRows(): number {
    return this.of('written', 'unchanged', 'planned', ...FAILURES);
  }

  text(): string {
    return `${countText(this.of('written'), 'file')} written (${bytesText(this.bytes)}, ${numberText(this.rows)} rows)`;
  }

  leftOutLines(): string[] {
    const byReason = grouped(this.refused, ({ reason }) => reason);
    return [...byReason].map(([reason, refused]) => {
      const names = refused.map(({ series }) => seriesName(series));
      return `left out: ${listText(names, 3)}: ${reason}`;
    });
  }

  nothingText(): string {
    return this.refused.length > 0
      ? 'nothing is exported, because all series are left out'
      : 'nothing is exported, because the lake has no rows of these series in the range; cryptodl coverage shows its days';
  }

  exitCode(isComplete: boolean): ExitCode {
    const hasFaults = this.hasFaults || this.of('foreign', 'unreadable') > 0;
    const passing = this.of('failed') > 0;
    const isEmpty = !passing && this.filesWithRows === 0;
    return exitCode({
      lasting: hasFaults || (isComplete && this.refused.length > 0) || isEmpty,
      passing,
    });
  }
}

/** `elapsedMs`: undefined with --dry-run. */
export function closing(
  { program: { name, notes = [] } }: ExportSelection,
  tally: ExportTally,
  target: string,
  elapsedMs: number | undefined,
): string[] {
  const counts = {
    unchanged: tally.of('unchanged'),
    'without rows': tally.of('empty'),
    'left out': tally.refused.length,
    'not written': tally.of(...FAILURES),
  };
  const parts = [
    elapsedMs === undefined ? `${countText(tally.of('planned'), 'file')} to write` : tally.text(),
    ...Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${numberText(count)} ${what}`] : [])),
  ];
  const time = elapsedMs === undefined ? '' : ` in ${durationText(elapsedMs)}`;
  return [
    `${parts.join('; ')}${time}: ${shownPath(target)}`,
    ...(tally.filesWithRows === 0 ? [tally.nothingText()] : []),
    ...(tally.of('written') > 0 ? notes : []),
    ...(counts['not written'] > 0
      ? [`next  cryptodl export ${name} again, after the reasons above are removed`]
      : []),
  ];
}
