/** `cryptodl bars`: makes bars from rows of the lake, or compares them with those of the archive. */
import { forEachItem, progressPrinter, runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import type { ExitCode } from '../model/exit-code.js';
import { seriesName } from '../model/task.js';
import { bytesText, countText, durationText, numberText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import { absolutePath, printLines, shellWord, shownPath, tabbed } from '../text/printable.js';
import { parseBar } from './bar-rule.js';
import type { BarRule } from './bar-rule.js';
import { buildBars } from './build-bars.js';
import type { BuildSummary, BuiltSeries } from './build-bars.js';
import { checkBars } from './check-bars.js';
import type { CheckedSeries, CheckSummary } from './check-bars.js';

/** Resolves with 0; 4 if a symbol has no source or no readable one, or with --check if bars differ; 6 while another run writes to the lake. */
export async function bars(operand: string, run: LookUp): Promise<ExitCode> {
  return runVerb(run, async (request) => {
    const rule = parseBar(operand);
    const { check } = run.resolved.options;
    return check ? checkAndPrint(rule, run, request) : buildAndPrint(rule, run, request);
  });
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
  const { options } = resolved;
  const startedAt = io.clock.monotonic();
  const summary = await forEachItem(buildBars(rule, request, monthPrinter(run)), async (series) => {
    if (options.json) return writeData(io, [{ event: 'series', ...series }]);
    const notes = series.notes.map((note) => `${seriesName(series)}: ${note}`);
    if (!options.quiet && notes.length > 0) printLines(io.stderr, notes);
    if (options.dryRun && series.outcome === 'made')
      return writeData(
        io,
        series.months.map((month) => tabbed(['make', seriesName(series), month])),
      );
    const hasText = series.outcome === 'made' || series.text !== undefined;
    if (series.outcome === 'failed' || (!options.quiet && hasText)) printLines(io.stderr, [lineOf(series)]);
    return true;
  });
  if (summary === undefined) return 0;
  const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
  if (options.json)
    await writeData(io, [{ event: 'summary', dryRun: options.dryRun, ...summary, elapsedMs }]);
  const out = shellWord(shownPath(absolutePath(options.out, request.surroundings.home)));
  if (!options.quiet || summary.failed > 0)
    printLines(io.stderr, closing(summary, { isPlan: options.dryRun, elapsedMs, out }));
  return summary.exitCode;
}

function lineOf({
  outcome,
  text = '',
  source = '',
  months,
  days,
  bars: number,
  short,
  missingDays,
  ...series
}: BuiltSeries): string {
  const name = seriesName(series);
  if (outcome !== 'made') return `${name}: not made: ${text}`;
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

interface Closing {
  readonly isPlan: boolean;
  readonly elapsedMs: number;
  /** The lake as a word for a shell. */
  readonly out: string;
}

function closing(summary: BuildSummary, { isPlan, elapsedMs, out }: Closing): string[] {
  const { made, skipped, empty, failed, months, days, bars: number, short, missingDays, bytes } = summary;
  const amounts = isPlan
    ? `${countText(days, 'day')} in ${countText(months, 'month')}`
    : `${countText(number, 'bar')} of ${countText(days, 'day')} in ${countText(months, 'file')}, ${bytesText(bytes)}`;
  const parts = [
    ...(made > 0 ? [`${numberText(made)} series ${isPlan ? 'to make' : 'made'} (${amounts})`] : []),
    ...(skipped > 0 ? [`nothing new for ${numberText(skipped)} series`] : []),
    ...(empty > 0 ? [`no rows to make bars from for ${numberText(empty)} series`] : []),
    ...(failed > 0 ? [`${numberText(failed)} series not made`] : []),
  ];
  const [first = 'no series', ...others] = parts;
  const head = `${[first, ...others].join('; ')}${isPlan ? '' : ` in ${durationText(elapsedMs)}`}`;
  if (isPlan) return [head];
  const lacking = [
    ...(missingDays > 0 ? [`the sources lack ${countText(missingDays, 'day')}`] : []),
    ...(short > 0 ? [`${lackText(short)}, because the lake does not have them`] : []),
  ];
  return [
    head,
    ...(lacking.length > 0 ? [`${lacking.join('; ')}; cryptodl coverage shows gaps`] : []),
    ...(made > 0 ? [`next  cryptodl coverage --dataset bars --out ${out}`] : []),
  ];
}

/** Differences of a series that a person sees. */
const MOST_SHOWN = 20;

async function checkAndPrint(rule: BarRule, run: LookUp, request: VerbRequest): Promise<ExitCode> {
  const { io, resolved } = run;
  const { options } = resolved;
  const summary = await forEachItem(checkBars(rule, request, monthPrinter(run)), (series) =>
    options.json ? writeData(io, jsonOf(series)) : writeCheck(run, series),
  );
  if (summary === undefined) return 0;
  if (options.json) await writeData(io, [{ event: 'summary', ...summary }]);
  if (!options.quiet || summary.exitCode !== 0) printLines(io.stderr, [checkText(summary)]);
  return summary.exitCode;
}

function jsonOf({ differences, ...series }: CheckedSeries): object[] {
  const { market, symbol, interval } = series;
  return [
    ...differences.map((difference) => ({ event: 'difference', market, symbol, interval, ...difference })),
    { event: 'series', ...series, differences: differences.length },
  ];
}

function writeCheck({ io, resolved }: LookUp, series: CheckedSeries): Promise<boolean> {
  const { differences, outcome, text = '', source = '', bars: number } = series;
  const name = `${series.market} ${series.symbol}`;
  if (outcome === 'failed') printLines(io.stderr, [`${name}: not compared: ${text}`]);
  else if (!resolved.options.quiet)
    printLines(io.stderr, [
      `${name}: ${countText(number, 'bar')} from ${source} compared with klines ${series.interval ?? ''}: ${countText(differences.length, 'difference')}`,
    ]);
  const more = differences.length - MOST_SHOWN;
  return writeData(io, [
    ...differences
      .slice(0, MOST_SHOWN)
      .map(({ time, column, made, published }) =>
        tabbed([name, time, column, `made ${made ?? '-'}`, `published ${published ?? '-'}`]),
      ),
    ...(more > 0 ? [`${name}: ${numberText(more)} more; --json prints all`] : []),
  ]);
}

function checkText({ series, failed, bars: number, differences }: CheckSummary): string {
  const notCompared = failed > 0 ? `; ${numberText(failed)} not compared` : '';
  return `${numberText(series)} series, ${countText(number, 'bar')} compared: ${countText(differences, 'difference')}${notCompared}`;
}
