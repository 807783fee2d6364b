/** What `repair` asks for of a series: days that are missing between the first and the last held one, or not held as they should be. */
import { monthOf } from '../calendar.js';
import type { Absences } from '../lake/absences.js';
import type { Held } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import type { AbsenceReason, Period } from '../task.js';
import { isHeld, periodsOf } from './lost-objects.js';

export interface Missing {
  readonly held: Held;
  readonly absences: Absences;
  /** Objects in files that are not right. */
  readonly broken: readonly ObjectLine[];
  /** Objects that were held once, that the archive has another revision of, or that are cut. */
  readonly others: readonly Period[];
  /** The running day. */
  readonly today: number;
}

/** For every other reason there is nothing to be had. */
const MAY_COME: ReadonlySet<AbsenceReason> = new Set(['hole', 'not-published-yet']);

/** Half-open, ascending and disjoint. */
export function missingDays(missing: Missing): { from: number; to: number }[] {
  const { held, broken, others, today } = missing;
  const lines = held.lines();
  const days = new Set<number>();
  const add = ({ from, to }: Pick<Period, 'from' | 'to'>): void => {
    for (let day = from; day < Math.min(to, today); day += 1) days.add(day);
  };
  periodsOf([...broken, ...lines.filter(isIncomplete)]).forEach(add);
  others.forEach(add);
  const periods = periodsOf(lines);
  const first = Math.min(...periods.map(({ from }) => from));
  const last = Math.max(...periods.map(({ to }) => to));
  for (let day = first; day < last; day += 1) if (isMissing(missing, day)) add({ from: day, to: day + 1 });
  return spansOf([...days].sort((a, b) => a - b));
}

/** Its rows were not all there when it was asked for. */
function isIncomplete({ open, gaps }: ObjectLine): boolean {
  return open === true || (gaps?.length ?? 0) > 0;
}

function isMissing({ held, absences }: Missing, day: number): boolean {
  if (isHeld(held, { cadence: 'daily', from: day, to: day + 1 })) return false;
  const known = absences.days().get(day) ?? absences.months().get(monthOf(day));
  return known === undefined || MAY_COME.has(known.reason);
}

function spansOf(days: readonly number[]): { from: number; to: number }[] {
  const spans: { from: number; to: number }[] = [];
  for (const day of days) {
    const last = spans.at(-1);
    if (last?.to === day) last.to = day + 1;
    else spans.push({ from: day, to: day + 1 });
  }
  return spans;
}
