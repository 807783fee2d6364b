/** The data of the selected series that the lake lacks. */
import { coverLake } from '../coverage/cover-lake.js';
import { spanText } from '../coverage/series-table.js';
import { dayOf } from '../model/calendar.js';
import { FORMATS, seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { absolutePath } from '../text/printable.js';
import type { Days } from './export-file.js';
import { readSeries } from './read-series.js';
import type { ExportSelection } from './select-export.js';

export interface Lacking {
  readonly series: Series;
  /** `2024-01-12 … 2024-01-14 (hole)` */
  readonly gaps: readonly string[];
}

/** A series that the lake holds only as zips lacks all of its data. */
export async function lackingData(
  { source, resolved, surroundings, clock, observer }: VerbRequest,
  { held, selected }: ExportSelection,
  range: Partial<Days>,
): Promise<Lacking[]> {
  const covered = coverLake({
    root: absolutePath(resolved.options.out, surroundings.home),
    venue: source,
    held,
    selected,
    formats: FORMATS,
    range,
    today: dayOf(resolved.options.nowMs ?? clock.now(), source),
    halts: source.halts(),
    failures: undefined,
    onRefused: (error) => {
      observer.warn(error.message);
    },
    onHalt: () => undefined,
  });
  const found = new Map<string, { lacking: Lacking; isReadable: boolean }>();
  for await (const { coverage, gaps } of covered) {
    const { series, format, rowSeconds, dayStartSeconds } = coverage;
    const name = seriesName(series);
    const isReadable = format === 'parquet' || format === 'csv';
    const known = found.get(name);
    if (known?.isReadable === true && !isReadable) continue;
    const texts = gaps
      .filter(({ isMissing }) => isMissing)
      .map(
        ({ from, to, reason }) =>
          `${spanText(from, to, reason === 'cut' ? 60 : rowSeconds, dayStartSeconds)} (${reason})`,
      );
    const own = isReadable ? texts : ['all rows: the lake holds it only as zip files'];
    // Two formats of a series complete each other, so only gaps that both have are certain.
    const both = known?.isReadable === true ? known.lacking.gaps.filter((gap) => own.includes(gap)) : own;
    found.set(name, { lacking: { series, gaps: both }, isReadable });
  }
  const lacking = [...found.values()].map((one) => one.lacking).filter(({ gaps }) => gaps.length > 0);
  if (resolved.options.requireComplete)
    for (const series of selected) {
      const read = await readSeries(absolutePath(resolved.options.out, surroundings.home), source, series);
      if ('reason' in read) lacking.push({ series, gaps: [read.reason] });
    }
  // Bars lack what their source lacks.
  return lacking.sort((a, b) => Number(a.series.dataset === 'bars') - Number(b.series.dataset === 'bars'));
}

const MOST_SERIES = 5;
const MOST_GAPS = 3;

/** Lines for people: the first gaps of the first series, and the number of the others. */
export function lackingLines(lacking: readonly Lacking[], coverage: string): string[] {
  if (lacking.length === 0) return [];
  const lines = lacking.slice(0, MOST_SERIES).map(({ series, gaps }) => {
    const more = gaps.length > MOST_GAPS ? `, and ${gaps.length - MOST_GAPS} more` : '';
    return `the lake lacks ${seriesName(series)}: ${gaps.slice(0, MOST_GAPS).join(', ')}${more}`;
  });
  const others = lacking.length - lines.length;
  return [
    ...lines,
    ...(others > 0 ? [`the lake lacks data of ${others} more series`] : []),
    `all gaps: ${coverage}`,
  ];
}
