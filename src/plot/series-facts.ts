/** The extent of a series and the times without rows, from its manifest. No data file is read. */
import { readableStates } from '../coverage/readable-states.js';
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
  request: Omit<VerbRequest, 'read' | 'surroundings'>,
): Promise<SeriesFacts[]> {
  const found = await readableStates(root, series, request);
  return [...found.values()].flatMap((states) => {
    const { first, last, gaps, dayStartSeconds } = states;
    if (first === undefined || last === undefined) return [];
    const rangeOf = ({ from, to }: TimeRange): TimeRange => ({
      from: (from + dayStartSeconds) * 1000,
      to: (to + dayStartSeconds) * 1000,
    });
    const breaks = gaps.filter(({ isLoose }) => isLoose !== true).map(rangeOf);
    const missing = gaps
      .filter(({ isMissing }) => isMissing)
      .map((gap) => ({ ...rangeOf(gap), text: gapText(gap, states) }));
    return [{ series: states.series, from: Date.parse(first), to: Date.parse(last) + 1, breaks, missing }];
  });
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
