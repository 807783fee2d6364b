/** The first day of a held series that a run fetches. */
import type { HeldObjects } from '../held-objects.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { fileSizes } from '../../files/publish.js';

interface GapRules {
  /** Whether an object of the lake has to be fetched again. */
  readonly isOutdated: (line: ObjectLine) => boolean;
  /** Whether a missing day is requested. */
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
