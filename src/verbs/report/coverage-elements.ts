/** The coverage of the lake in the page: text of one group of series after the other, so that a large lake needs little memory. */
import type { GapReason } from '../../lake/catalogue/absent-days.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { GapGroups, gapTexts } from '../../lake/catalogue/gap-texts.js';
import {
  excusedText,
  seriesLabel,
  percentOf,
  heldPercentText,
  unitOf,
} from '../../lake/catalogue/series-table.js';
import { overlap } from '../../lake/catalogue/spans.js';
import { layerName } from '../../model/task.js';
import { dataElement, embedded } from '../../terminal/page-shell.js';
import { printable } from '../../text/printable.js';
import { periodsOf } from '../../lake/catalogue/period-amounts.js';

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
    group.gaps.add(seriesLabel(series), series, series.gaps);
    yield embedded(rowOf(series, group.states));
  }
  if (group !== undefined) yield endOf(group.states, group.gaps);
}

/** Short names, because a lake may have thousands of rows. */
function rowOf(series: SeriesStates, states: DayStates): object {
  const excused = series.excused === 0 ? '' : ` (${excusedText(series)} excused)`;
  return {
    s: seriesLabel(series),
    p: `${heldPercentText(series)}${excused}`,
    e: series.expected,
    m: series.missing,
    o: series.objects,
    v: series.revisions,
    f: series.firstInstant ?? null,
    l: series.lastInstant ?? null,
    // A series without days begins nowhere.
    d: Number.isFinite(series.from) ? series.from : 0,
    r: dayRuns(series, states),
  };
}

function endOf(states: DayStates, gaps: GapGroups): string {
  const { shown, more } = gaps.worst(200);
  const groups = shown.map((group) => ({ ...gapTexts(group), reason: group.reason, series: group.series }));
  return `],${embedded({ states: states.list, gaps: groups, moreGaps: more }).slice(1)}${after}`;
}

/** The held percentage of a day, rounded down, or null if nothing is expected; and the reason of its largest gap. */
type DayState = readonly [percent: number | null, reason: GapReason | null];

/** Numbers the different states of days. */
export class DayStates {
  readonly #numbers = new Map<string, number>();
  readonly list: DayState[] = [];

  numberOf(state: DayState): number {
    const name = state.join(' ');
    const number = this.#numbers.get(name) ?? this.list.push(state) - 1;
    this.#numbers.set(name, number);
    return number;
  }
}

/**
 * The days from the first one of the series on, as text: for each run of days with one state, its character and, beyond one day, the
 * number of days: `A30B` is 30 days of the first state and one of the second. In the worst case each day is a run of its own, and
 * a lake of 2,000 series and 3,000 days has six million of them.
 */
export function dayRuns(series: Parameters<typeof periodsOf>[0], states: DayStates): string {
  const runs: { state: number; days: number }[] = [];
  for (const period of periodsOf(series, 'day')) {
    const percent = percentOf(period);
    const state = states.numberOf([percent === undefined ? null : Math.floor(percent), reasonOf(period)]);
    const last = runs.at(-1);
    if (last?.state === state) last.days += 1;
    else runs.push({ state, days: 1 });
  }
  return runs.map(({ state, days }) => characterOf(state) + (days > 1 ? String(days) : '')).join('');
}

/** `A` for the first state: no digit, and none of the characters that a page escapes. */
const characterOf = (state: number): string => String.fromCharCode(65 + state);

/** The reason of the gap that takes most of the day. Gaps in which data is expected come first if the day lacks data. */
function reasonOf({ start, end, missing, gaps }: ReturnType<typeof periodsOf>[number]): GapReason | null {
  let most = 0;
  let reason: GapReason | null = null;
  for (const gap of gaps) {
    const seconds = missing > 0 && !gap.isMissing ? 0 : overlap(gap.fromSeconds, gap.toSeconds, start, end);
    if (seconds <= most) continue;
    most = seconds;
    ({ reason } = gap);
  }
  return reason;
}
