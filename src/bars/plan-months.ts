/** Compares the days of bars with those of the lake: the months with new or changed days. */
import type { HeldObjects } from '../lake/held-objects.js';
import { fileSizes } from '../lake/publish.js';
import { monthOf, monthText } from '../model/calendar.js';
import type { BarDay } from './day-rules.js';

/** A month with days to make. */
export interface BarMonth {
  readonly label: string;
  readonly file: string;
  /** New and changed days, ascending. */
  readonly changed: readonly BarDay[];
  /** All days of the month that the source has. */
  readonly all: readonly BarDay[];
}

/**
 * The months with work, ascending. A day is up to date if its line has the same digest, and its file the committed size. `isChosen`: whether
 * a day is in the range of the command. `isForced`: all days are made again.
 */
export async function planMonths(
  days: readonly BarDay[],
  held: HeldObjects,
  folder: string,
  { isForced, isChosen }: { readonly isForced: boolean; readonly isChosen: (day: number) => boolean },
): Promise<BarMonth[]> {
  const files = held.files().filter((file) => held.inFile(file).length > 0);
  const sizes = await fileSizes(folder, files);
  const unsound = new Set(files.filter((file, at) => sizes[at] !== held.bytesOf(file)));
  const months = new Map<string, { all: BarDay[]; changed: BarDay[] }>();
  for (const day of days) {
    const label = monthText(monthOf(day.day));
    const month = months.get(label) ?? { all: [], changed: [] };
    months.set(label, month);
    month.all.push(day);
    const line = held.ofDay(day.day);
    const isOld = line === undefined || line.sha256 !== day.sha256 || unsound.has(line.file);
    if (isChosen(day.day) && (isForced || isOld)) month.changed.push(day);
  }
  return [...months]
    .filter(([, { all, changed }]) => changed.length > 0 && all.some(hasBars))
    .map(([label, month]) => ({ label, file: `${label}.parquet`, ...month }));
}

/** Whether a bar begins on this day. Days within a longer bar have a line in the file of their month, if it has a file. */
function hasBars({ starts }: BarDay): boolean {
  return starts === undefined || starts.from < starts.to;
}
