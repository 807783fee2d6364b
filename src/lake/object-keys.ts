/** Checks that the key of a manifest line belongs to an object of its series. */
import { parsePeriod } from '../model/calendar.js';
import type { Cadence, Period, Series } from '../model/task.js';
import { seriesOfFolder } from './layout.js';

export const CADENCES: readonly Cadence[] = ['daily', 'monthly'];

export interface ObjectKeys {
  /** The first folder of all keys; `--format zip` writes below it. */
  readonly topFolder: string;
  /** Returns a function that reads the period of a key; it returns undefined if a name is no key of this series and cadence. */
  periodOf(series: Series, cadence: Cadence): (key: string) => Period | undefined;
}

export type KeyCheck = ReturnType<typeof createKeyCheck>;

/** Checks that a key belongs to an object of the series in this folder, to rows of it from REST, or to rows that the program made. */
export function createKeyCheck(seriesFolder: string, archive: ObjectKeys) {
  const { topFolder } = archive;
  const series = seriesOfFolder(seriesFolder);
  // The folder is not in a lake, so there is no series to compare with.
  if (series === undefined) return { topFolder, isOfPeriod: () => true, isOfSeries: () => true };
  const { market, dataset, interval, symbol } = series;
  const layers = [market, dataset, ...(interval === undefined ? [] : [interval]), symbol, ''].join('/');
  const [rest, made] = [`rest/${layers}`, `made/${layers}`];
  const periodOf = {
    daily: archive.periodOf(series, 'daily'),
    monthly: archive.periodOf(series, 'monthly'),
  };
  /** Whether a key belongs to the object of this period. `text`: the period as it is written. */
  const isOfPeriod = (key: string, { cadence, from }: Period, text: string): boolean => {
    const period = periodOf[cadence](key);
    if (period !== undefined) return period.from === from;
    return key === rest + text || key === made + text;
  };
  const isOfSeries = (key: string): boolean =>
    CADENCES.some((cadence) => {
      const start = [rest, made].find((prefix) => key.startsWith(prefix)) ?? key;
      return (parsePeriod(cadence, key.slice(start.length)) ?? periodOf[cadence](key)) !== undefined;
    });
  return { topFolder, isOfPeriod, isOfSeries };
}
