/** The failures in the newest failure report of a lake. */
import { join } from 'node:path';
import { bringIn, openBackedFolders } from '../lake/backing.js';
import { FOLDERS, refuseLinkedFolders } from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import { parsePeriod } from '../model/calendar.js';
import type { ErrorCode } from '../model/errors.js';
import { toCryptodlError } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Format, Period } from '../model/task.js';
import { newestReport, readFailureReport } from '../report/read-failure-report.js';

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
    await refuseLinkedFolders(paths);
    const folder = await paths.folder(FOLDERS.failures);
    await openBackedFolders(folder);
    const name = await newestReport(folder);
    if (name === undefined) return undefined;
    const path = join(folder, name);
    await bringIn(path);
    const bySeries = new Map<string, LastFailure[]>();
    for (const entry of (await readFailureReport(path)).entries) {
      const { market, dataset, interval, symbol, settings, code } = entry;
      const period = parsePeriod(entry.cadence, entry.period);
      if (entry.kind !== 'failed' || period === undefined) continue;
      const series = seriesName({ market, dataset, ...(interval === undefined ? {} : { interval }), symbol });
      const failures = bySeries.get(series) ?? [];
      failures.push({ format: settings.format, period, code: code as ErrorCode });
      bySeries.set(series, failures);
    }
    return { path, bySeries };
  } catch (error) {
    warn(`${toCryptodlError(error).message}; the gaps are shown without its failures`);
    return undefined;
  }
}
