/** `cryptodl coverage`: prints the held rows of a lake compared with the expected rows. */
import { listText } from '../../model/units.js';
import type { CoverageFlag } from '../../plan/options/verb-request.js';
import { tapped } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { Command } from '../../run/verb/verb.js';
import { writeData, writeExact, writeText } from '../../terminal/write-data.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { printLines } from '../../text/printable.js';
import { coverSelected, type LakeCoverage } from '../../run/verdict/cover-selected.js';
import type { CoverageCounts } from '../../lake/catalogue/coverage-counts.js';
import { coverageTexts } from './print-coverage.js';
import { CSV_HEAD, csvLines, seriesRecord } from './coverage-records.js';
import { NextStep } from './next-step.js';

const MOST_REFUSED = 10;

type CoverageCommand = Command<CoverageFlag | 'all' | 'csv' | 'json' | 'quiet' | 'summary'>;

/** Resolves with 1 when a manifest or one of its lines cannot be read, else with 4 when a series is below `--min`. */
export async function coverage(command: CoverageCommand): Promise<ExitCode> {
  const { options } = command.resolved;
  if (options.json && options.csv) throw usage('--json and --csv cannot be used together', 'keep one');
  if (options.summary && options.csv) throw usage('--summary and --csv cannot be used together', 'keep one');
  return withSignals(command, async (request) => {
    const lakeCoverage = await coverSelected(request);
    const next = new NextStep(command, options.nowMs ?? command.io.clock.now(), lakeCoverage.failures);
    await write(command, lakeCoverage, next);
    return conclude(command, lakeCoverage.found, next);
  });
}

async function write(
  { io, resolved }: CoverageCommand,
  { covered, found, by, periodOf }: LakeCoverage,
  next: NextStep,
): Promise<void> {
  const { options } = resolved;
  const all = tapped(covered, (one) => next.add(one));
  if (options.summary || options.json) {
    for await (const one of all) {
      if (options.summary) continue;
      if (!(await writeData(io, [{ event: 'series', ...seriesRecord(one, periodOf(one)) }]))) return;
    }
    await writeData(io, [options.json ? { event: 'summary', ...found.record() } : found.line()]);
  } else if (options.csv) {
    if (!(await writeExact(io, CSV_HEAD))) return;
    for await (const one of all) if (!(await writeExact(io, csvLines(one, periodOf(one)).join('')))) return;
  } else {
    for await (const text of coverageTexts(all, io, { by, isAll: options.all }))
      if (!(await writeText(io, text))) return;
  }
}

function conclude(
  { io, resolved }: CoverageCommand,
  { refused, below, exitCode }: CoverageCounts,
  next: NextStep,
): ExitCode {
  const { minPercent = 0, json, csv, summary, quiet } = resolved.options;
  const more = refused.length - MOST_REFUSED;
  const line = next.line();
  printLines(io.stderr, [
    ...refused
      .slice(0, MOST_REFUSED)
      .flatMap(({ message, hint }) => [`cryptodl: ${message}`, ...(hint === undefined ? [] : [`  ${hint}`])]),
    ...(more > 0 ? [`cryptodl: ${more} more manifests or lines cannot be read`] : []),
    ...(below.length > 0 ? [`below --min ${minPercent} %: ${listText(below)}`] : []),
    ...(line === undefined || json || csv || summary || quiet ? [] : [`next  ${line}`]),
  ]);
  return exitCode;
}
