/** The data of the selected series that the lake lacks, by the same day states as `check` and `coverage`. */
import { openCatalogue } from '../catalogue/catalogue.js';
import type { DayRange } from '../catalogue/catalogue.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import { coverLake } from '../coverage/cover-lake.js';
import type { CoveredSeries } from '../coverage/cover-lake.js';
import { DAY_SECONDS } from '../coverage/series-coverage.js';
import { gapText } from '../coverage/series-table.js';
import { dayOf } from '../model/calendar.js';
import { seriesName } from '../model/task.js';
import { countText, listText } from '../model/units.js';
import type { VerbRequest } from '../options/verb-request.js';
import { isRangeGiven, resolveRange } from '../select/date-range.js';
import { lakeFlag, printLines } from '../text/printable.js';
import type { ExportSelection } from './select-export.js';

/** The given range; without it, all days. */
export function rangeOf({ resolved, clock, source }: VerbRequest): Partial<DayRange> {
  const { options } = resolved;
  return isRangeGiven(options) ? resolveRange(options, options.nowMs ?? clock.now(), source) : {};
}

export const NOTHING_EXPORTED = 'nothing is exported, because --require-complete is given';

/** Lines for series that lack data. */
const MOST_LINES = 3;

/** Prints the data that the lake lacks, with `isJson` also as events. Resolves with false if --require-complete forbids the export. */
export async function tellLacking(
  { io, resolved }: LookUp,
  request: VerbRequest,
  given: { readonly selection: ExportSelection; readonly range: Partial<DayRange>; readonly isJson: boolean },
): Promise<boolean> {
  const { options } = resolved;
  const { root, selected, unread } = given.selection;
  const covered = await coveredSeries(request, given.selection, given.range);
  const lacking = selected.flatMap((series) => {
    const gaps = missingOf(covered.get(seriesName(series)));
    return gaps.length === 0 ? [] : [{ series, gaps }];
  });
  if (options.requireComplete)
    for await (const { series, fault } of openCatalogue(root, request.source, request.signal).series(
      selected,
    ))
      if (fault !== undefined && !lacking.some((one) => one.series === series))
        lacking.push({ series, gaps: [fault] });
  // Bars lack what their source lacks.
  lacking.sort((a, b) => Number(a.series.dataset === 'bars') - Number(b.series.dataset === 'bars'));
  if (lacking.length > 0 && (!options.quiet || options.requireComplete)) {
    const lines = lacking.map(
      ({ series, gaps }) => `the lake lacks ${seriesName(series)}: ${listText(gaps, 3)}`,
    );
    const more = countText(lacking.length - MOST_LINES, 'further series');
    if (lacking.length > MOST_LINES) lines.splice(MOST_LINES, lines.length, `the lake lacks data of ${more}`);
    printLines(io.stderr, [...lines, `all gaps: cryptodl coverage${lakeFlag(root)}`]);
  }
  const twice = new Set(
    [...covered.values()].filter(isListedTwice).map(({ coverage }) => coverage.series.symbol),
  );
  if (twice.size > 0)
    request.observer.warn(
      `${listText(twice)}: no rows for 30 days or more between others; after a second listing under the same name, prices do not continue`,
    );
  if (given.isJson)
    for (const { series, gaps } of lacking) await writeData(io, [{ event: 'lacking', ...series, gaps }]);
  if (!options.requireComplete || lacking.length + unread.length === 0) return true;
  printLines(io.stderr, [NOTHING_EXPORTED]);
  return false;
}

/** The coverage of each series in the format that lacks least, by name. Zips cannot be exported. */
async function coveredSeries(
  { source, resolved, clock, observer }: VerbRequest,
  { root, selected }: ExportSelection,
  range: Partial<DayRange>,
): Promise<ReadonlyMap<string, CoveredSeries>> {
  const best = new Map<string, CoveredSeries>();
  const covered = coverLake({
    root,
    venue: source,
    selected,
    formats: ['parquet', 'csv'],
    range,
    today: dayOf(resolved.options.nowMs ?? clock.now(), source),
    onRefused: (error) => {
      observer.warn(error.message);
    },
  });
  for await (const one of covered) {
    const name = seriesName(one.coverage.series);
    const known = best.get(name);
    if (known === undefined || one.missing < known.missing) best.set(name, one);
  }
  return best;
}

function missingOf(covered: CoveredSeries | undefined): string[] {
  if (covered === undefined) return ['all rows: the lake has no Parquet or CSV files of it that can be read'];
  const { coverage, gaps } = covered;
  return gaps.filter(({ isMissing }) => isMissing).map((gap) => gapText(gap, coverage));
}

const LONG_GAP_SECONDS = 30 * DAY_SECONDS;

/** Whether the series has no rows for 30 days or more, and rows before and after. */
function isListedTwice({ coverage, gaps }: CoveredSeries): boolean {
  const { first, last, dayStartSeconds } = coverage;
  if (first === undefined || last === undefined) return false;
  const [start, end] = [first, last].map((instant) => Date.parse(instant) / 1000 - dayStartSeconds);
  return gaps.some(
    ({ from, to }) => to - from >= LONG_GAP_SECONDS && from > (start ?? 0) && to <= (end ?? 0),
  );
}
