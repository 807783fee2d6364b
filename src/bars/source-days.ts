/** The days that a series of the lake holds, with their objects and the files with their rows. */
import { join } from 'node:path';
import { seriesFolder } from '../lake/layout.js';
import { isFromRest } from '../lake/held-objects.js';
import { readManifest } from '../lake/manifest.js';
import { parsePeriod } from '../model/calendar.js';
import type { Series, Settings } from '../model/task.js';
import { faultOfSeries } from '../catalogue/file-digests.js';
import { readSeriesFiles } from '../catalogue/lake-tables.js';
import type { LakeFile } from '../catalogue/lake-tables.js';
import { hasTextNumbers, hasZonedTimes } from '../catalogue/views.js';
import type { Source } from '../source/source.js';
import { findDataset } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';

/** An object of the source, with its days `[from, to)`. */
export interface SourceObject {
  readonly key: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly from: number;
  readonly to: number;
  readonly isFromRest: boolean;
}

export interface SourceDays {
  /** The lake. */
  readonly root: string;
  readonly series: Series;
  readonly spec: DatasetSpec;
  readonly files: readonly LakeFile[];
  /** Why no bars can be made from it: a committed file is missing, or has another size. */
  readonly fault: string | undefined;
  readonly byDay: ReadonlyMap<number, SourceObject>;
  /** The first held day, and the day after the last one. */
  readonly from: number;
  readonly to: number;
  /** Whether all numbers are text with every digit. */
  readonly isText: boolean;
  readonly isZoned: boolean;
}

/** Undefined for a series without days. Days of files that are missing or damaged count too. Rejects for a damaged manifest. */
export async function readSourceDays(
  root: string,
  venue: Source,
  series: Series,
): Promise<SourceDays | undefined> {
  const spec = findDataset(venue, series.market, series.dataset);
  const folder = join(root, seriesFolder(venue.name, series));
  const { files, unsound } = await readSeriesFiles(root, venue, series);
  if (spec === undefined || files.length + unsound.length === 0) return undefined;
  const { parquet, csv } = await readManifest(folder, venue.archive);
  const known = new Set([...files.map(({ path }) => path), ...unsound]);
  const byDay = new Map<number, SourceObject>();
  for (const line of [...parquet.lines(), ...csv.lines()]) {
    const period = parsePeriod(line.cadence, line.period);
    // A day that was not over when it was fetched changes with the next run.
    if (period === undefined || line.open === true || !known.has(join(folder, line.file))) continue;
    const { key, sha256, bytes } = line;
    const { from, to } = period;
    const object = { key, sha256, bytes, from, to, isFromRest: isFromRest(line) };
    for (let day = from; day < to; day += 1) byDay.set(day, object);
  }
  if (byDay.size === 0) return undefined;
  const days = [...byDay.keys()].sort((a, b) => a - b);
  return {
    root,
    series,
    spec,
    files,
    fault: faultOfSeries(root, { unsound, overlapping: [] }),
    byDay,
    from: days[0] ?? 0,
    to: (days.at(-1) ?? 0) + 1,
    isText: hasTextNumbers(files),
    isZoned: hasZonedTimes(files),
  };
}

/** The source as in messages and manifest lines: `klines 1m`. */
export function sourceName({ dataset, interval }: Pick<Series, 'dataset' | 'interval'>): string {
  return interval === undefined ? dataset : `${dataset} ${interval}`;
}

/** The days between the first and the last one that the source does not have. */
export function missingDays({ from, to, byDay }: SourceDays): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at).filter((day) => !byDay.has(day));
}

/** The settings of the files of bars from this source. */
export function settingsOfBars({ isText, isZoned }: SourceDays): Settings {
  return {
    format: 'parquet',
    partition: 'month',
    cadence: 'daily',
    numbers: isText ? 'string' : 'double',
    timestamps: isZoned ? 'utc' : 'us',
    asPublished: false,
  };
}
