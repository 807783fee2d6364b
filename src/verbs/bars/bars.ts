/** `cryptodl bars`: makes bars from rows of the lake. Sends no request. */
import { progressPrinter } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { Command } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { exitCodeOfFindings, type ExitCode } from '../../model/exit-code.js';
import { seriesName } from '../../model/task.js';
import { bytesText, countText, durationText, numberText } from '../../model/units.js';
import { printLines, tabbed } from '../../text/printable.js';
import { parseBar } from './bar-rule.js';
import { buildBars, type BarsFlag } from './build-bars.js';
import { NOTHING, addAmounts, type Amounts, type BuiltSeries } from './build-series.js';

/** Resolves with 0; 4 if a symbol has no source or no readable one; 6 while another run writes to the lake. */
export async function bars(command: Command<BarsFlag | 'json' | 'quiet'>): Promise<ExitCode> {
  const { io, operand = '', resolved } = command;
  const { dryRun, json, quiet } = resolved.options;
  return withSignals(command, async (request) => {
    const startedAt = io.clock.monotonic();
    const progress = progressPrinter(resolved.options, io);
    let made = 0;
    const onMonth = (): void => {
      made += 1;
      progress(() => countText(made, 'month'));
    };
    const sums = { made: 0, skipped: 0, empty: 0, failed: 0, ...NOTHING, months: 0 };
    for await (const series of buildBars(parseBar(operand), request, onMonth)) {
      const { outcome, months } = series;
      sums[outcome] += 1;
      sums.months += months.length;
      addAmounts(sums, series);
      const planned = months.map((month) => tabbed(['make', seriesName(series), month]));
      const lines = json ? [{ event: 'series', ...series }] : dryRun && outcome === 'made' ? planned : [];
      if (!(await writeData(io, lines))) return 0;
      if (lines.length === 0 && (outcome === 'failed' || (!quiet && outcome !== 'skipped')))
        printLines(io.stderr, [lineOf(series)]);
    }
    const exitCode = exitCodeOfFindings({ lasting: sums.failed > 0 });
    const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
    if (json) await writeData(io, [{ event: 'summary', dryRun, ...sums, exitCode, elapsedMs }]);
    if (!quiet || sums.failed > 0) printLines(io.stderr, closing(sums, dryRun ? undefined : elapsedMs));
    return exitCode;
  });
}

function lineOf({ outcome, text = '', source = '', ...series }: BuiltSeries): string {
  if (outcome !== 'made') return `${seriesName(series)}: not made: ${text}`;
  const amounts = `${countText(series.bars, 'bar')} of ${countText(series.days, 'day')} in ${countText(series.months.length, 'month')}`;
  return [`${seriesName(series)}: ${amounts} made from ${source}`, ...lackTexts(series, source)].join('; ');
}

/** Days without bars; and bars that were made from some of their rows, together with bars that are absent because all of their rows are. */
function lackTexts({ missingDays: lacking, short }: Amounts, source: string): string[] {
  return [
    ...(lacking > 0 ? [`${source} lack ${countText(lacking, 'day')}`] : []),
    ...(short > 0 ? [`${countText(short, 'bar')} ${short === 1 ? 'lacks' : 'lack'} rows of the source`] : []),
  ];
}

/** `elapsedMs`: undefined with --dry-run. */
function closing(
  sums: Amounts & Readonly<Record<BuiltSeries['outcome'] | 'months', number>>,
  elapsedMs: number | undefined,
): string[] {
  const { made, skipped, empty, failed, months } = sums;
  const days = countText(sums.days, 'day');
  const amounts =
    elapsedMs === undefined
      ? `to make (${days} in ${countText(months, 'month')})`
      : `made (${countText(sums.bars, 'bar')} of ${days} in ${countText(months, 'file')}, ${bytesText(sums.bytes)})`;
  const parts = [
    ...(made > 0 ? [`${numberText(made)} series ${amounts}`] : []),
    ...(skipped > 0 ? [`nothing new for ${numberText(skipped)} series`] : []),
    ...(empty > 0 ? [`no rows to make bars from for ${numberText(empty)} series`] : []),
    ...(failed > 0 ? [`${numberText(failed)} series not made`] : []),
  ];
  const head = parts.join('; ') || 'no series';
  if (elapsedMs === undefined) return [head];
  const lacking = lackTexts(sums, 'the sources').join('; ');
  return [
    `${head} in ${durationText(elapsedMs)}`,
    ...(lacking === '' ? [] : [`${lacking}; cryptodl coverage shows gaps`]),
  ];
}
