/** The coverage of the lake in the page: text of one group of series after the other, so that a large lake needs little memory. */
import type { SeriesStates } from '../catalogue/day-states.js';
import { GapGroups, gapTexts } from '../coverage/gap-groups.js';
import { labelOf } from '../coverage/print-coverage.js';
import { layerName } from '../model/task.js';
import { printable } from '../text/printable.js';
import { excusedText, percentText, unitOf } from '../coverage/series-table.js';
import { DayStates, dayRuns } from './day-states.js';
import { dataElement, embedded } from './shell.js';

/** Groups of gaps in the page, at most, per group of series. */
const MOST_GAPS = 200;

const { before, after } = dataElement('group');

/** Yields the text of the elements, in parts. A group of series has one market, dataset and interval; its series follow each other. */
export async function* coverageElements(covered: AsyncIterable<SeriesStates>): AsyncGenerator<string> {
  let group: { readonly name: string; readonly states: DayStates; readonly gaps: GapGroups } | undefined;
  for await (const series of covered) {
    const name = printable(layerName(series.series));
    if (group?.name !== name) {
      if (group !== undefined) yield endOf(group.states, group.gaps);
      group = { name, states: new DayStates(), gaps: new GapGroups(false) };
      // Without the closing brace: the rows follow, and `endOf` closes the object.
      const title = embedded({ name, unit: unitOf(series) }).slice(0, -1);
      yield `${before}${title},"rows":[`;
    } else yield ',';
    group.gaps.add(labelOf(series), series, series.gaps);
    yield embedded(rowOf(series, group.states));
  }
  if (group !== undefined) yield endOf(group.states, group.gaps);
}

/** Short names, because a lake may have thousands of rows. */
function rowOf(series: SeriesStates, states: DayStates): object {
  const excused = series.excused === 0 ? '' : ` (${excusedText(series)} excused)`;
  return {
    s: labelOf(series),
    p: `${percentText(series)}${excused}`,
    e: series.expected,
    m: series.missing,
    o: series.objects,
    v: series.revisions,
    f: series.first ?? null,
    l: series.last ?? null,
    // A series without days begins nowhere.
    d: Number.isFinite(series.from) ? series.from : 0,
    r: dayRuns(series, states),
  };
}

function endOf(states: DayStates, gaps: GapGroups): string {
  const { shown, more } = gaps.worst(MOST_GAPS);
  const groups = shown.map((group) => ({ ...gapTexts(group), reason: group.reason, series: group.series }));
  return `],${embedded({ states: states.list, gaps: groups, moreGaps: more }).slice(1)}${after}`;
}
