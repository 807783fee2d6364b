/** The failures of a run in the page, from its failure report. */
import { lstat } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import { backingOf, bringIn } from '../lake/backing.js';
import { FOLDERS } from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import { toCryptodlError, usage } from '../model/errors.js';
import type { RunRecord } from '../monitor/run-record.js';
import { newestReport, readFailureReport } from '../report/failure-report.js';
import type { ReportEntry } from '../report/failure-report.js';
import { shownPath } from '../text/printable.js';

/** Failures in the page, at most. The page counts the others by code. */
const MOST_ENTRIES = 2000;

export interface FailureData {
  /** Null if there is no report. */
  readonly path: string | null;
  readonly entries: readonly ReportEntry[];
  /** Failures and holes that are only in the report, by code. */
  readonly more: Readonly<Record<string, number>>;
}

const NONE: FailureData = { path: null, entries: [], more: {} };

/** `warn` is called for a report that cannot be read. */
export async function failureData(
  run: RunRecord | undefined,
  paths: LakePaths,
  warn: (message: string) => void,
): Promise<FailureData> {
  if (run === undefined || run.summary.outcomes.failed + (run.summary.absent['hole'] ?? 0) === 0) return NONE;
  try {
    const path = await reportOf(run, paths);
    if (path === undefined) return NONE;
    await bringIn(path);
    const { header, jobs, entries } = await readFailureReport(path);
    // A record may name any file. One outside of the lake is read on only if it says that it is of a run of this lake.
    const isOwn = [header, ...jobs].some(({ options }) => options['out']?.includes(paths.root));
    if (!isOwn && !path.startsWith(join(paths.failures, sep)))
      throw usage(`${shownPath(path)} is not a failure report of this lake`);
    const own = entries.filter(({ job }) => job === run.job);
    const more: Record<string, number> = {};
    for (const { code } of own.slice(MOST_ENTRIES)) more[code] = (more[code] ?? 0) + 1;
    return { path: shownPath(path), entries: own.slice(0, MOST_ENTRIES), more };
  } catch (error) {
    warn(`${toCryptodlError(error).message}; the page has no failures`);
    return NONE;
  }
}

/** The report that the record names, also in a lake that was moved. The jobs of a file have one common report, which their records do not name. */
async function reportOf({ summary, job }: RunRecord, paths: LakePaths): Promise<string | undefined> {
  const folder = await paths.folder(FOLDERS.failures);
  await backingOf(folder)?.openFolders([folder]);
  const named = summary.failures ?? (job === undefined ? undefined : await newestReport(folder));
  if (named === undefined) return undefined;
  for (const path of [join(folder, basename(named)), named])
    if ((await lstat(path).catch(() => undefined))?.isFile() === true) return path;
  return undefined;
}
