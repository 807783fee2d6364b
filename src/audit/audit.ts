/** `cryptodl audit`: prints findings about the archive; with --prefer daily, rebuilds worse months of the lake from daily objects. */
import { endLookUp, openLookUp, progressPrinter, asUnreachable } from '../cli/look-up.js';
import type { LookUp, Signals } from '../cli/look-up.js';
import { correctedLine } from '../cli/print-error.js';
import { watchSignals } from '../model/io.js';
import { writeData } from '../cli/write-data.js';
import { openLogOf, openReporter, runAndPrint } from '../download/download.js';
import type { Session } from '../download/session.js';
import { monthText } from '../model/calendar.js';
import { exitCode, exitCodeOfJobs } from '../model/exit-code.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import { countText } from '../model/units.js';
import { surroundingsOf } from '../options/environment.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import { readLists } from '../options/symbols.js';
import { printLines } from '../text/printable.js';
import { auditArchive } from './audit-archive.js';
import type { AuditedMonth, AuditFailure } from './audit-archive.js';
import type { AuditFinding } from './audit-finding.js';
import { findingText } from './audit-finding.js';
import { rebuildsOf, selectRebuilds } from './rebuild-months.js';
import { comparableMonths, selectAudit } from './select-audit.js';

/**
 * Resolves with 7 or 3 for failures that may succeed later, else 4 for findings and permanent failures, else 0. The
 * rebuild counts as a further job (`exitCodeOfJobs`). An error or a signal that ends the audit has its own code.
 */
export async function audit(run: LookUp): Promise<ExitCode> {
  const signals = watchSignals(run.io);
  const tally = new AuditTally();
  try {
    await auditAll(run, signals, tally);
    const isWanted = run.resolved.options.prefer === 'daily' && tally.rebuilds.length > 0;
    const rebuilt = isWanted ? await rebuild(run, signals, tally.rebuilds) : 0;
    return await conclude(run, tally, rebuilt);
  } catch (error) {
    return endLookUp(asUnreachable(error), run, signals);
  } finally {
    signals.release();
  }
}

/** Findings that disappear when daily objects replace the monthly one. A day that is in neither cadence stays missing. */
const MENDED_BY_DAYS: ReadonlySet<AuditFinding['kind']> = new Set([
  'short-month',
  'rows-missing',
  'rows-differ',
]);

/** Counts for the summary and the exit code. */
class AuditTally {
  months = 0;
  compared = 0;
  rows = 0;
  readonly series = new Set<string>();
  readonly findings = new Map<AuditFinding['kind'], number>();
  readonly failures: AuditFailure[] = [];
  readonly rebuilds: SeriesRequest[] = [];
  /** The number of months with a monthly object, and with daily objects. */
  readonly listed = { monthly: 0, daily: 0 };
  /** The months `[from, to)` of the series whose dataset has both cadences. */
  comparable: { readonly from: number | undefined; readonly to: number } | undefined;
  /**
   * Findings and failures of monthly objects whose months the lake holds as daily objects. `rebuilt`: the number of those in months
   * that this run rebuilds.
   */
  readonly mendable = { findings: 0, failures: new Set<AuditFailure>(), rebuilt: 0 };

  add({ audit: { series, findings, daysCompared, rows }, failures, monthlyKey, days }: AuditedMonth): void {
    this.series.add(seriesName(series));
    this.months += 1;
    if (monthlyKey !== undefined) this.listed.monthly += 1;
    if (days.size > 0) this.listed.daily += 1;
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
  exitCode(isMended: boolean): ExitCode {
    const failures = isMended
      ? this.failures.filter((failure) => !this.mendable.failures.has(failure))
      : this.failures;
    const found = this.found - (isMended ? this.mendable.findings : 0);
    const retryable = failures.filter(({ error }) => error.retryable).length;
    return exitCode({
      ended: undefined,
      signal: undefined,
      waitedTooLong: failures.filter(({ error }) => error.code === 'wait-too-long').length,
      failedRetryable: retryable,
      // A finding stays until the archive publishes the object again.
      failedPermanent: failures.length - retryable + found,
      holes: 0,
      partial: 0,
      strict: false,
      written: 0,
      nothingIsError: false,
    });
  }
}

async function auditAll(run: LookUp, signals: Signals, tally: AuditTally): Promise<void> {
  const { io, resolved } = run;
  const session = openLookUp(run, signals);
  try {
    await session.refuseBanned('audit');
    const soFar = progressPrinter(resolved.options, io);
    const audited = await selectAudit(session, resolved, readLists(io));
    tally.comparable = comparableMonths(audited, session.venue);
    for await (const month of auditArchive(session, audited)) {
      tally.add(month);
      await printMonth(run, month);
      await collectRebuilds(run, session, month, tally);
      soFar(() => textOf(tally));
    }
  } finally {
    await session.close();
  }
}

async function collectRebuilds(
  { io, resolved }: LookUp,
  session: Pick<Session, 'paths' | 'venue'>,
  month: AuditedMonth,
  tally: AuditTally,
): Promise<void> {
  const { requests, notes, isFromDays } = await rebuildsOf(session, month);
  tally.rebuilds.push(...requests);
  if (isFromDays) tally.addFromDays(month, requests.length > 0);
  if (resolved.options.prefer === 'daily') printLines(io.stderr, notes);
}

async function printMonth(
  { io, resolved }: LookUp,
  { audit: { series, month, findings }, failures }: AuditedMonth,
): Promise<void> {
  const isJson = resolved.options.json;
  for (const finding of findings) {
    const text = findingText(finding);
    const line = isJson
      ? { event: 'finding', ...series, month, ...finding, text }
      : `${seriesName(series)} ${month}  ${finding.kind}  ${text}`;
    await writeData(io, [line]);
  }
  for (const { key, error } of failures) {
    const { code, retryable, message } = error;
    if (isJson) await writeData(io, [{ event: 'failed', ...series, month, key, code, retryable, message }]);
    printLines(io.stderr, [`failed  ${key}: ${message}`]);
  }
}

/** Runs the rebuild as an ordinary run with plan, outcomes and summary. */
async function rebuild(
  { source, io, resolved, typed }: LookUp,
  signals: Signals,
  requests: readonly SeriesRequest[],
): Promise<ExitCode> {
  const reporter = openReporter(resolved.options, { io, log: openLogOf(resolved.options, io) });
  try {
    const printed = await runAndPrint(
      {
        source,
        resolved,
        surroundings: surroundingsOf(io.environment),
        read: readLists(io),
        observer: reporter,
        clock: io.clock,
        signal: signals.signal,
        verb: 'vision',
        select: selectRebuilds(requests),
      },
      { reporter, io, typed, signalled: signals.signalled },
    );
    return printed.exitCode;
  } finally {
    reporter.close();
  }
}

async function conclude(
  { io, resolved, typed }: LookUp,
  tally: AuditTally,
  rebuilt: ExitCode,
): Promise<ExitCode> {
  const { options } = resolved;
  const isPreferred = options.prefer === 'daily';
  const isMended = isPreferred && rebuilt === 0;
  const code = exitCodeOfJobs([tally.exitCode(isMended), rebuilt], undefined);
  const right = isMended ? tally.mendable.findings + tally.mendable.failures.size : 0;
  const mended = isMended ? tally.mendable.rebuilt : 0;
  const summary = {
    series: tally.series.size,
    months: tally.months,
    compared: tally.compared,
    rows: tally.rows,
    findings: Object.fromEntries(tally.findings),
    failed: tally.failures.length,
    [isPreferred ? 'rebuilt' : 'rebuildable']: tally.rebuilds.length,
    ...(isPreferred ? { mended } : {}),
    exitCode: code,
  };
  if (options.json) await writeData(io, [{ event: 'audit', ...summary }]);
  if (options.quiet && code === 0) return code;
  printLines(io.stderr, [`${textOf(tally)}${rightText(mended, right - mended)}`]);
  if (tally.compared === 0 && tally.failures.length === 0) printLines(io.stderr, nothingComparedLines(tally));
  if (tally.rebuilds.length > 0 && !isPreferred) {
    const months = `${countText(tally.rebuilds.length, 'month')} of the lake`;
    const line = correctedLine(typed.argv, { flags: { prefer: 'daily' } }, io.environment, typed.before);
    printLines(io.stderr, [`${months} would be better from daily objects`, `next: ${line}`]);
  }
  return code;
}

/** Explains that no rows were compared, if the archive lacks one of the cadences. */
function nothingComparedLines({ comparable, listed }: AuditTally): string[] {
  const lacking = listed.monthly === 0 ? 'monthly' : listed.daily === 0 ? 'daily' : undefined;
  if (comparable === undefined || lacking === undefined) return [];
  const { from, to } = comparable;
  const last = monthText(to - 1);
  const months =
    from === undefined ? `up to ${last}` : `for ${from === to - 1 ? '' : `${monthText(from)} … `}${last}`;
  return [`nothing was compared: the archive has no ${lacking} object ${months}`];
}

function rightText(mended: number, before: number): string {
  const parts = [
    ...(mended > 0 ? [`${mended} now fixed in the lake`] : []),
    ...(before > 0 ? [`${before} fixed in the lake earlier`] : []),
  ];
  return parts.length === 0 ? '' : `; ${parts.join(', ')}`;
}

function textOf(tally: AuditTally): string {
  const failed =
    tally.failures.length > 0 ? `, ${countText(tally.failures.length, 'object')} could not be read` : '';
  return `${tally.series.size} series, ${countText(tally.months, 'month')}: ${tally.compared} with both cadences, ${countText(tally.rows, 'row')} compared; ${countText(tally.found, 'finding')}${failed}`;
}
