/**
 * The manifest of a series: an append-only JSON Lines file, whose place `manifest-place.ts` knows. A line describes one source object
 * and the partition file that contains its rows; other lines record absent periods and dropped objects. Later lines supersede earlier ones.
 */
import { monthOf } from '../model/calendar.js';
import { FORMATS, type Format, type Period } from '../model/task.js';
import { Absences } from './absences.js';
import { HeldObjects } from './held-objects.js';
import type { ManifestLine } from '../model/manifest-line.js';

export interface Manifest extends Readonly<Record<Format, HeldObjects>> {
  readonly absences: Absences;
}

export function emptyManifest(): Manifest {
  return {
    parquet: new HeldObjects(),
    csv: new HeldObjects(),
    zip: new HeldObjects(),
    absences: new Absences(),
  };
}

/** Whether an object of any format has the period. */
export function isHeld(manifest: Manifest, period: Period): boolean {
  return FORMATS.some(
    (format) => (manifest[format].of(period) ?? manifest[format].ofMonth(monthOf(period.from))) !== undefined,
  );
}

/** Adds a line. Throws `manifest-damaged` for a period that is no date of the calendar, and for an invalid `at` or `asked`. */
export function applyLine(manifest: Manifest, line: ManifestLine): void {
  if (line.kind === 'dropped') manifest[line.format].drop(line.key);
  else if (line.kind === 'absent') manifest.absences.add(line, (period) => isHeld(manifest, period));
  else {
    const held = manifest[line.settings.format];
    const { size } = held;
    held.add(line);
    manifest.absences.addObject(line, held.size > size);
  }
}
