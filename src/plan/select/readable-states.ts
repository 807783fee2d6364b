/** The day states of series for a reader of their rows, which reads the files of all formats but zip. */
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import type { Series } from '../../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';

/**
 * The states of each series in the format that lacks least, because each format explains only its own files. `first` and `last` are those of
 * all formats. A series without Parquet and CSV files is not among them. Warns of manifests that cannot be read.
 */
export async function readableStates(
  root: string,
  selected: readonly Series[],
  { exchange, resolved, clock, observer, signal }: Omit<VerbRequest, 'read' | 'surroundings'>,
  range: Partial<DayRange> = {},
): Promise<Map<Series, SeriesStates>> {
  const found = new Map<Series, SeriesStates>();
  const terms = {
    nowMs: resolved.options.nowMs ?? clock.now(),
    onRefused: ({ message }: Error) => observer.warn(message),
    rangesOf: () => [range],
    formats: ['parquet', 'csv'],
  } as const;
  for await (const one of openCatalogue(root, exchange, signal).states(selected, terms)) {
    const other = found.get(one.series) ?? one;
    const firsts = [one.first, other.first].filter((time) => time !== undefined).sort();
    const lasts = [one.last, other.last].filter((time) => time !== undefined).sort();
    const best = one.missing < other.missing ? one : other;
    found.set(one.series, { ...best, first: firsts[0], last: lasts.at(-1) });
  }
  return found;
}
