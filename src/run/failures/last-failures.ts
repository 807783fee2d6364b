/** The newest failure report of a lake, and its failed periods. */
import { parsePeriod } from '../../model/calendar.js';
import { usage, toCryptodlError, type ErrorCode } from '../../model/errors.js';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { backingOf, bringIn } from '../../files/backing.js';
import { FOLDERS, lakePaths, refuseLinkedFolders, type LakePaths } from '../../lake/layout.js';
import type { Io } from '../../model/io.js';
import { seriesName, type Format, type Period } from '../../model/task.js';
import { homeOf } from '../../files/environment.js';
import { GIVE_REPORT, readFailureReport } from './read-failure-report.js';
import { absolutePath, shownPath } from '../../text/printable.js';
import { failedSeries } from './select-failures.js';

export interface LastFailures {
  readonly path: string;
  /** The failed periods by the name of their series. */
  readonly bySeries: ReadonlyMap<string, readonly LastFailure[]>;
}

interface LastFailure {
  readonly format: Format;
  readonly period: Period;
  /** The report may be of a later version, with codes that this version does not know. */
  readonly code: ErrorCode;
}

/** Undefined without a report. `warn` is called for a report that cannot be read. */
export async function readLastFailures(
  paths: LakePaths,
  warn: (message: string) => void,
): Promise<LastFailures | undefined> {
  try {
    const path = await lastReport(paths);
    if (path === undefined) return undefined;
    const bySeries = new Map<string, LastFailure[]>();
    for (const entry of (await readFailureReport(path)).entries) {
      const period = parsePeriod(entry.cadence, entry.period);
      if (period === undefined) continue;
      const series = seriesName(failedSeries(entry));
      const failures = bySeries.get(series) ?? [];
      failures.push({ format: entry.settings.format, period, code: entry.code as ErrorCode });
      bySeries.set(series, failures);
    }
    return { path, bySeries };
  } catch (error) {
    warn(`${toCryptodlError(error).message}; the gaps are shown without its failures`);
    return undefined;
  }
}

/** The newest report of a lake as a local file; undefined without one. */
async function lastReport(paths: LakePaths): Promise<string | undefined> {
  await refuseLinkedFolders(paths);
  const folder = await paths.folder(FOLDERS.failures);
  await backingOf(folder)?.openFolders([folder]);
  const name = await newestReport(folder);
  if (name === undefined) return undefined;
  const path = join(folder, name);
  await bringIn(path);
  return path;
}

/** The name of the newest report in a folder; undefined if the folder has none. */
async function newestReport(folder: string): Promise<string | undefined> {
  const names: readonly string[] = await readdir(folder).catch(() => []);
  // The name of another file has no time.
  const reports = names.flatMap((name) => {
    const time = /-(\d{8}T\d{9}Z.*)\.jsonl$/s.exec(name)?.[1];
    return time === undefined ? [] : [{ name, time }];
  });
  return reports.sort((a, b) => (a.time < b.time ? -1 : 1)).at(-1)?.name;
}

/** The same for `cryptodl retry` without a file. Rejects with a usage error for a lake without a report. */
export async function lastReportOf(out: string, environment: Io['environment']): Promise<string> {
  const paths = lakePaths(absolutePath(out, homeOf(environment)));
  const path = await lastReport(paths);
  if (path === undefined) throw usage(`${shownPath(paths.failures)} has no failure report`, GIVE_REPORT);
  return path;
}
