/** The days of a series that `repair` fetches. */
import type { Absences } from '../../lake/absences.js';
import { rangesOf, spansOf } from '../../lake/catalogue/spans.js';
import type { HeldObjects } from '../../lake/held-objects.js';
import { REASON_FACTS } from '../../model/absence-reasons.js';
import { dayPeriod, monthOf, parsePeriod } from '../../model/calendar.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import type { Period } from '../../model/task.js';

export function isHeld(held: HeldObjects, period: Period): boolean {
  if (held.ofMonth(monthOf(period.from)) !== undefined) return true;
  for (let day = period.from; day < period.to; day += 1) if (!held.hasDay(day)) return false;
  return true;
}

/**
 * The days of a series that `repair` fetches: days missing between the first and the last day that it holds or has lost, holes, days whose last fetch
 * failed and that it does not hold, days of incomplete objects, and `others`, all of them before today; and the days of broken files. The spans are
 * half-open, ascending and disjoint.
 */
export function daysToRepair(
  { held, absences }: { readonly held: HeldObjects; readonly absences: Absences },
  { broken, others, today }: { broken: readonly ObjectLine[]; others: readonly Period[]; today: number },
): { from: number; to: number }[] {
  const lines = held.lines();
  const days = new Set<number>();
  const add = ({ from, to }: Pick<Period, 'from' | 'to'>, end = today): void => {
    for (let day = from; day < Math.min(to, end); day += 1) days.add(day);
  };
  // Also days after today: a line of such a day is wrong, and only its failed fetch tells the user.
  for (const period of periodsOfLines(broken)) add(period, period.to);
  // Objects that lacked rows when they were fetched.
  const incomplete = lines.filter(({ open, gaps }) => open === true || (gaps?.length ?? 0) > 0);
  for (const period of periodsOfLines(incomplete)) add(period);
  for (const period of others) add(period);
  // `check` names repair for each of them, also for those before or after all held days.
  for (const [day, { reason }] of absences.days())
    if (reason === 'hole' && !isHeld(held, dayPeriod(day))) add(dayPeriod(day));
  for (const period of absences.failed()) if (!isHeld(held, period)) add(period);
  const periods = [...periodsOfLines(lines), ...others];
  const first = Math.min(...periods.map(({ from }) => from));
  const last = Math.max(...periods.map(({ to }) => to));
  for (let day = first; day < last; day += 1) {
    const known = absences.days().get(day) ?? absences.months().get(monthOf(day));
    const mayCome = known === undefined || REASON_FACTS[known.reason].mayCome;
    if (mayCome && !isHeld(held, dayPeriod(day))) add(dayPeriod(day));
  }
  return rangesOf(spansOf([...days].map(dayPeriod)));
}

function periodsOfLines(lines: readonly ObjectLine[]): Period[] {
  return lines.flatMap((line) => parsePeriod(line.cadence, line.period) ?? []);
}
