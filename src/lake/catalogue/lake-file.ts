/** The committed files of a series with rows, each day once, with what their manifest lines tell. */
import { join } from 'node:path';
import { backingOf } from '../../files/backing.js';
import { fileSize } from '../../files/file-facts.js';
import type { HeldObjects } from '../held-objects.js';
import { seriesFolder } from '../layout.js';
import type { Manifest } from '../manifest.js';
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';
import { eachDay, parsePeriod, startOfDay } from '../../model/calendar.js';
import { FORMATS, type Series, type Settings } from '../../model/task.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { readHeld } from './read-series.js';
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
  readonly firstInstant: string | undefined;
  readonly lastInstant: string | undefined;
}

/** The days of a file whose objects were complete when they were fetched. */
export function completeDays({ days, missing, open }: LakeFile): number[] {
  const without = new Set([...missing, ...open]);
  return eachDay(days).filter((day) => !without.has(day));
}

function lakeFile(
  folder: string,
  held: HeldObjects,
  lines: readonly [ObjectLine, ...ObjectLine[]],
): LakeFile {
  const committed = held.lastOfFile(lines[0].file) ?? lines[0];
  const own = new Set(lines.flatMap(daysOfLine));
  const [from, to] = [Math.min(...own), Math.max(...own) + 1];
  return {
    path: join(folder, committed.file),
    settings: committed.settings,
    bytes: committed.fileBytes,
    sha256: committed.fileSha256,
    days: { from, to },
    missing: eachDay({ from, to }).filter((day) => !own.has(day)),
    open: lines.filter((line) => line.open === true).flatMap(daysOfLine),
    hasRest: lines.some(isFromRest),
    rows: lines.reduce((sum, line) => sum + (line.rows ?? 0), 0),
    mayRepeat: lines.some(({ idConflicts = 0, settings }) => idConflicts > 0 || settings.asPublished),
    firstInstant: lines.flatMap((line) => line.first ?? []).sort()[0],
    lastInstant: lines
      .flatMap((line) => line.last ?? [])
      .sort()
      .at(-1),
  };
}

const daysOfLine = ({ cadence, period }: ObjectLine): number[] =>
  eachDay(parsePeriod(cadence, period) ?? { from: 0, to: 0 });

/** The files that may have rows of the range. A row can lie outside of the period of its object: seconds, or the length of a bar above a day. */
export function filesOfRange(
  { series, files }: { readonly series: Series; readonly files: readonly LakeFile[] },
  spec: DatasetSpec,
  { from, to }: Partial<DayRange>,
): LakeFile[] {
  return files.filter(({ days }) => {
    const legal = legalTimeRange(spec, series.interval, days);
    const isBefore = from !== undefined && legal.lastMs < startOfDay(from, spec);
    return !isBefore && (to === undefined || legal.firstMs < startOfDay(to, spec));
  });
}

/** Committed files that are not queried. */
export interface LeftOut {
  /** Missing, or of another size than committed. */
  readonly unsound: string[];
  /** CSV files with some days that Parquet files hold too. */
  readonly overlapping: string[];
}

interface SeriesFiles extends LeftOut {
  /** Ordered by days. */
  readonly files: LakeFile[];
  /** The manifest records absences alone. */
  readonly isEmpty: boolean;
}

/** The committed files of a series, each day once. Rejects for a damaged manifest. */
export async function readSeriesFiles(
  root: string,
  exchange: Exchange,
  series: Series,
): Promise<SeriesFiles> {
  const folder = join(root, seriesFolder(exchange.name, series));
  const first = await soundFiles(folder, await readHeld(root, exchange, series));
  if (first.unsound.length === 0) return first;
  // A run may have replaced a file in between, so the second reading decides.
  await backingOf(folder)?.reopenSeries(folder);
  return soundFiles(folder, await readHeld(root, exchange, series));
}

async function soundFiles(folder: string, manifest: Manifest): Promise<SeriesFiles> {
  const { chosen, overlapping } = chooseFiles(folder, manifest);
  const sizes = await Promise.all(chosen.map(({ path }) => fileSize(path)));
  const isSound = ({ bytes }: LakeFile, index: number): boolean => sizes[index] === bytes;
  const isEmpty = FORMATS.every((format) => manifest[format].size + manifest[format].dropped().length === 0);
  return {
    isEmpty,
    files: chosen.filter(isSound).sort((a, b) => a.days.from - b.days.from),
    unsound: chosen.filter((file, index) => !isSound(file, index)).map(({ path }) => path),
    overlapping,
  };
}

/** All Parquet files, then CSV files whose days no Parquet file has. */
function chooseFiles(folder: string, { parquet, csv }: Manifest) {
  const chosen = [...parquet.linesByFile().values()].map((lines) => lakeFile(folder, parquet, lines));
  const days = new Set(parquet.lines().flatMap(daysOfLine));
  const overlapping: string[] = [];
  for (const [file, lines] of csv.linesByFile()) {
    const own = lines.flatMap(daysOfLine);
    const both = own.filter((day) => days.has(day)).length;
    if (both === 0) chosen.push(lakeFile(folder, csv, lines));
    else if (both < own.length) overlapping.push(join(folder, file));
  }
  return { chosen, overlapping };
}
