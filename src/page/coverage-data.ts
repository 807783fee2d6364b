/** The coverage of the lake in the page: text of one group of series after the other, so that a large lake needs little memory. */
import type { CoveredSeries } from '../coverage/cover-lake.js';
import { GapGroups, gapTexts } from '../coverage/gap-groups.js';
import { groupName, labelOf } from '../coverage/print-coverage.js';
import { excusedText, percentText, unitOf } from '../coverage/series-table.js';
import { DayStates, dayRuns } from './day-states.js';
import { dataElement, embedded } from './shell.js';

/** Groups of gaps in the page, at most, per group of series. */
const MOST_GAPS = 200;

const { before, after } = dataElement('group');

/** Yields the text of the elements, in parts. A group of series has one market, dataset and interval; its series follow each other. */
export async function* coverageElements(covered: AsyncIterable<CoveredSeries>): AsyncGenerator<string> {
  let group: { readonly name: string; readonly states: DayStates; readonly gaps: GapGroups } | undefined;
  for await (const series of covered) {
    const name = groupName(series.coverage.series);
    if (group?.name !== name) {
      if (group !== undefined) yield endOf(group.states, group.gaps);
      group = { name, states: new DayStates(), gaps: new GapGroups(false) };
      // Without the closing brace: the rows follow, and `endOf` closes the object.
      const title = embedded({ name, unit: unitOf(series.coverage) }).slice(0, -1);
      yield `${before}${title},"rows":[`;
    } else yield ',';
    group.gaps.add(labelOf(series.coverage), series.coverage, series.gaps);
    yield embedded(rowOf(series, group.states));
  }
  if (group !== undefined) yield endOf(group.states, group.gaps);
}

/** Short names, because a lake may have thousands of rows. */
function rowOf({ coverage, gaps, ...amounts }: CoveredSeries, states: DayStates): object {
  const excused = amounts.excused === 0 ? '' : ` (${excusedText(amounts)} excused)`;
  return {
    s: labelOf(coverage),
    p: `${percentText(amounts)}${excused}`,
    e: amounts.expected,
    m: amounts.missing,
    o: coverage.objects,
    v: coverage.revisions,
    f: coverage.first ?? null,
    l: coverage.last ?? null,
    // A series without days begins nowhere.
    d: Number.isFinite(coverage.from) ? coverage.from : 0,
    r: dayRuns(coverage, gaps, states),
  };
}

function endOf(states: DayStates, gaps: GapGroups): string {
  const { shown, more } = gaps.worst(MOST_GAPS);
  const groups = shown.map((group) => ({ ...gapTexts(group), reason: group.reason, series: group.series }));
  return `],${embedded({ states: states.list, gaps: groups, moreGaps: more }).slice(1)}${after}`;
}
