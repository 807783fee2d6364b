/** `cryptodl bars`: makes bars from rows of the lake. */
import { forEachItem, progressPrinter, runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import { bytesText, countText, durationText, numberText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import { printLines, tabbed } from '../text/printable.js';
import { parseBar } from './bar-rule.js';
import type { BarRule } from './bar-rule.js';
import { buildBars } from './build-bars.js';
import type { BuildSummary, BuiltSeries } from './build-bars.js';

/** Resolves with 0; 4 if a symbol has no source or no readable one; 6 while another run writes to the lake. */
export async function bars(operand: string, run: LookUp): Promise<ExitCode> {
  return runVerb(run, (request) => buildAndPrint(parseBar(operand), run, request));
}

/** Prints the months that are done, at most every ten seconds. */
function monthPrinter({ resolved, io }: LookUp): () => void {
  const print = progressPrinter(resolved.options, io);
  let months = 0;
  return () => {
    months += 1;
    print(() => countText(months, 'month'));
  };
}

async function buildAndPrint(rule: BarRule, run: LookUp, request: VerbRequest): Promise<ExitCode> {
  const { io, resolved } = run;
  const { dryRun, json, quiet } = resolved.options;
  const startedAt = io.clock.monotonic();
  const summary = await forEachItem(buildBars(rule, request, monthPrinter(run)), async (series) => {
    if (json) return writeData(io, [{ event: 'series', ...series }]);
    if (dryRun && series.outcome === 'made')
      return writeData(
        io,
        series.months.map((month) => tabbed(['make', seriesName(series), month])),
      );
    const hasText = series.outcome === 'made' || series.text !== undefined;
    if (series.outcome === 'failed' || (!quiet && hasText)) printLines(io.stderr, [lineOf(series)]);
    return true;
  });
  if (summary === undefined) return 0;
  const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
  if (json) await writeData(io, [{ event: 'summary', dryRun, ...summary, elapsedMs }]);
  if (!quiet || summary.failed > 0) printLines(io.stderr, closing(summary, dryRun ? undefined : elapsedMs));
  return summary.exitCode;
}

function lineOf({ outcome, text = '', source = '', months, ...series }: BuiltSeries): string {
  const name = seriesName(series);
  if (outcome !== 'made') return `${name}: not made: ${text}`;
  const { bars: number, days, missingDays, short } = series;
  const lacking = [
    ...(missingDays > 0 ? [`; ${source} lack ${countText(missingDays, 'day')}`] : []),
    ...(short > 0 ? [`; ${lackText(short)}`] : []),
  ].join('');
  return `${name}: ${countText(number, 'bar')} of ${countText(days, 'day')} in ${countText(months.length, 'month')} made from ${source}${lacking}`;
}

/** Bars that were made from some of their rows, and bars that are absent because all of their rows are. */
function lackText(short: number): string {
  return `${countText(short, 'bar')} ${short === 1 ? 'lacks' : 'lack'} rows of the source`;
}

/** `elapsedMs`: undefined with --dry-run. */
function closing(summary: BuildSummary, elapsedMs: number | undefined): string[] {
  const { made, skipped, empty, failed, months, days, bars: number, short, missingDays, bytes } = summary;
  const amounts =
    elapsedMs === undefined
      ? `to make (${countText(days, 'day')} in ${countText(months, 'month')})`
      : `made (${countText(number, 'bar')} of ${countText(days, 'day')} in ${countText(months, 'file')}, ${bytesText(bytes)})`;
  const parts = [
    ...(made > 0 ? [`${numberText(made)} series ${amounts}`] : []),
    ...(skipped > 0 ? [`nothing new for ${numberText(skipped)} series`] : []),
    ...(empty > 0 ? [`no rows to make bars from for ${numberText(empty)} series`] : []),
    ...(failed > 0 ? [`${numberText(failed)} series not made`] : []),
  ];
  const head = parts.length === 0 ? 'no series' : parts.join('; ');
  if (elapsedMs === undefined) return [head];
  const lacking = [
    ...(missingDays > 0 ? [`the sources lack ${countText(missingDays, 'day')}`] : []),
    ...(short > 0 ? [lackText(short)] : []),
  ];
  return [
    `${head} in ${durationText(elapsedMs)}`,
    ...(lacking.length > 0 ? [`${lacking.join('; ')}; cryptodl coverage shows gaps`] : []),
  ];
}
