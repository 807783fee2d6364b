/** `cryptodl report`: writes one HTML file about a lake and one of its runs. */
import { writeFile } from 'node:fs/promises';
import type { CoverageFlag } from '../../plan/options/verb-request.js';
import { progressPrinter, tapped } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { judgeLake } from '../../run/verdict/judge-lake.js';
import { coverSelected, type LakeCoverage } from '../../run/verdict/cover-selected.js';
import { refuseForeignFile, writeOwnFile } from '../../files/own-file.js';
import { lakePaths, refuseFile } from '../../lake/layout.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { bytesText, countText } from '../../model/units.js';
import { TOOL_VERSION } from '../../model/version.js';
import { readRuns } from '../../run/monitor/run-files.js';
import type { RunRecord } from '../../run/monitor/run-record.js';
import { absolutePath, printLines, shownPath } from '../../text/printable.js';
import { dataElement, embedded, pageFile, pageShell } from '../../terminal/page-shell.js';
import { runData, failureData } from './run-data.js';
import { coverageElements } from './coverage-elements.js';

/** The file without --html. */
const USUAL_FILE = 'cryptodl-report.html';

/** Manifests that cannot be read and that the page names. */
const MOST_NOTES = 50;

/** Resolves with 1 when a manifest or one of its lines cannot be read. */
export async function report(
  command: VerbInput<CoverageFlag | 'force' | 'html' | 'json' | 'quiet' | 'run'>,
): Promise<ExitCode> {
  const { io } = command;
  const { options } = command.resolved;
  return withSignals(command, async (request) => {
    const { home } = request.surroundings;
    const path = absolutePath(options.html ?? USUAL_FILE, home);
    const page = pageFile('report', path, options.force);
    await refuseForeignFile(page);
    const notes: string[] = [];
    const warn = (message: string): void => {
      notes.push(message);
      request.observer.warn(message);
    };
    const paths = lakePaths(absolutePath(options.out, home));
    refuseFile(paths.root);
    const found = await readRuns(paths);
    const noted = { ...request, observer: { ...request.observer, warn } };
    // The first run of a lake may have failed.
    const coverage = await coverSelected(noted, { mayBeEmpty: found.runs.length > 0 });
    if (found.warning !== undefined) warn(found.warning);
    const run = chosenRun(found.runs, options.run);
    const say = progressPrinter(options, io);
    let series = 0;
    const counted = tapped(coverage.covered, () => {
      request.signal.throwIfAborted();
      series += 1;
      say(() => countText(series, 'series'));
    });
    const judged = await judgeLake(noted);
    const head = {
      verdict: judged?.summary ?? null,
      made: new Date(options.nowMs ?? io.clock.now()).toISOString(),
      version: TOOL_VERSION,
      lake: paths.root,
      ...runData(run, found.runs),
      failures: await failureData(run, paths, warn),
    };
    const parts = pageParts(head, counted, notes, coverage.found);
    const bytes = await writeOwnFile(page, (staged) => writeFile(staged, parts));
    for (const { message } of coverage.found.refused.slice(0, MOST_NOTES))
      printLines(io.stderr, [`cryptodl: ${message}`]);
    const ofRun = run === undefined ? 'no run' : `run ${run.id}`;
    const wrote = `wrote ${shownPath(path)}: ${countText(series, 'series')}, ${ofRun}, ${bytesText(bytes)}`;
    if (options.json) await writeData(io, [{ event: 'report', path, bytes, run: run?.id ?? null, series }]);
    else if (!options.quiet) await writeData(io, [wrote]);
    return coverage.found.exitCode;
  });
}

function chosenRun(runs: readonly RunRecord[], id: string): RunRecord | undefined {
  if (id === 'last') return runs.at(-1);
  const run = runs.find((each) => each.id === id);
  if (run !== undefined) return run;
  const newest = runs.at(-1)?.id;
  const [has, hint] =
    newest === undefined
      ? ['no records of runs', 'leave out --run']
      : [`no record of this run; its newest one is ${newest}`, `--run ${newest}`];
  throw usage(`--run ${id}: the lake has ${has}`, hint);
}

async function* pageParts(
  head: object,
  covered: AsyncIterable<SeriesStates>,
  notes: readonly string[],
  { refused }: Pick<LakeCoverage['found'], 'refused'>,
): AsyncGenerator<string> {
  const shell = pageShell('report');
  const { before, after } = dataElement('report');
  yield shell.before;
  yield* coverageElements(covered);
  // The counts are complete after the last series.
  const all = [...notes, ...refused.map(({ message }) => message)];
  const rest = { notes: all.slice(0, MOST_NOTES), moreNotes: Math.max(0, all.length - MOST_NOTES) };
  yield before + embedded({ ...head, ...rest }) + after + shell.after;
}
