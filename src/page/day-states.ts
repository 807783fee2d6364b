/** The heat-map of a series as runs of days with the same state, because a lake has millions of days and few states. */
import type { GapReason } from '../catalogue/absent-days.js';
import { overlap } from '../catalogue/spans.js';
import { percentOf, periodsOf } from '../coverage/amounts.js';

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

/**
 * The days from the first one of the series on, as text: for each run of days with one state, its letters and, beyond one day, the
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
  return runs.map(({ state, days }) => lettersOf(state) + (days > 1 ? String(days) : '')).join('');
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** `A` to `Z`, `aA` to `zZ`, `aaA` and so on: the upper-case letter is the last one. */
function lettersOf(number: number): string {
  let text = LETTERS[number % 26] ?? '';
  for (let rest = Math.floor(number / 26); rest > 0; rest = Math.floor((rest - 1) / 26))
    text = (LETTERS[(rest - 1) % 26] ?? '').toLowerCase() + text;
  return text;
}

/** The reason of the gap that takes most of the day. Gaps in which data is expected come first if the day lacks data. */
function reasonOf({ start, end, missing, gaps }: ReturnType<typeof periodsOf>[number]): GapReason | null {
  let most = 0;
  let reason: GapReason | null = null;
  for (const gap of gaps) {
    const seconds = missing > 0 && !gap.isMissing ? 0 : overlap(gap.from, gap.to, start, end);
    if (seconds <= most) continue;
    most = seconds;
    ({ reason } = gap);
  }
  return reason;
}
