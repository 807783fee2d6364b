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

/**
 * The days from the first one of the series on, as text: for each run of days with one state, its letters and, beyond one day, the
 * number of days: `A30B` is 30 days of the first state and one of the second. In the worst case each day is a run of its own, and
 * a lake of 2,000 series and 3,000 days has six million of them.
 */
export function dayRuns(coverage: SeriesCoverage, gaps: readonly Gap[], states: DayStates): string {
  const runs: string[] = [];
  let last: number | undefined;
  let days = 0;
  const end = (): void => {
    if (last !== undefined) runs.push(lettersOf(last) + (days > 1 ? String(days) : ''));
  };
  let first = 0;
  for (const [index, amounts] of periodsOf(coverage, gaps, 'day').entries()) {
    const start = (coverage.from + index) * DAY_SECONDS;
    while ((gaps[first]?.to ?? Infinity) <= start) first += 1;
    const state = states.numberOf([percent(amounts), reasonOf(gaps, first, start, amounts)]);
    if (state !== last) {
      end();
      days = 0;
    }
    last = state;
    days += 1;
  }
  end();
  return runs.join('');
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** `A` to `Z`, `aA` to `zZ`, `aaA` and so on: the upper-case letter is the last one. */
function lettersOf(number: number): string {
  let text = LETTERS[number % 26] ?? '';
  for (let rest = Math.floor(number / 26); rest > 0; rest = Math.floor((rest - 1) / 26))
    text = (LETTERS[(rest - 1) % 26] ?? '').toLowerCase() + text;
  return text;
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
