/** A committed file of a series with what its manifest lines tell. */
import { join } from 'node:path';
import type { HeldObjects } from '../held-objects.js';
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';
import { eachDay, parsePeriod, startOfDay } from '../../model/calendar.js';
import type { Series, Settings } from '../../model/task.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import type { DayRange } from './spans.js';
import { legalTimeRange } from '../../convert/expected-rows.js';

export interface LakeFile {
  /** Absolute. */
  readonly path: string;
  readonly settings: Settings;
  /** Size and digest of its last commit. */
  readonly bytes: number;
  readonly sha256: string;
  /** The days `[from, to)` of its first to its last object. */
  readonly days: { readonly from: number; readonly to: number };
  /** The days among these without an object. */
  readonly missing: readonly number[];
  /** The days that were not over when their rows were fetched. */
  readonly open: readonly number[];
  readonly hasRest: boolean;
  readonly rows: number;
  /** Whether several rows may have the same time, in datasets with rows at regular intervals. */
  readonly mayRepeat: boolean;
  /** ISO instants of the first and the last row; undefined without rows. */
  readonly first: string | undefined;
  readonly last: string | undefined;
}

/** The days of a file whose objects were complete when they were fetched. */
export function completeDays({ days, missing, open }: LakeFile): number[] {
  const without = new Set([...missing, ...open]);
  return eachDay(days).filter((day) => !without.has(day));
}

export function lakeFile(
  folder: string,
  held: HeldObjects,
  lines: readonly [ObjectLine, ...ObjectLine[]],
): LakeFile {
  const committed = held.lastOfFile(lines[0].file) ?? lines[0];
  const own = new Set(lines.flatMap(daysOf));
  const [from, to] = [Math.min(...own), Math.max(...own) + 1];
  return {
    path: join(folder, committed.file),
    settings: committed.settings,
    bytes: committed.fileBytes,
    sha256: committed.fileSha256,
    days: { from, to },
    missing: eachDay({ from, to }).filter((day) => !own.has(day)),
    open: lines.filter((line) => line.open === true).flatMap(daysOf),
    hasRest: lines.some(isFromRest),
    rows: lines.reduce((sum, line) => sum + (line.rows ?? 0), 0),
    mayRepeat: lines.some(({ idConflicts = 0, settings }) => idConflicts > 0 || settings.asPublished),
    first: lines.flatMap((line) => line.first ?? []).sort()[0],
    last: lines
      .flatMap((line) => line.last ?? [])
      .sort()
      .at(-1),
  };
}

export const daysOf = ({ cadence, period }: ObjectLine): number[] =>
  eachDay(parsePeriod(cadence, period) ?? { from: 0, to: 0 });

/** The files that may have rows of the range. A row can lie outside of the period of its object: seconds, or the length of a bar above a day. */
export function filesOfRange(
  { series, files }: { readonly series: Series; readonly files: readonly LakeFile[] },
  spec: DatasetSpec,
  { from, to }: Partial<DayRange>,
): LakeFile[] {
  return files.filter(({ days }) => {
    const legal = legalTimeRange(spec, series.interval, days);
    const isBefore = from !== undefined && legal.last < startOfDay(from, spec);
    return !isBefore && (to === undefined || legal.first < startOfDay(to, spec));
  });
}
