/** The committed files of a series with rows, each day once. */
import { join } from 'node:path';
import { backingOf } from '../../files/backing.js';
import { seriesFolder } from '../layout.js';
import type { Manifest } from '../manifest.js';
import { fileSize } from '../../files/file-facts.js';
import { FORMATS, type Series } from '../../model/task.js';
import type { Exchange } from '../../exchange/exchange.js';
import { lakeFile, daysOf, type LakeFile } from './lake-file.js';
import { readHeld } from './read-series.js';

/** Committed files that are not queried. */
export interface LeftOut {
  /** Missing, or of another size than committed. */
  readonly unsound: string[];
  /** CSV files with some days that Parquet files hold too. */
  readonly overlapping: string[];
}

export interface SeriesFiles extends LeftOut {
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
  const isSound = ({ bytes }: LakeFile, at: number): boolean => sizes[at] === bytes;
  const isEmpty = FORMATS.every((format) => manifest[format].size + manifest[format].dropped().length === 0);
  return {
    isEmpty,
    files: chosen.filter(isSound).sort((a, b) => a.days.from - b.days.from),
    unsound: chosen.filter((file, at) => !isSound(file, at)).map(({ path }) => path),
    overlapping,
  };
}

/** All Parquet files, then CSV files whose days no Parquet file has. */
function chooseFiles(folder: string, { parquet, csv }: Manifest) {
  const chosen = [...parquet.linesByFile().values()].map((lines) => lakeFile(folder, parquet, lines));
  const days = new Set(parquet.lines().flatMap(daysOf));
  const overlapping: string[] = [];
  for (const [file, lines] of csv.linesByFile()) {
    const own = lines.flatMap(daysOf);
    const both = own.filter((day) => days.has(day)).length;
    if (both === 0) chosen.push(lakeFile(folder, csv, lines));
    else if (both < own.length) overlapping.push(join(folder, file));
  }
  return { chosen, overlapping };
}
