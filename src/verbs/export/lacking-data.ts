/** The data of the selected series that the lake lacks, by the same day states as `check` and `coverage`. */
import { writeData } from '../../terminal/write-data.js';
import { seriesName } from '../../model/task.js';
import { countText, listText } from '../../model/units.js';
import { lakeFlag, printLines } from '../../text/printable.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { DAY_SECONDS } from '../../lake/catalogue/gap.js';
import { readableStates } from '../../plan/select/held-series.js';
import type { Export, ExportCommand } from './select-export.js';
import { gapText } from '../../lake/catalogue/gap-texts.js';

export const NOTHING_EXPORTED = 'nothing is exported, because --require-complete is given';

/** Lines for series that lack data. */
const MOST_LINES = 3;

/** Prints the data that the lake lacks, with --json also as events, except for a script. Resolves with false if --require-complete forbids the export. */
export async function tellLacking({ io, resolved }: ExportCommand, given: Export): Promise<boolean> {
  const { requireComplete, quiet, json } = resolved.options;
  const { request, root, program, selected, range, unread, catalogue } = given;
  const covered = await readableStates(root, selected, request, range);
  const gapsOf = new Map(selected.map((series) => [series, missingOf(covered.get(series))]));
  for await (const { series, fault } of catalogue.series(requireComplete ? selected : []))
    if (fault !== undefined && gapsOf.get(series)?.length === 0) gapsOf.set(series, [fault]);
  // Bars lack what their source lacks.
  const lacking = [...gapsOf]
    .filter(([, gaps]) => gaps.length > 0)
    .sort(([a], [b]) => Number(a.dataset === 'bars') - Number(b.dataset === 'bars'));
  if (lacking.length > 0 && (!quiet || requireComplete)) {
    const lines = lacking.map(
      ([series, gaps]) => `the lake lacks ${seriesName(series)}: ${listText(gaps, 3)}`,
    );
    const more = countText(lacking.length - MOST_LINES, 'further series');
    if (lacking.length > MOST_LINES) lines.splice(MOST_LINES, lines.length, `the lake lacks data of ${more}`);
    printLines(io.stderr, [...lines, `all gaps: cryptodl coverage${lakeFlag(root)}`]);
  }
  const twice = new Set([...covered.values()].filter(isListedTwice).map(({ series }) => series.symbol));
  if (twice.size > 0)
    request.observer.warn(
      `${listText(twice)}: no rows for 30 days or more between others; after a second listing under the same name, prices do not continue`,
    );
  const events = lacking.map(([series, gaps]) => ({ event: 'lacking', ...series, gaps }));
  if (json && program.script === undefined) await writeData(io, events);
  if (!requireComplete || lacking.length + unread.length === 0) return true;
  printLines(io.stderr, [NOTHING_EXPORTED]);
  return false;
}

function missingOf(covered: SeriesStates | undefined): string[] {
  if (covered === undefined) return ['all rows: the lake has no Parquet or CSV files of it that can be read'];
  return covered.gaps.filter(({ isMissing }) => isMissing).map((gap) => gapText(gap, covered));
}

/** Whether the series has no rows for 30 days or more, and rows before and after. */
function isListedTwice({ first = '', last = '', dayStartSeconds, gaps }: SeriesStates): boolean {
  const [start = NaN, end = NaN] = [first, last].map((iso) => Date.parse(iso) / 1000 - dayStartSeconds);
  return gaps.some(({ from, to }) => to - from >= 30 * DAY_SECONDS && from > start && to <= end);
}
