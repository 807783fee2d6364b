/** The data of runs in the page: the chosen run with its failures, the history of the lake, and the delays of publication. */
import { lstat } from 'node:fs/promises';
import { join, sep, basename } from 'node:path';
import { bringIn, backingOf } from '../../files/backing.js';
import { FOLDERS, type LakePaths } from '../../lake/layout.js';
import { grouped } from '../../model/by-name.js';
import { usage, toCryptodlError } from '../../model/errors.js';
import type { RunRecord } from '../../run/monitor/run-record.js';
import { shownPath } from '../../text/printable.js';
import { readFailureReport } from '../../run/report/read-failure-report.js';

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
      throw usage(`${shownPath(path)} is not a failure report of this lake`);
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
