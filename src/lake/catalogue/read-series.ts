/** Reads the manifest of a series: as it is, with what its folders tell, and its first gap. */
import { join } from 'node:path';
import type { HeldObjects } from '../held-objects.js';
import { seriesFolder } from '../layout.js';
import { inspectManifest, readManifest, type Manifest } from '../manifest.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { fileSizes } from '../../files/file-facts.js';
import { listEntries } from '../walk-lake.js';
import type { CryptodlError } from '../../model/errors.js';
import { FORMATS, type Format, type Series } from '../../model/task.js';
import { periodOf } from '../../exchange/keys.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { SeriesRead } from './day-states.js';
import type { DayRange } from './spans.js';

/** A manifest alone. Rejects with `manifest-damaged` for a line that cannot be read. */
export function readHeld(
  root: string,
  { name, archive }: Pick<Exchange, 'name' | 'archive'>,
  series: Series,
): Promise<Manifest> {
  return readManifest(join(root, seriesFolder(name, series)), archive);
}

interface ReadFromLake extends SeriesRead {
  /** The errors of lines that cannot be read; the others count. */
  readonly refused: readonly CryptodlError[];
}

/** Rejects for a manifest that cannot be read. */
export async function readSeries(root: string, exchange: Exchange, series: Series): Promise<ReadFromLake> {
  const folder = join(root, seriesFolder(exchange.name, series));
  const { manifest, revisions, dropped, refused } = await inspectManifest(folder, exchange.archive);
  const droppedDays: Partial<Record<Format, DayRange[]>> = {};
  for (const { format, key } of dropped) {
    const period = periodOf({ exchange, series }, key);
    if (period !== undefined) (droppedDays[format] ??= []).push(period);
  }
  const listed = new Map<string, ReadonlySet<string>>();
  const missingFiles = new Set<string>();
  for (const format of FORMATS) {
    const top = format === 'zip' ? root : folder;
    for (const file of manifest[format].files()) {
      const end = file.lastIndexOf('/') + 1;
      const place = `${top}/${file.slice(0, end)}`;
      const names = listed.get(place) ?? new Set(listEntries(place).files);
      listed.set(place, names);
      if (!names.has(file.slice(end))) missingFiles.add(file);
    }
  }
  return { manifest, revisions, dropped: droppedDays, refused, missingFiles };
}

interface GapRules {
  /** Whether an object of the lake has to be fetched again. */
  readonly isOutdated: (line: ObjectLine) => boolean;
  readonly isRequested: (day: number) => boolean;
}

/**
 * The first day that is missing, whose object is outdated, or whose file does not have its committed size. If there is no such
 * day, the day after the last held one. Missing days that `isRequested` excludes do not count. Undefined without held objects.
 */
export async function firstGap(
  held: HeldObjects,
  folder: string,
  { isOutdated, isRequested }: GapRules,
): Promise<number | undefined> {
  const spans = held.spans();
  const files = [...new Set(spans.map(({ facts }) => facts.file))];
  const sizes = await fileSizes(folder, files);
  const unsound = new Set(files.filter((file, index) => sizes[index] !== held.lastOfFile(file)?.fileBytes));
  let next: number | undefined;
  for (const { from, to, facts } of spans) {
    for (let day = next ?? from; day < from; day += 1) if (isRequested(day)) return day;
    if (unsound.has(facts.file) || isOutdated(facts)) return from;
    next = Math.max(next ?? 0, to);
  }
  return next;
}
