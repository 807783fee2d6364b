/** Audits the selected months, collects the months of the lake that daily objects would improve, and counts the findings. */
import { openSession } from '../download/session.js';
import { refuseFile } from '../lake/layout.js';
import { exitCode, exitCodeOfJobs } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import type { SeriesRequest } from '../plan/series-request.js';
import { asUnreachable } from '../source/listing.js';
import { auditArchive } from './audit-archive.js';
import type { AuditedMonth, AuditFailure } from './audit-archive.js';
import type { AuditFinding } from './audit-finding.js';
import { rebuildsOf } from './rebuild-months.js';
import { selectAudit } from './select-audit.js';

/** Findings that disappear when daily objects replace the monthly one. A day that is in neither cadence stays missing. */
const MENDED_BY_DAYS: ReadonlySet<AuditFinding['kind']> = new Set([
  'short-month',
  'rows-missing',
  'rows-differ',
]);

/** Counts for the summary and the exit code. */
export class AuditTally {
  months = 0;
  compared = 0;
  rows = 0;
  readonly series = new Set<string>();
  readonly findings = new Map<AuditFinding['kind'], number>();
  readonly failures: AuditFailure[] = [];
  readonly rebuilds: SeriesRequest[] = [];
  /** The number of months in `rebuilds`, which has a request for each format that the lake holds. */
  rebuiltMonths = 0;
  /**
   * Findings and failures of monthly objects whose months the lake holds as daily objects. `rebuilt`: the number of those in months
   * that this run rebuilds.
   */
  readonly mendable = { findings: 0, failures: new Set<AuditFailure>(), rebuilt: 0 };

  add({ audit: { series, findings, daysCompared, rows }, failures }: AuditedMonth): void {
    this.series.add(seriesName(series));
    this.months += 1;
    if (daysCompared > 0) this.compared += 1;
    this.rows += rows;
    this.failures.push(...failures);
    for (const { kind } of findings) this.findings.set(kind, (this.findings.get(kind) ?? 0) + 1);
  }

  /** Adds a month that the lake holds only as daily objects, now or after the rebuild (`isRebuilt`). */
  addFromDays({ audit: { findings }, failures, monthlyKey }: AuditedMonth, isRebuilt: boolean): void {
    const mended = findings.filter(
      ({ key, kind, rows }) => key === monthlyKey && rows > 0 && MENDED_BY_DAYS.has(kind),
    );
    const failed = failures.filter(({ key }) => key === monthlyKey);
    this.mendable.findings += mended.length;
    for (const failure of failed) this.mendable.failures.add(failure);
    if (isRebuilt) this.mendable.rebuilt += mended.length + failed.length;
  }

  get found(): number {
    return [...this.findings.values()].reduce((sum, number) => sum + number, 0);
  }

  /** `isMended`: the months of `mendable` are now in the lake as daily objects, so their findings and failures do not count. */
  #exitCode(isMended: boolean): ExitCode {
    const failures = isMended
      ? this.failures.filter((failure) => !this.mendable.failures.has(failure))
      : this.failures;
    const found = this.found - (isMended ? this.mendable.findings : 0);
    const retryable = failures.filter(({ error }) => error.retryable).length;
    return exitCode({
      waitedTooLong: failures.filter(({ error }) => error.code === 'wait-too-long').length,
      failedRetryable: retryable,
      // A finding stays until the archive publishes the object again.
      failedPermanent: failures.length - retryable + found,
    });
  }

  /** `rebuilt`: the exit code of the rebuild; undefined without --prefer daily. */
  summary(rebuilt: ExitCode | undefined): AuditSummary {
    const isMended = rebuilt === 0;
    const rebuilds = this.rebuiltMonths;
    return {
      series: this.series.size,
      months: this.months,
      compared: this.compared,
      rows: this.rows,
      findings: Object.fromEntries(this.findings),
      failed: this.failures.length,
      ...(rebuilt === undefined
        ? { rebuildable: rebuilds }
        : { rebuilt: rebuilds, mended: isMended ? this.mendable.rebuilt : 0 }),
      exitCode: exitCodeOfJobs([this.#exitCode(isMended), rebuilt ?? 0], undefined),
    };
  }
}

/** The counts of an audit as plain data. */
export interface AuditSummary {
  readonly series: number;
  readonly months: number;
  /** Months with rows of both cadences. */
  readonly compared: number;
  /** Compared rows. */
  readonly rows: number;
  readonly findings: Readonly<Partial<Record<AuditFinding['kind'], number>>>;
  /** Objects that could not be read. */
  readonly failed: number;
  /** Without --prefer daily: months of the lake that should be rebuilt from daily objects. */
  readonly rebuildable?: number;
  /** With --prefer daily: months that were rebuilt from daily objects. */
  readonly rebuilt?: number;
  /** With --prefer daily: findings and failures of the rebuilt months, if the rebuild succeeded. */
  readonly mended?: number;
  readonly exitCode: ExitCode;
}

/** One audited month, with the reasons why it is not rebuilt, and the counts so far. */
export interface AuditStep {
  readonly month: AuditedMonth;
  readonly notes: readonly string[];
  readonly tally: AuditTally;
}

/** Yields the months and returns the counts. Rejects with usage errors and fatal errors. */
export async function* auditSelected(request: VerbRequest): AsyncGenerator<AuditStep, AuditTally> {
  const session = openSession(request);
  const tally = new AuditTally();
  try {
    refuseFile(session.paths.root);
    await session.refuseBanned('audit');
    const audited = await selectAudit(session, request.resolved, request.read);
    for await (const month of auditArchive(session, audited)) {
      tally.add(month);
      const { requests, notes, isFromDays } = await rebuildsOf(session, month);
      tally.rebuilds.push(...requests);
      tally.rebuiltMonths += requests.length > 0 ? 1 : 0;
      if (isFromDays) tally.addFromDays(month, requests.length > 0);
      yield { month, notes, tally };
    }
    return tally;
  } catch (error) {
    throw asUnreachable(error);
  } finally {
    await session.close();
  }
}
