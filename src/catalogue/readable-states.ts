/** The day states of series for a reader of their rows, which reads the files of all formats but zip. */
import type { Series } from '../model/task.js';
import type { Catalogue, JudgeTerms } from './catalogue.js';
import type { SeriesStates } from './day-states.js';
import type { DayRange } from './spans.js';

/**
 * The states of each series in the format that lacks least, because each format explains only its own files. `first` and `last` are those of
 * all formats. A series without Parquet and CSV files is not among them.
 */
export async function readableStates(
  catalogue: Catalogue,
  selected: readonly Series[],
  terms: Pick<JudgeTerms, 'nowMs' | 'onRefused'>,
  range: Partial<DayRange> = {},
): Promise<Map<Series, SeriesStates>> {
  const found = new Map<Series, SeriesStates>();
  const all = { ...terms, rangesOf: () => [range], formats: ['parquet', 'csv'] } as const;
  for await (const one of catalogue.states(selected, all)) {
    const other = found.get(one.series) ?? one;
    const firsts = [one.first, other.first].filter((time) => time !== undefined).sort();
    const lasts = [one.last, other.last].filter((time) => time !== undefined).sort();
    const best = one.missing < other.missing ? one : other;
    found.set(one.series, { ...best, first: firsts[0], last: lasts.at(-1) });
  }
  return found;
}
