/** `cryptodl report`: writes one HTML file about a lake and one of its runs. */
import { writeFile, lstat } from 'node:fs/promises';
import { nowMsOf, type CoverageFlag } from '../../plan/options/verb-request.js';
import { progressPrinter, tapped } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { judgeLake } from '../../run/verdict/judge-lake.js';
import { coverSelected, type LakeCoverage } from '../../run/verdict/cover-selected.js';
import { refuseForeignFile, writeOwnFile } from '../../files/own-file.js';
import { lakePaths, refuseFile, FOLDERS, type LakePaths } from '../../lake/layout.js';
import { usage, toCryptodlError } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { bytesText, countText } from '../../model/units.js';
import { TOOL_VERSION } from '../../model/version.js';
import { readRuns } from '../../run/monitor/run-files.js';
import type { RunRecord } from '../../run/monitor/run-record.js';
import { absolutePath, printLines, shownPath } from '../../text/printable.js';
import { dataElement, embedded, pageFile, pageShell } from '../../terminal/page-shell.js';
import { coverageElements } from './coverage-elements.js';
import { join, sep, basename } from 'node:path';
import { bringIn, backingOf } from '../../files/backing.js';
import { grouped } from '../../model/by-name.js';
import { readFailureReport } from '../../run/failures/read-failure-report.js';

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
      made: new Date(nowMsOf(request)).toISOString(),
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

const MOST_HISTORY = 100;

/** `runs`: oldest first, as the history in the result. Without a record of a run, `run` is null. */
export function runData(run: RunRecord | undefined, runs: readonly RunRecord[]) {
  const latest = runs.slice(-MOST_HISTORY);
  return { run: run ?? null, history: latest.map(pastRun), publication: publications(latest) };
}

function pastRun({ id, verb, job, startedAt, summary }: RunRecord) {
  const { elapsedMs, outcomes, requests, bytes, rows, changed, withdrawn, shorter, exitCode } = summary;
  const figures = { elapsedMs, outcomes, requests, bytes, rows, changed, withdrawn, shorter, exitCode };
  return { id, verb, job: job ?? null, startedAt, ...figures, retries: summary.network.retries.total };
}

/** The newest period of each dataset that the lake holds according to the runs, and the delays of its publication in milliseconds. */
function publications(runs: readonly RunRecord[]) {
  const all = runs.flatMap(({ summary }) => summary.datasets);
  return [...grouped(all, ({ market, dataset }) => `${market} ${dataset}`).values()].map((figures) => {
    const delays = figures.flatMap(({ publicationDelayMs }) => publicationDelayMs ?? []);
    const sorted = delays.toSorted((a, b) => a - b);
    const newest = figures.toSorted((a, b) => (a.newestEndMs ?? 0) - (b.newestEndMs ?? 0)).at(-1);
    return {
      market: figures[0]?.market ?? '',
      dataset: figures[0]?.dataset ?? '',
      newest: newest?.newest ?? null,
      newestEndMs: newest?.newestEndMs ?? null,
      lastMs: delays.at(-1) ?? null,
      medianMs: sorted[Math.floor((sorted.length - 1) / 2)] ?? null,
      mostMs: sorted.at(-1) ?? null,
      runs: figures.length,
    };
  });
}

/** Failures in the page, at most. The page counts the others by code. */
const MOST_ENTRIES = 2000;
const NO_FAILURES = { path: null, entries: [], more: {} };

/** `path` is null without a report; `more`: failures that are only in the report, by code. `warn` is called for a report that cannot be read. */
export async function failureData(
  run: RunRecord | undefined,
  paths: LakePaths,
  warn: (message: string) => void,
) {
  if (run === undefined || run.summary.outcomes.failed === 0) return NO_FAILURES;
  try {
    const path = await reportOf(run, paths);
    if (path === undefined) return NO_FAILURES;
    await bringIn(path);
    const { header, entries } = await readFailureReport(path);
    // A record may name any file. One outside of the lake is read on only if it says that it is of a run of this lake.
    if (header.options['out']?.includes(paths.root) !== true && !path.startsWith(join(paths.failures, sep)))
      throw usage(`${shownPath(path)} is not a failure report of this lake`, 'choose another run with --run');
    const more: Record<string, number> = {};
    for (const { code } of entries.slice(MOST_ENTRIES)) more[code] = (more[code] ?? 0) + 1;
    return { path: shownPath(path), entries: entries.slice(0, MOST_ENTRIES), more };
  } catch (error) {
    warn(`${toCryptodlError(error).message}; the page has no failures`);
    return NO_FAILURES;
  }
}

/** The report that the record names, also in a lake that was moved. */
async function reportOf({ summary }: RunRecord, paths: LakePaths): Promise<string | undefined> {
  const folder = await paths.folder(FOLDERS.failures);
  await backingOf(folder)?.openFolders([folder]);
  const named = summary.failures;
  if (named === null) return undefined;
  for (const path of [join(folder, basename(named)), named])
    if ((await lstat(path).catch(() => undefined))?.isFile() === true) return path;
  return undefined;
}
