/** Data files that manifest lines name and that no longer exist. */
import { join, posix } from 'node:path';
import type { Manifest } from '../lake/manifest.js';
import { listEntries } from '../lake/walk-lake.js';
import { FORMATS } from '../model/task.js';
import type { AbsentDays } from './absent-days.js';
import { daysOf } from './own-days.js';
import type { HeldObject } from './own-days.js';
import { at, intersect } from './spans.js';

/**
 * The files of a series that do not exist or are symbolic links, by the name that manifest lines give them. Lists each folder once, and
 * reads no file.
 */
export async function missingFiles(
  root: string,
  seriesFolder: string,
  manifest: Manifest,
): Promise<ReadonlySet<string>> {
  const listed = new Map<string, ReadonlySet<string>>();
  const missing = new Set<string>();
  for (const format of FORMATS) {
    const top = format === 'zip' ? root : join(root, seriesFolder);
    for (const file of manifest[format].files()) {
      const folder = join(top, posix.dirname(file));
      const names = listed.get(folder) ?? new Set((await listEntries(folder)).files);
      listed.set(folder, names);
      if (!names.has(posix.basename(file))) missing.add(file);
    }
  }
  return missing;
}

/** The days `[from, to)` of objects whose files are missing. */
export function daysOfMissingFiles(objects: readonly HeldObject[], from: number, to: number): AbsentDays[] {
  const days = intersect(daysOf(objects), [from, to]);
  return Array.from({ length: days.length / 2 }, (_, i) => ({
    from: at(days, 2 * i),
    to: at(days, 2 * i + 1),
    reason: 'missing',
  }));
}
