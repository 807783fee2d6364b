/** The heat-map of a series as runs of days with the same state, because a lake has millions of days and few states. */
import type { GapReason } from '../coverage/absent-days.js';
import { percentOf, periodsOf } from '../coverage/gaps.js';
import type { Amounts, Gap } from '../coverage/gaps.js';
import { DAY_SECONDS } from '../coverage/series-coverage.js';
import type { SeriesCoverage } from '../coverage/series-coverage.js';
import { overlap } from '../coverage/spans.js';

/** The held percentage of a day, rounded down, or null if nothing is expected; and the reason of its largest gap. */
export type DayState = readonly [percent: number | null, reason: GapReason | null];

/** Numbers the different states of days. */
export class DayStates {
  readonly #numbers = new Map<string, number>();
  readonly list: DayState[] = [];

  numberOf(state: DayState): number {
    const name = state.join(' ');
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    this.#numbers.set(name, this.list.length);
    return this.list.push(state) - 1;
  }
}

/** Pairs of a number of days and the number of their state, from the first day of the series on. */
export function dayRuns(coverage: SeriesCoverage, gaps: readonly Gap[], states: DayStates): number[] {
  const runs: number[] = [];
  let first = 0;
  for (const [index, amounts] of periodsOf(coverage, gaps, 'day').entries()) {
    const start = (coverage.from + index) * DAY_SECONDS;
    while ((gaps[first]?.to ?? Infinity) <= start) first += 1;
    append(runs, states.numberOf([percent(amounts), reasonOf(gaps, first, start, amounts)]));
  }
  return runs;
}

function percent(amounts: Amounts): number | null {
  const exact = percentOf(amounts);
  return exact === undefined ? null : Math.floor(exact);
}

/** The reason of the gap that takes most of the day. Gaps in which data is expected come first if the day lacks data. */
function reasonOf(
  gaps: readonly Gap[],
  first: number,
  start: number,
  { missing }: Pick<Amounts, 'missing'>,
): GapReason | null {
  const end = start + DAY_SECONDS;
  let reason: GapReason | null = null;
  let most = 0;
  for (let at = first; (gaps[at]?.from ?? Infinity) < end; at += 1) {
    const gap = gaps[at];
    if (gap === undefined || (missing > 0 && !gap.isMissing)) continue;
    const seconds = overlap(gap.from, gap.to, start, end);
    if (seconds <= most) continue;
    most = seconds;
    ({ reason } = gap);
  }
  return reason;
}

function append(runs: number[], state: number): void {
  const last = runs.length - 2;
  if (last >= 0 && runs[last + 1] === state) runs[last] = (runs[last] ?? 0) + 1;
  else runs.push(1, state);
}
