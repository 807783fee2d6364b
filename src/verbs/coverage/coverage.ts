/** `cryptodl coverage`: prints the held rows of a lake compared with the expected rows. */
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { listText } from '../../model/units.js';
import { withSignals } from '../../run/look-up.js';
import type { LookUp } from '../../run/look-up.js';
import type { Command } from '../../run/verb.js';
import { writeData, writeExact, writeText } from '../../terminal/write-data.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { printLines } from '../../text/printable.js';
import { coverSelected } from '../../run/cover-selected.js';
import type { LakeCoverage } from '../../run/cover-selected.js';
import type { CoverageCounts } from '../../lake/catalogue/coverage-counts.js';
import { NextStep } from './next-step.js';
import { coverageTexts, CSV_HEAD, csvLines, seriesRecord } from './print-coverage.js';

const MOST_REFUSED = 10;

/** Resolves with 1 when a manifest or one of its lines cannot be read, else with 4 when a series is below `--min`. */
export async function coverage(run: Command): Promise<ExitCode> {
  const { options } = run.resolved;
  if (options.json && options.csv) throw usage('--json and --csv cannot be used together', 'keep one');
  if (options.summary && options.csv) throw usage('--summary and --csv cannot be used together', 'keep one');
  return withSignals(run, async (request) => {
    const lake = await coverSelected(request);
    const nowMs = options.nowMs ?? run.io.clock.now();
    const next = new NextStep({ ...run, nowMs, failures: lake.failures });
    await write(run, lake, next);
    return conclude(run, lake.found, next);
  });
}

async function write(
  { io, resolved }: LookUp,
  { covered, found, by, periodOf }: LakeCoverage,
  next: NextStep,
): Promise<void> {
  const { options } = resolved;
  const toNext = async function* (): AsyncGenerator<SeriesStates> {
    for await (const one of covered) {
      next.add(one);
      yield one;
    }
  };
  if (options.summary || options.json) {
    for await (const one of toNext()) {
      if (options.summary) continue;
      if (!(await writeData(io, [{ event: 'series', ...seriesRecord(one, periodOf(one)) }]))) return;
    }
    await writeData(io, [options.json ? { event: 'summary', ...found.record() } : found.line()]);
  } else if (options.csv) {
    if (!(await writeExact(io, CSV_HEAD))) return;
    for await (const one of toNext())
      if (!(await writeExact(io, csvLines(one, periodOf(one)).join('')))) return;
  } else {
    for await (const text of coverageTexts(toNext(), io, { by, isAll: options.all }))
      if (!(await writeText(io, text))) return;
  }
}

function conclude(
  { io, resolved }: LookUp,
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
