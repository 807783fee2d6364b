/** A series of a lake as `merge` compares it: its manifest and all lines of it. */
import { parsePeriod } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { ObjectKeys } from '../lake/check-manifest-line.js';
import { addLine, emptyManifest, readManifestLines } from '../lake/manifest.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { Manifest } from '../lake/manifest.js';
import type { ManifestLine, ObjectLine } from '../lake/manifest-line.js';
import type { Format, Series } from '../model/task.js';

export interface SeriesState {
  readonly manifest: Manifest;
  /** In the order of the file. */
  readonly lines: readonly ManifestLine[];
  /** The same lines as JSON. */
  readonly texts: ReadonlySet<string>;
}

/** A series in both lakes. */
export interface SeriesPair {
  readonly series: Series;
  readonly source: SeriesState;
  readonly target: SeriesState;
}

/** Rejects with `manifest-damaged` for a manifest with a line that cannot be read. A missing manifest gives an empty state. */
export async function readSeriesState(folder: string, archive: ObjectKeys): Promise<SeriesState> {
  const manifest = emptyManifest();
  const lines: ManifestLine[] = [];
  for await (const batch of readManifestLines(folder, archive)) {
    for (const read of batch) {
      const refused = read instanceof CryptodlError ? read : addLine(manifest, read);
      if (refused !== undefined) throw refused;
      if (!(read instanceof CryptodlError)) lines.push(read.line);
    }
  }
  return { manifest, lines, texts: new Set(lines.map((line) => JSON.stringify(line))) };
}

/** Whether the series held this object: now with the same bytes, or at an earlier time in the same line, and did not lose it since. */
export function hasSeen({ manifest, texts }: SeriesState, format: Format, line: ObjectLine): boolean {
  const held = manifest[format];
  if (sameObject(overlapping(held, line), line)) return true;
  return texts.has(JSON.stringify(line)) && !held.dropped().includes(line.key);
}

/** The held objects with a day of this one. */
export function overlapping(held: HeldObjects, { cadence, period }: ObjectLine): ObjectLine[] {
  const days = parsePeriod(cadence, period);
  return days === undefined ? [] : held.overlapping(days);
}

/** Whether one of the lines is about the same bytes of the same object. */
export function sameObject(lines: readonly ObjectLine[], { key, sha256 }: ObjectLine): boolean {
  return lines.some((line) => line.key === key && line.sha256 === sha256);
}
