/** `cryptodl bars`: makes bars from rows of the lake. */
import { forEachItem, progressPrinter, runVerb } from '../cli/look-up.js';
import type { Command } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import { bytesText, countText, durationText, numberText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import { printLines, tabbed } from '../text/printable.js';
import { parseBar } from './bar-rule.js';
import { buildBars } from './build-bars.js';
import type { BuildSummary, BuiltSeries } from './build-bars.js';

/** Resolves with 0; 4 if a symbol has no source or no readable one; 6 while another run writes to the lake. */
export async function bars(run: Command): Promise<ExitCode> {
  return runVerb(run, (request) => buildAndPrint(run, request));
}

async function buildAndPrint(
  { io, operand = '', resolved }: Command,
  request: VerbRequest,
): Promise<ExitCode> {
  const rule = parseBar(operand);
  const { dryRun, json, quiet } = resolved.options;
  const startedAt = io.clock.monotonic();
  const progress = progressPrinter(resolved.options, io);
  let months = 0;
  const onMonth = (): void => {
    months += 1;
    progress(() => countText(months, 'month'));
  };
  const summary = await forEachItem(buildBars(rule, request, onMonth), async (series) => {
    if (json) return writeData(io, [{ event: 'series', ...series }]);
    if (dryRun && series.outcome === 'made')
      return writeData(
        io,
        series.months.map((month) => tabbed(['make', seriesName(series), month])),
      );
    if (series.outcome === 'failed' || (!quiet && series.outcome !== 'skipped'))
      printLines(io.stderr, [lineOf(series)]);
    return true;
  });
  if (summary === undefined) return 0;
  const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
  if (json) await writeData(io, [{ event: 'summary', dryRun, ...summary, elapsedMs }]);
  if (!quiet || summary.failed > 0) printLines(io.stderr, closing(summary, dryRun ? undefined : elapsedMs));
  return summary.exitCode;
}

function lineOf({ outcome, text = '', source = '', ...series }: BuiltSeries): string {
  if (outcome !== 'made') return `${seriesName(series)}: not made: ${text}`;
  const amounts = `${countText(series.bars, 'bar')} of ${countText(series.days, 'day')} in ${countText(series.months.length, 'month')}`;
  return [`${seriesName(series)}: ${amounts} made from ${source}`, ...lackTexts(series, source)].join('; ');
}

/** Days without bars; and bars that were made from some of their rows, together with bars that are absent because all of their rows are. */
function lackTexts(
  { missingDays, short }: Pick<BuiltSeries, 'missingDays' | 'short'>,
  source: string,
): string[] {
  return [
    ...(missingDays > 0 ? [`${source} lack ${countText(missingDays, 'day')}`] : []),
    ...(short > 0 ? [`${countText(short, 'bar')} ${short === 1 ? 'lacks' : 'lack'} rows of the source`] : []),
  ];
}

/** `elapsedMs`: undefined with --dry-run. */
function closing(summary: BuildSummary, elapsedMs: number | undefined): string[] {
  const { made, skipped, empty, failed } = summary;
  const days = countText(summary.days, 'day');
  const amounts =
    elapsedMs === undefined
      ? `to make (${days} in ${countText(summary.months, 'month')})`
      : `made (${countText(summary.bars, 'bar')} of ${days} in ${countText(summary.months, 'file')}, ${bytesText(summary.bytes)})`;
  const parts = [
    ...(made > 0 ? [`${numberText(made)} series ${amounts}`] : []),
    ...(skipped > 0 ? [`nothing new for ${numberText(skipped)} series`] : []),
    ...(empty > 0 ? [`no rows to make bars from for ${numberText(empty)} series`] : []),
    ...(failed > 0 ? [`${numberText(failed)} series not made`] : []),
  ];
  const head = parts.length === 0 ? 'no series' : parts.join('; ');
  if (elapsedMs === undefined) return [head];
  const lacking = lackTexts(summary, 'the sources');
  return [
    `${head} in ${durationText(elapsedMs)}`,
    ...(lacking.length > 0 ? [`${lacking.join('; ')}; cryptodl coverage shows gaps`] : []),
  ];
}
