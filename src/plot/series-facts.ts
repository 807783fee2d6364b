/** The extent of a series and the times without rows, from its manifest. No data file is read. */
import { openCatalogue } from '../catalogue/catalogue.js';
import type { SeriesStates } from '../catalogue/day-states.js';
import { gapText } from '../coverage/series-table.js';
import type { Series } from '../model/task.js';
import { listText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import { lakeFlag, shellWord } from '../text/printable.js';
import type { TimeRange } from './time-grid.js';

/** Times in epoch milliseconds. */
export interface SeriesFacts extends TimeRange {
  readonly series: Series;
  /** Times without rows, ascending. */
  readonly breaks: readonly TimeRange[];
  /** Breaks in which rows are expected. */
  readonly missing: readonly MissingRows[];
}

interface MissingRows extends TimeRange {
  /** `2024-01-12 … 2024-01-14 (hole)` */
  readonly text: string;
}

/** The facts of each series that holds rows in files that a query reads: zips have none. */
export async function readFacts(
  root: string,
  series: readonly Series[],
  { source, resolved, clock, observer, signal }: Omit<VerbRequest, 'read' | 'surroundings'>,
): Promise<SeriesFacts[]> {
  const found = new Map<Series, SeriesStates[]>();
  const judged = openCatalogue(root, source, signal).states(series, {
    rangesOf: () => [{}],
    formats: ['parquet', 'csv'],
    nowMs: resolved.options.nowMs ?? clock.now(),
    onRefused: (error) => {
      observer.warn(error.message);
    },
  });
  for await (const one of judged) found.set(one.series, [...(found.get(one.series) ?? []), one]);
  return [...found].flatMap(([of, formatted]) => factsOf(of, formatted) ?? []);
}

/** Undefined for a series without rows. */
function factsOf(series: Series, formatted: readonly SeriesStates[]): SeriesFacts | undefined {
  const firsts = formatted.flatMap(({ first }) => (first === undefined ? [] : [Date.parse(first)]));
  const lasts = formatted.flatMap(({ last }) => (last === undefined ? [] : [Date.parse(last)]));
  // Where a series has two formats, each explains only its own files, so only the larger one is asked for gaps.
  const [largest] = formatted.toSorted((a, b) => b.objects - a.objects);
  if (largest === undefined || firsts.length === 0 || lasts.length === 0) return undefined;
  const { gaps, dayStartSeconds } = largest;
  const spans = gaps.filter(({ isLoose }) => isLoose !== true);
  const rangeOf = ({ from, to }: TimeRange): TimeRange => ({
    from: (from + dayStartSeconds) * 1000,
    to: (to + dayStartSeconds) * 1000,
  });
  return {
    series,
    from: Math.min(...firsts),
    to: Math.max(...lasts) + 1,
    breaks: spans.map(rangeOf),
    missing: gaps
      .filter(({ isMissing }) => isMissing)
      .map((gap) => ({ ...rangeOf(gap), text: gapText(gap, largest) })),
  };
}

const MOST_NAMED = 2;

/** Lines about missing rows within the range, and the command that fetches them. */
export function missingLines({ series, missing }: SeriesFacts, range: TimeRange, root: string): string[] {
  const within = missing.filter(({ from, to }) => from < range.to && to > range.from);
  if (within.length === 0) return [];
  const { market, dataset, interval, symbol } = series;
  const ofInterval = interval === undefined ? [] : ['-i', interval];
  const words = ['-m', market, '--dataset', dataset, ...ofInterval, '-s', symbol].map(shellWord);
  const texts = within.map(({ text }) => text);
  return [
    `missing: ${listText(texts, MOST_NAMED)}`,
    `to fetch them: cryptodl repair${lakeFlag(root)} ${words.join(' ')}`,
  ];
}
