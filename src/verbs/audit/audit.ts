/** `cryptodl audit`: prints findings about the archive, or about the lake against REST; with --prefer daily, rebuilds faulty months of the lake from daily objects. */
import { forEachItem, progressPrinter, withSignals } from '../../run/look-up.js';
import type { LookUp } from '../../run/look-up.js';
import { writeData } from '../../terminal/write-data.js';
import { runAndPrint, withLog } from '../../run/download.js';
import { openLogOf } from '../../run/report/log.js';
import type { ExitCode } from '../../model/exit-code.js';
import { seriesName } from '../../model/task.js';
import { countText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { printLines } from '../../text/printable.js';
import { auditSelected, selectRebuilds } from './audit-selected.js';
import type { AuditSummary, AuditTally } from './audit-selected.js';

/**
 * Resolves with 7 or 3 if a later audit may read the failed objects, else with 4 for findings and permanent failures, else with 0.
 * The rebuild counts as a further job (`exitCodeOfJobs`). An error or a signal that ends the audit has its own code.
 */
export async function audit(run: LookUp): Promise<ExitCode> {
  return withSignals(run, async (request, signals) => {
    const tally = await withLog(request, run.io, (logged) => printItems(run, logged));
    const { io, resolved } = run;
    if (resolved.options.prefer !== 'daily') return conclude(run, tally, undefined);
    if (tally.rebuilds.length === 0) return conclude(run, tally, 0);
    // An ordinary run with plan, outcomes and summary.
    const rebuild = { ...request, verb: 'vision' as const, select: selectRebuilds(tally.rebuilds) };
    const log = openLogOf(resolved.options, io);
    const { exitCode } = await runAndPrint(rebuild, { io, log, signalled: signals.signalled });
    return conclude(run, tally, exitCode);
  });
}

async function printItems({ io, resolved }: LookUp, request: VerbRequest): Promise<AuditTally> {
  const { options } = resolved;
  const printProgress = progressPrinter(options, io);
  const onProgress = (tally: AuditTally): void => printProgress(() => textOf(tally.summary(), options));
  return forEachItem(auditSelected(request, onProgress), async (item) => {
    if (item.event === 'failed') printLines(io.stderr, [`failed  ${item.key}: ${item.message}`]);
    if (options.json) await writeData(io, [item]);
    else if (item.event === 'finding')
      await writeData(io, [`${seriesName(item)} ${item.month}  ${item.kind}  ${item.text}`]);
  });
}

/** `rebuilt`: the exit code of the rebuild; undefined without --prefer daily. */
async function conclude(
  { io, resolved }: LookUp,
  tally: AuditTally,
  rebuilt: ExitCode | undefined,
): Promise<ExitCode> {
  const { options } = resolved;
  const summary = tally.summary(rebuilt);
  const { exitCode, rebuildable, mended } = summary;
  if (options.json) await writeData(io, [{ event: 'audit', ...summary }]);
  if (options.quiet && exitCode === 0) return exitCode;
  printLines(io.stderr, [`${textOf(summary, options)}${mended > 0 ? `; ${mended} fixed in the lake` : ''}`]);
  if (rebuildable > 0 && rebuilt === undefined)
    printLines(io.stderr, [
      `${countText(rebuildable, 'month')} of the lake should be rebuilt from daily objects`,
      'next  the same command with --prefer daily',
    ]);
  return exitCode;
}

function textOf(
  { series, months, compared, rows, findings, failed, sample }: AuditSummary,
  { against }: Pick<Options, 'against'>,
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
