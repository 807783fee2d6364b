/** `cryptodl audit`: prints findings about the archive; with --prefer daily, rebuilds faulty months of the lake from daily objects. */
import { forEachItem, progressPrinter, runVerb } from '../cli/look-up.js';
import type { LookUp, Signals } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import { openReporter, runAndPrint, withLog } from '../download/download.js';
import { openLogOf } from '../report/log.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import { countText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import type { SeriesRequest } from '../plan/series-request.js';
import { printLines } from '../text/printable.js';
import type { AuditedMonth } from './audit-archive.js';
import { findingText } from './audit-finding.js';
import { auditSelected } from './audit-selected.js';
import type { AuditTally } from './audit-selected.js';
import { selectRebuilds } from './rebuild-months.js';

/**
 * Resolves with 7 or 3 if a later audit may read the failed objects, else with 4 for findings and permanent failures, else with 0.
 * The rebuild counts as a further job (`exitCodeOfJobs`). An error or a signal that ends the audit has its own code.
 */
export async function audit(run: LookUp): Promise<ExitCode> {
  return runVerb(run, async (request, signals) => {
    const tally = await withLog(request, run.io, (logged) => printMonths(run, logged));
    const isPreferred = run.resolved.options.prefer === 'daily';
    const rebuilt = !isPreferred
      ? undefined
      : tally.rebuilds.length === 0
        ? 0
        : await rebuild(run, { request, signals }, tally.rebuilds);
    return conclude(run, tally, rebuilt);
  });
}

async function printMonths(run: LookUp, request: VerbRequest): Promise<AuditTally> {
  const { io, resolved } = run;
  const printProgress = progressPrinter(resolved.options, io);
  return forEachItem(auditSelected(request), async ({ month, notes, tally }) => {
    await printMonth(run, month);
    if (resolved.options.prefer === 'daily') printLines(io.stderr, notes);
    printProgress(() => textOf(tally));
    return true;
  });
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
  { io, resolved }: LookUp,
  { request, signals }: { readonly request: VerbRequest; readonly signals: Signals },
  requests: readonly SeriesRequest[],
): Promise<ExitCode> {
  const reporter = openReporter(resolved, io, openLogOf(resolved.options, io));
  try {
    const printed = await runAndPrint(
      { ...request, observer: reporter, verb: 'vision', select: selectRebuilds(requests) },
      { reporter, io, signalled: signals.signalled },
    );
    return printed.exitCode;
  } finally {
    reporter.close();
  }
}

/** `rebuilt`: the exit code of the rebuild; undefined without --prefer daily. */
async function conclude(
  { io, resolved }: LookUp,
  tally: AuditTally,
  rebuilt: ExitCode | undefined,
): Promise<ExitCode> {
  const { options } = resolved;
  const summary = tally.summary(rebuilt);
  const code = summary.exitCode;
  if (options.json) await writeData(io, [{ event: 'audit', ...summary }]);
  if (options.quiet && code === 0) return code;
  const { mended = 0 } = summary;
  const fixed = rebuilt === 0 ? tally.mendable.findings + tally.mendable.failures.size : 0;
  printLines(io.stderr, [`${textOf(tally)}${fixedText(mended, fixed - mended)}`]);
  if (code === 0 && mended > 0)
    printLines(io.stderr, ['all findings are fixed in the lake: it has the rows of the daily objects']);
  if (tally.rebuilds.length > 0 && rebuilt === undefined) {
    const months = `${countText(tally.rebuiltMonths, 'month')} of the lake`;
    printLines(io.stderr, [
      `${months} should be rebuilt from daily objects`,
      'next  the same command with --prefer daily',
    ]);
  }
  return code;
}

/** `now`: findings that this rebuild fixed; `earlier`: findings in months that an earlier run had rebuilt. */
function fixedText(now: number, earlier: number): string {
  const parts = [
    ...(now > 0 ? [`${now} now fixed in the lake`] : []),
    ...(earlier > 0 ? [`${earlier} fixed in the lake earlier`] : []),
  ];
  return parts.length === 0 ? '' : `; ${parts.join(', ')}`;
}

function textOf(tally: AuditTally): string {
  const failed =
    tally.failures.length > 0 ? `, ${countText(tally.failures.length, 'object')} could not be read` : '';
  return `${tally.series.size} series, ${countText(tally.months, 'month')}: ${tally.compared} with both cadences, ${countText(tally.rows, 'row')} compared; ${countText(tally.found, 'finding')}${failed}`;
}
