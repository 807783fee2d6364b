/** The end of a run: exit code, closing block, summary event. */
import type { CryptodlError } from './errors.js';
import { exitCode } from './exit-code.js';
import type { ExitCode } from './exit-code.js';
import { closingBlock } from './report/closing-block.js';
import type { Session } from './session.js';
import { shownPath } from './shown-path.js';
import type { PlanTotals } from './task.js';

export interface RunEnding {
  readonly totals: PlanTotals;
  /** Path under which the run's data lies, and how to read it. */
  readonly dataPath: string;
  readonly next: string | undefined;
  readonly ended: CryptodlError | undefined;
  readonly reportPath: string | undefined;
  readonly elapsedMs: number;
}

export function concludeRun(session: Session, end: RunEnding): ExitCode {
  const { reporter, options } = session;
  const { tally } = reporter;
  const { totals } = end;
  const settled = Object.values(tally.outcomes).reduce((sum, count) => sum + count, 0);
  const code = exitCode({
    ended: end.ended?.code,
    signal: session.signalled(),
    waitedTooLong: tally.waitedTooLong,
    failedRetryable: tally.failedRetryable,
    failedPermanent: tally.failedPermanent,
    holes: tally.absentBy.hole ?? 0,
    partial: tally.outcomes.partial,
    strict: options.strict === true,
  });
  const reportPath =
    end.reportPath === undefined || tally.outcomes.failed === 0 ? undefined : shownPath(end.reportPath);
  const next =
    reportPath !== undefined ? `cryptodl retry ${reportPath}` : tally.files > 0 ? end.next : undefined;
  const undone =
    end.ended === undefined ? 0 : Math.max(0, totals.fetch + totals.skip + totals.absent - settled);
  const lines = closingBlock({
    tally,
    elapsedMs: end.elapsedMs,
    dataPath: end.dataPath,
    reportPath,
    quarantinePath: tally.quarantined > 0 ? shownPath(session.paths.quarantine) : undefined,
    undone,
    next,
  });
  if (end.ended !== undefined)
    reporter.alarm([
      `cryptodl: ${end.ended.message}`,
      ...(end.ended.hint === undefined ? [] : [`  ${end.ended.hint}`]),
    ]);
  if (code === 0) reporter.say(lines);
  else reporter.alarm(lines);
  reporter.event('summary', {
    outcomes: tally.outcomes,
    absent: tally.absentBy,
    failed: tally.failedBy,
    undone,
    bytes: tally.bytes,
    rows: tally.rows,
    files: tally.files,
    requests: tally.requests,
    retries: tally.retries,
    unverified: tally.unverified,
    duplicatesDropped: tally.duplicates,
    duplicatesKept: tally.duplicatesAcross,
    elapsedMs: Math.round(end.elapsedMs),
    failures: end.reportPath ?? null,
    exitCode: code,
  });
  return code;
}
