/** The extent of a series and the times without rows, from its manifest. No data file is read. */
import { coverLake } from '../coverage/cover-lake.js';
import type { CoveredSeries } from '../coverage/cover-lake.js';
import { gapText } from '../coverage/series-table.js';
import { usage } from '../model/errors.js';
import { dayOf } from '../model/calendar.js';
import type { Format, Series } from '../model/task.js';
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

const READABLE: readonly Format[] = ['parquet', 'csv'];

/** The facts of each series that holds rows. Throws a usage error if the series hold only zip files. */
export async function readFacts(
  root: string,
  series: readonly Series[],
  { source, resolved, clock, observer }: Omit<VerbRequest, 'read' | 'surroundings'>,
): Promise<SeriesFacts[]> {
  const found = new Map<Series, CoveredSeries[]>();
  const formats = new Set<Format>();
  const covered = coverLake({
    root,
    venue: source,
    selected: series,
    formats: [...READABLE, 'zip'],
    range: {},
    today: dayOf(resolved.options.nowMs ?? clock.now(), source),
    onRefused: (error) => {
      observer.warn(error.message);
    },
  });
  for await (const one of covered) {
    const { format } = one.coverage;
    if (format === undefined) continue;
    formats.add(format);
    if (!READABLE.includes(format)) continue;
    const own = found.get(one.coverage.series) ?? [];
    found.set(one.coverage.series, [...own, one]);
  }
  const facts = [...found].flatMap(([of, formatted]) => factsOf(of, formatted) ?? []);
  if (facts.length === 0 && formats.has('zip'))
    throw usage(
      'the lake holds this series only as zip files, and plot reads Parquet and CSV',
      'download it again into another folder, without --format zip',
    );
  return facts;
}

/** Undefined for a series without rows. */
function factsOf(series: Series, formatted: readonly CoveredSeries[]): SeriesFacts | undefined {
  const firsts = formatted.flatMap(({ coverage: { first } }) =>
    first === undefined ? [] : [Date.parse(first)],
  );
  const lasts = formatted.flatMap(({ coverage: { last } }) => (last === undefined ? [] : [Date.parse(last)]));
  // Where a series has two formats, each explains only its own files, so only the larger one is asked for gaps.
  const [largest] = formatted.toSorted((a, b) => b.coverage.objects - a.coverage.objects);
  if (largest === undefined || firsts.length === 0 || lasts.length === 0) return undefined;
  const { gaps, coverage } = largest;
  const spans = gaps.filter(({ isLoose }) => isLoose !== true);
  const rangeOf = ({ from, to }: TimeRange): TimeRange => ({
    from: (from + coverage.dayStartSeconds) * 1000,
    to: (to + coverage.dayStartSeconds) * 1000,
  });
  return {
    series,
    from: Math.min(...firsts),
    to: Math.max(...lasts) + 1,
    breaks: spans.map(rangeOf),
    missing: gaps
      .filter(({ isMissing }) => isMissing)
      .map((gap) => ({ ...rangeOf(gap), text: gapText(gap, coverage) })),
  };
}

const MOST_NAMED = 2;

/** Lines about missing rows within the range, and the command that fetches them. */
export function missingLines({ series, missing }: SeriesFacts, range: TimeRange, root: string): string[] {
  const within = missing.filter(({ from, to }) => from < range.to && to > range.from);
  if (within.length === 0) return [];
  const named = within.slice(0, MOST_NAMED).map(({ text }) => text);
  const more = within.length - named.length;
  const { market, dataset, interval, symbol } = series;
  const of = [
    '-m',
    market,
    '--dataset',
    dataset,
    ...(interval === undefined ? [] : ['-i', interval]),
    '-s',
    symbol,
  ];
  return [
    `missing: ${named.join(', ')}${more > 0 ? `, and ${more} more` : ''}`,
    `to fetch them: cryptodl repair${lakeFlag(root)} ${of.map(shellWord).join(' ')}`,
  ];
}
