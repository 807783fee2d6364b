/** Counts the findings of an audit, and collects the months of the lake that daily objects would improve. */
import { exitCode, type ExitCode } from '../../model/exit-code.js';
import { seriesName } from '../../model/task.js';
import { countText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import type { CryptodlError } from '../../model/errors.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import type { AuditFinding, AuditedMonth } from './findings.js';
import type { Rebuild } from './rebuilds.js';
import type { Sample } from '../../plan/options/lake-flags.js';

export interface AuditSummary {
  readonly series: number;
  /** Months; with --against rest, days or months. */
  readonly months: number;
  /** Those with rows of both sides. */
  readonly compared: number;
  /** Compared rows. */
  readonly rows: number;
  readonly findings: Readonly<Partial<Record<AuditFinding['kind'], number>>>;
  /** Objects that could not be read. */
  readonly failed: number;
  /** Months of the lake whose daily objects are better; with --prefer daily, this call rebuilds them. */
  readonly rebuildable: number;
  /** With --prefer daily: findings that the lake does not have, because it holds the daily objects. */
  readonly mended: number;
  /** The value of --sample that draws the same periods again. */
  readonly sample?: string;
  readonly exitCode: ExitCode;
}

export class AuditTally {
  readonly rebuilds: SelectedSeries[] = [];
  readonly #series = new Set<string>();
  readonly #findings: Partial<Record<AuditFinding['kind'], number>> = {};
  readonly #errors: CryptodlError[] = [];
  readonly #counts = { months: 0, compared: 0, rows: 0, rebuildable: 0 };
  #mended = 0;

  constructor(private readonly sample?: Sample) {}

  add(
    { series, findings, failed, rows }: AuditedMonth,
    { requests, mended }: Rebuild = { requests: [], mended: 0 },
  ): void {
    const counts = this.#counts;
    this.#series.add(seriesName(series));
    counts.months += 1;
    counts.compared += rows > 0 ? 1 : 0;
    counts.rows += rows;
    counts.rebuildable += requests.length > 0 ? 1 : 0;
    this.#errors.push(...failed.values());
    for (const { kind } of findings) this.#findings[kind] = (this.#findings[kind] ?? 0) + 1;
    this.rebuilds.push(...requests);
    this.#mended += mended;
  }

  /** `rebuilt`: the exit code of the rebuild, a part of the command; undefined without --prefer daily. */
  summary(rebuilt?: ExitCode): AuditSummary {
    const mended = rebuilt === 0 ? this.#mended : 0;
    const found = Object.values(this.#findings).reduce((sum, number) => sum + number, 0);
    const retryable = this.#errors.filter((error) => error.retryable).length;
    const code = exitCode({
      waitedTooLong: this.#errors.filter((error) => error.code === 'wait-too-long').length,
      failedRetryable: retryable,
      // A finding stays until the archive publishes the object again.
      failedPermanent: this.#errors.length - retryable + found - mended,
      parts: [rebuilt ?? 0],
    });
    return {
      series: this.#series.size,
      ...this.#counts,
      findings: { ...this.#findings },
      failed: this.#errors.length,
      mended,
      ...(this.sample === undefined ? {} : { sample: `${this.sample.count}:${this.sample.seed ?? ''}` }),
      exitCode: code,
    };
  }
}

export function summaryText(
  { series, months, compared, rows, findings, failed, sample }: AuditSummary,
  { against }: Options<'against'>,
): string {
  const found = Object.values(findings).reduce((sum, number) => sum + number, 0);
  const what =
    against === 'rest'
      ? `${countText(compared, 'period')} compared with REST, ${countText(rows, 'row')}`
      : `${countText(months, 'month')}: ${compared} with both cadences, ${countText(rows, 'row')} compared`;
  const unread = failed > 0 ? `, ${countText(failed, 'object')} could not be read` : '';
  const drawn = sample === undefined ? '' : `; --sample ${sample} draws the same periods again`;
  return `${series} series, ${what}; ${countText(found, 'finding')}${unread}${drawn}`;
}
