/** `cryptodl report`: writes one HTML file about a lake and one of its runs. */
import { writeFile } from 'node:fs/promises';
import { progressPrinter, runVerb } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import type { SeriesStates } from '../catalogue/day-states.js';
import { judgeLake, summaryOfVerdict } from '../check/judge-lake.js';
import { coverSelected } from '../coverage/cover-selected.js';
import type { LakeCoverage } from '../coverage/cover-selected.js';
import { beginsWith, refuseForeignFile, writeOwnFile } from '../files/own-file.js';
import type { OwnFile } from '../files/own-file.js';
import { lakePaths, refuseFile } from '../lake/layout.js';
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import { bytesText, countText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import { readRuns } from '../monitor/run-record.js';
import type { FoundRuns, RunRecord } from '../monitor/run-record.js';
import { absolutePath, printLines, shownPath } from '../text/printable.js';
import { coverageElements } from './coverage-data.js';
import { dataElement, embedded, pageShell, pageStart } from './shell.js';
import { failureData } from './failure-data.js';
import { runData } from './run-data.js';

/** The file without --html. */
const USUAL_FILE = 'cryptodl-report.html';

/** Manifests that cannot be read and that the page names. */
const MOST_NOTES = 50;

/** Resolves with 1 when a manifest or one of its lines cannot be read. */
export async function report(command: LookUp): Promise<ExitCode> {
  const { io, resolved } = command;
  const { options } = resolved;
  return runVerb(command, async (request) => {
    const home = io.environment['HOME'];
    const path = absolutePath(options.html ?? USUAL_FILE, home);
    const page: OwnFile = {
      flag: 'html',
      path,
      what: 'a report',
      isOwn: beginsWith(pageStart('report')),
      force: options.force,
    };
    await refuseForeignFile(page);
    const notes: string[] = [];
    const warn = (message: string): void => {
      notes.push(message);
      request.observer.warn(message);
    };
    const paths = lakePaths(absolutePath(options.out, home));
    refuseFile(paths.root);
    const found = await readRuns(paths);
    const lake = await coverSelected(
      { ...request, observer: { ...request.observer, warn } },
      // The first run of a lake may have failed.
      { mayBeEmpty: found.runs.length > 0 },
    );
    if (found.warning !== undefined) warn(found.warning);
    const run = chosenRun(found, options.run);
    const say = progressPrinter(options, io);
    let series = 0;
    const counted = async function* (): AsyncGenerator<SeriesStates> {
      for await (const one of lake.covered) {
        request.signal.throwIfAborted();
        series += 1;
        say(() => countText(series, 'series'));
        yield one;
      }
    };
    const nowMs = options.nowMs ?? io.clock.now();
    const judged = await judgeLake({ ...request, paths, venue: request.source, nowMs, warn });
    const head = {
      verdict: judged === undefined ? null : summaryOfVerdict(judged),
      made: new Date(nowMs).toISOString(),
      version: TOOL_VERSION,
      lake: paths.root,
      ...runData(run, found.runs),
      failures: await failureData(run, paths, warn),
    };
    const parts = pageParts(head, counted(), { lake, notes });
    const bytes = await writeOwnFile(page, (staged) => writeFile(staged, parts));
    for (const { message } of lake.found.refused.slice(0, MOST_NOTES))
      printLines(io.stderr, [`cryptodl: ${message}`]);
    if (options.json) await writeData(io, [{ event: 'report', path, bytes, run: run?.id ?? null, series }]);
    else if (!options.quiet)
      await writeData(io, [
        `wrote ${shownPath(path)}: ${countText(series, 'series')}, ${run === undefined ? 'no run' : `run ${run.id}`}, ${bytesText(bytes)}`,
      ]);
    return lake.found.exitCode;
  });
}

function chosenRun({ runs }: FoundRuns, id: string): RunRecord | undefined {
  if (id === 'last') return runs.at(-1);
  const run = runs.find((each) => each.id === id);
  if (run !== undefined) return run;
  const newest = runs.at(-1);
  if (newest === undefined) throw usage(`--run ${id}: the lake has no records of runs`, 'leave out --run');
  throw usage(
    `--run ${id}: the lake has no record of this run; its newest one is ${newest.id}`,
    `--run ${newest.id}`,
  );
}

async function* pageParts(
  head: object,
  covered: AsyncIterable<SeriesStates>,
  { lake, notes }: { readonly lake: LakeCoverage; readonly notes: readonly string[] },
): AsyncGenerator<string> {
  const shell = pageShell('report');
  const data = dataElement('report');
  yield shell.before;
  yield* coverageElements(covered);
  // The counts are complete after the last series.
  const { refused, skipped } = lake.found.record();
  const all = [...notes, ...(skipped ?? []).filter((text) => !notes.includes(text)), ...refused];
  const rest = { notes: all.slice(0, MOST_NOTES), moreNotes: Math.max(0, all.length - MOST_NOTES) };
  yield data.before;
  yield embedded({ ...head, ...rest });
  yield data.after;
  yield shell.after;
}
