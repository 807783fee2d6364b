/** The data of the selected series that the lake lacks. */
import { listText } from '../model/units.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import { coverLake } from '../coverage/cover-lake.js';
import { gapText } from '../coverage/series-table.js';
import { dayOf } from '../model/calendar.js';
import { FORMATS, seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { isRangeGiven, resolveRange } from '../select/date-range.js';
import { lakeFlag, printLines } from '../text/printable.js';
import type { Days } from './export-file.js';
import { readSeries } from './read-series.js';
import type { ExportSelection } from './select-export.js';

interface Lacking {
  readonly series: Series;
  /** `2024-01-12 … 2024-01-14 (hole)` */
  readonly gaps: readonly string[];
}

/** The given range; without it, all days. */
export function rangeOf({ resolved, clock, source }: VerbRequest): Partial<Days> {
  const { options } = resolved;
  return isRangeGiven(options) ? resolveRange(options, options.nowMs ?? clock.now(), source) : {};
}

/** Prints the data that the lake lacks, with `isJson` also as events. Resolves with false if --require-complete forbids the export. */
export async function tellLacking(
  { io, resolved }: LookUp,
  request: VerbRequest,
  given: { readonly selection: ExportSelection; readonly range: Partial<Days>; readonly isJson: boolean },
): Promise<boolean> {
  const { options } = resolved;
  const lacking = await lackingData(request, given.selection, given.range);
  if (lacking.length > 0 && (!options.quiet || options.requireComplete)) {
    const first = firstOfKind();
    const lines = lacking.flatMap(({ series, gaps }) =>
      first('', `the lake lacks ${seriesName(series)}: ${listText(gaps, 3)}`, 'the lake lacks more data'),
    );
    printLines(io.stderr, [...lines, `all gaps: cryptodl coverage${lakeFlag(given.selection.root)}`]);
  }
  if (given.isJson)
    for (const { series, gaps } of lacking) await writeData(io, [{ event: 'lacking', ...series, gaps }]);
  if (!options.requireComplete || lacking.length + given.selection.unread.length === 0) return true;
  printLines(io.stderr, [NOTHING_EXPORTED]);
  return false;
}

export const NOTHING_EXPORTED = 'nothing is exported, because --require-complete is given';

/** A series that the lake holds only as zips lacks all of its data. */
async function lackingData(
  { source, resolved, clock, observer }: VerbRequest,
  { root, selected }: ExportSelection,
  range: Partial<Days>,
): Promise<Lacking[]> {
  const covered = coverLake({
    root,
    venue: source,
    selected,
    formats: FORMATS,
    range,
    today: dayOf(resolved.options.nowMs ?? clock.now(), source),
    onRefused: (error) => {
      observer.warn(error.message);
    },
  });
  const found = new Map<string, { lacking: Lacking; isReadable: boolean }>();
  for await (const { coverage, gaps } of covered) {
    const { series, format } = coverage;
    const name = seriesName(series);
    const isReadable = format === 'parquet' || format === 'csv';
    const known = found.get(name);
    if (known?.isReadable === true && !isReadable) continue;
    const texts = gaps.filter(({ isMissing }) => isMissing).map((gap) => gapText(gap, coverage));
    const own = isReadable ? texts : ['all rows: the lake holds it only as zip files'];
    // Two formats of a series complete each other, so only gaps that both have are certain.
    const both = known?.isReadable === true ? known.lacking.gaps.filter((gap) => own.includes(gap)) : own;
    found.set(name, { lacking: { series, gaps: both }, isReadable });
  }
  const lacking = [...found.values()].map((one) => one.lacking).filter(({ gaps }) => gaps.length > 0);
  if (resolved.options.requireComplete)
    for (const series of selected) {
      const read = await readSeries(root, source, series);
      const isKnown = lacking.some((one) => one.series === series);
      if ('reason' in read && !isKnown) lacking.push({ series, gaps: [read.reason] });
    }
  // Bars lack what their source lacks.
  return lacking.sort((a, b) => Number(a.series.dataset === 'bars') - Number(b.series.dataset === 'bars'));
}

/** Lines for series that lack data or are left out for the same reason, and for files without rows. */
const MOST_OF_KIND = 3;

/** Returns a function that gives the first three lines of each kind, then `more` once, and no further line. */
export function firstOfKind(): (kind: string, line: string, more: string) => string[] {
  const counts = new Map<string, number>();
  return (kind, line, more) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    if (count <= MOST_OF_KIND) return [line];
    return count === MOST_OF_KIND + 1 ? [more] : [];
  };
}
