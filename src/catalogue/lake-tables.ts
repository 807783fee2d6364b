/** Finds the files of each table (market and dataset) in the manifests, so that no row is read twice. */
import { join } from 'node:path';
import { parsePeriod } from '../model/calendar.js';
import type { ObjectKeys } from '../lake/check-manifest-line.js';
import { reopenBackedSeries } from '../lake/backing.js';
import { seriesFolder } from '../lake/layout.js';
import type { Source } from '../source/source.js';
import { readManifest } from '../lake/manifest.js';
import { isFromRest } from '../lake/held-objects.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { Manifest } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { fileSize } from '../lake/publish.js';
import { FORMATS } from '../model/task.js';
import type { Market, Series, Settings } from '../model/task.js';

export interface LakeFile {
  /** Absolute. */
  readonly path: string;
  readonly settings: Settings;
  /** Size and digest of its last commit. */
  readonly bytes: number;
  readonly sha256: string;
  /** The days `[from, to)` of its first to its last object. */
  readonly days: { readonly from: number; readonly to: number };
  /** Whether an object is held for each of these days. */
  readonly isWhole: boolean;
  /** The days among these without an object. */
  readonly missing: readonly number[];
  /** The days that were not over when their rows were fetched. */
  readonly open: readonly number[];
  /** Whether it has rows from REST. */
  readonly hasRest: boolean;
  /** Rows of its objects. */
  readonly rows: number;
  /** Whether several rows may have the same time, in datasets with rows at regular intervals. */
  readonly mayRepeat: boolean;
  /** ISO instants of the first and the last row; undefined without rows. */
  readonly first: string | undefined;
  readonly last: string | undefined;
}

export interface LakeTable {
  readonly market: Market;
  readonly dataset: string;
  readonly hasInterval: boolean;
  readonly files: readonly LakeFile[];
}

/** Committed files that are not queried. */
export interface LeftOut {
  /** Missing, or of another size than committed. */
  readonly unsound: string[];
  /** CSV files with some days that Parquet files hold too. */
  readonly overlapping: string[];
}

/** `um_klines` */
export function tableName({ market, dataset }: Pick<Series, 'market' | 'dataset'>): string {
  return `${market}_${dataset}`;
}

/** Tables with at least one readable file, ordered by name. Rejects for a damaged manifest. */
export async function readTables(
  root: string,
  venue: Pick<Source, 'name' | 'archive'>,
  series: readonly Series[],
): Promise<{ tables: LakeTable[]; leftOut: LeftOut }> {
  const leftOut: LeftOut = { unsound: [], overlapping: [] };
  const filesOf = new Map<string, { first: Series; files: LakeFile[] }>();
  for (let from = 0; from < series.length; from += AT_ONCE) {
    const some = series.slice(from, from + AT_ONCE);
    const read = await Promise.all(some.map((one) => readSeriesFiles(root, venue, one)));
    for (const [at, { files, unsound, overlapping }] of read.entries()) {
      leftOut.unsound.push(...unsound);
      leftOut.overlapping.push(...overlapping);
      const first = some[at];
      if (first === undefined || files.length === 0) continue;
      const table = filesOf.get(tableName(first)) ?? { first, files: [] };
      table.files.push(...files);
      filesOf.set(tableName(first), table);
    }
  }
  const tables = [...filesOf.values()].map(({ first, files }) => ({
    market: first.market,
    dataset: first.dataset,
    hasInterval: first.interval !== undefined,
    files,
  }));
  return { tables: tables.sort((a, b) => (tableName(a) < tableName(b) ? -1 : 1)), leftOut };
}

/** Number of manifests that are read at the same time. */
const AT_ONCE = 32;

/** The committed files of a series. */
export interface SeriesFiles extends LeftOut {
  /** Ordered by days. */
  readonly files: LakeFile[];
  /** The manifest records absences alone. */
  readonly isEmpty: boolean;
}

/** The committed files of a series, each day once. Rejects for a damaged manifest. */
export async function readSeriesFiles(
  root: string,
  { name, archive }: { readonly name: string; readonly archive: ObjectKeys },
  series: Series,
): Promise<SeriesFiles> {
  const folder = join(root, seriesFolder(name, series));
  const first = await soundFiles(folder, await readManifest(folder, archive));
  if (first.unsound.length === 0) return first;
  // A run may have replaced a file in between, so the second reading decides.
  await reopenBackedSeries(folder);
  return soundFiles(folder, await readManifest(folder, archive));
}

async function soundFiles(folder: string, manifest: Manifest): Promise<SeriesFiles> {
  const { chosen, overlapping } = chooseFiles(manifest);
  const sizes = await Promise.all(chosen.map(({ committed }) => fileSize(join(folder, committed.file))));
  const isSound = ({ committed }: ChosenFile, at: number): boolean => sizes[at] === committed.fileBytes;
  const files = chosen.filter(isSound).map(({ committed, ...facts }) => ({
    ...facts,
    path: join(folder, committed.file),
    settings: committed.settings,
    bytes: committed.fileBytes,
    sha256: committed.fileSha256,
  }));
  const isEmpty = FORMATS.every((format) => manifest[format].size + manifest[format].dropped().length === 0);
  return {
    isEmpty,
    files: files.sort((a, b) => a.days.from - b.days.from),
    unsound: chosen
      .filter((file, at) => !isSound(file, at))
      .map(({ committed }) => join(folder, committed.file)),
    overlapping: overlapping.map((file) => join(folder, file)),
  };
}

interface ChosenFile extends Omit<LakeFile, 'path' | 'settings' | 'bytes' | 'sha256'> {
  /** The line of the last commit. */
  readonly committed: ObjectLine;
}

/** All Parquet files, then CSV files whose days no Parquet file has. */
function chooseFiles({ parquet, csv }: Manifest): { chosen: ChosenFile[]; overlapping: string[] } {
  const chosen = [...parquet.linesByFile()].flatMap(([file, lines]) => chosenFile(parquet, file, lines));
  const days = new Set(parquet.lines().flatMap(daysOf));
  const overlapping: string[] = [];
  for (const [file, lines] of csv.linesByFile()) {
    const own = lines.flatMap(daysOf);
    const both = own.filter((day) => days.has(day)).length;
    if (both === 0) chosen.push(...chosenFile(csv, file, lines));
    else if (both < own.length) overlapping.push(file);
  }
  return { chosen, overlapping };
}

function chosenFile(held: HeldObjects, file: string, lines: readonly ObjectLine[]): ChosenFile[] {
  const committed = held.lastOfFile(file);
  const periods = lines.flatMap(({ cadence, period }) => parsePeriod(cadence, period) ?? []);
  const from = Math.min(...periods.map((period) => period.from));
  const to = Math.max(...periods.map((period) => period.to));
  if (committed === undefined) return [];
  const own = new Set(lines.flatMap(daysOf));
  const missing = Array.from({ length: to - from }, (_, at) => from + at).filter((day) => !own.has(day));
  const open = lines.filter((line) => line.open === true).flatMap(daysOf);
  const hasRest = lines.some(isFromRest);
  const rows = lines.reduce((sum, line) => sum + (line.rows ?? 0), 0);
  const mayRepeat = lines.some(({ idConflicts = 0, settings }) => idConflicts > 0 || settings.asPublished);
  const [first] = lines.flatMap((line) => line.first ?? []).sort();
  const last = lines
    .flatMap((line) => line.last ?? [])
    .sort()
    .at(-1);
  return [
    {
      committed,
      days: { from, to },
      isWhole: missing.length === 0,
      missing,
      open,
      hasRest,
      rows,
      mayRepeat,
      first,
      last,
    },
  ];
}

function daysOf({ cadence, period }: ObjectLine): number[] {
  const { from = 0, to = 0 } = parsePeriod(cadence, period) ?? {};
  return Array.from({ length: to - from }, (_, at) => from + at);
}
