/** Reads the manifest of a series, and looks for the files that it names. */
import { join } from 'node:path';
import { CryptodlError } from '../model/errors.js';
import { seriesFolder } from '../lake/layout.js';
import { emptyManifest, foldManifest } from '../lake/manifest.js';
import type { ManifestFold, ReadLine } from '../lake/manifest.js';
import { manifestPlace } from '../lake/manifest-place.js';
import { listEntries } from '../lake/walk-lake.js';
import { FORMATS } from '../model/task.js';
import type { Format, Series } from '../model/task.js';
import { periodOf } from '../source/keys.js';
import type { Source } from '../source/source.js';
import type { SeriesRead } from './day-states.js';
import type { DayRange } from './spans.js';

/** The lines of a manifest, counted one by one to save memory. */
class CountedLines implements ManifestFold {
  readonly manifest = emptyManifest();
  readonly revisions: Partial<Record<Format, number>> = {};
  readonly lost: Partial<Record<Format, DayRange[]>> = {};
  readonly refused: CryptodlError[] = [];
  readonly #venue: Source;
  readonly #series: Series;

  constructor(venue: Source, series: Series) {
    this.#venue = venue;
    this.#series = series;
  }

  onLine({ content: line }: ReadLine): void {
    if (line instanceof CryptodlError) this.refused.push(line);
    else if (line.kind === 'dropped') {
      const period = periodOf({ venue: this.#venue, series: this.#series }, line.key);
      if (period !== undefined) (this.lost[line.format] ??= []).push(period);
    } else if (line.kind === 'object' && 'replaces' in line) {
      const { format } = line.settings;
      this.revisions[format] = (this.revisions[format] ?? 0) + 1;
    }
  }
}

interface ReadFromLake extends SeriesRead {
  /** The errors of lines that cannot be read; the others count. */
  readonly refused: readonly CryptodlError[];
  /** The manifest, the folders that were listed, and the files that tell whether a commit has happened. Absolute. */
  readonly paths: readonly string[];
}

/** Rejects for a manifest that cannot be read. */
export async function readSeries(root: string, venue: Source, series: Series): Promise<ReadFromLake> {
  const folder = join(root, seriesFolder(venue.name, series));
  const read = await foldManifest(folder, venue.archive, () => new CountedLines(venue, series));
  const { manifest, revisions, lost, refused } = read;
  const listed = new Map<string, ReadonlySet<string>>();
  const missingFiles = new Set<string>();
  const replaced: string[] = [];
  for (const format of FORMATS) {
    const top = format === 'zip' ? root : folder;
    for (const file of manifest[format].files()) {
      const end = file.lastIndexOf('/') + 1;
      const place = `${top}/${file.slice(0, end)}`;
      const names = listed.get(place) ?? new Set((await listEntries(place)).files);
      listed.set(place, names);
      if (!names.has(file.slice(end))) missingFiles.add(file);
    }
    for (const { file } of manifest[format].replacing())
      if (!missingFiles.has(file)) replaced.push(join(top, file));
  }
  const paths = [manifestPlace(folder).path, ...listed.keys(), ...replaced];
  return { manifest, revisions, lost, refused, missingFiles, paths };
}
