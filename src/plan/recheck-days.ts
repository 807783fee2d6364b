/** Adds to the ranges of a request the days that are checked again: their objects may have changed or been published late. */
import type { Absences, Absence } from '../lake/absences.js';
import { rangesOf, spansOf, type DayRange } from '../lake/catalogue/spans.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { REASON_FACTS } from '../model/absence-reasons.js';
import { dayPeriod, monthPeriod, monthOf } from '../model/calendar.js';
import { isFromRest } from '../model/manifest-line.js';
import { PAGE_DAYS } from './series-listing.js';
import type { PlanContext } from './series-request.js';
import { isDue } from '../lake/absence-waits.js';

/**
 * The ranges, ascending and disjoint, together with recent days that are held or unknown, the last held days before a pause of runs, held
 * months whose missing days were not requested yet, rows of REST that substitute the archive's, and absent periods that are due again.
 * Days that are not held are added only before the end of the ranges.
 * Ranges that all end before the recent days stay as they are, because the user selected exactly them.
 */
export function withRecheckedDays(
  context: Pick<PlanContext, 'today' | 'nowMs' | 'revisions' | 'recheckDays'>,
  asked: readonly DayRange[],
  held: HeldObjects,
  absences: Absences,
): readonly DayRange[] {
  const { today, nowMs, revisions, recheckDays } = context;
  const since = today - recheckDays;
  // An order with an end is never extended.
  const end = Math.min(today, Math.max(...asked.map(({ to }) => to)));
  if (recheckDays === 0 || asked.every(({ to }) => to <= since)) return asked;
  // No run has compared them since a pause began. The page of the listing that a run reads has those of the last year.
  const lastHeld = Math.max(today - PAGE_DAYS, Math.min(today, held.end() ?? today) - recheckDays);
  const again = held.spans().filter(({ to, facts }) => {
    const isRecent = revisions !== 'ignore' && to > lastHeld && !isFromRest(facts);
    // Rows of REST substitute those of the archive, which may answer again.
    return isRecent || facts.daysPending === true || facts.archiveFailed !== undefined;
  });
  const isLate = (absence: Absence): boolean => REASON_FACTS[absence.reason].mayCome && isDue(absence, nowMs);
  const days = [...absences.days()]
    .filter(([day, absence]) => day < end && isLate(absence) && !held.hasDay(day))
    .map(([day]) => dayPeriod(day));
  const months = [...absences.months()]
    .filter(([month, absence]) => isLate(absence) && held.ofMonth(month) === undefined)
    .map(([month]) => monthPeriod(month));
  const unknown = unknownDays(held, absences, since, end);
  const added = [...again, ...unknown, ...days, ...months].map(({ from, to }) => ({
    from,
    to: Math.min(to, today),
  }));
  return added.length === 0 ? asked : rangesOf(spansOf([...asked, ...added]));
}

/** Recent days that failed or were not requested, if they come after a held day. */
function unknownDays(held: HeldObjects, absences: Absences, since: number, end: number): DayRange[] {
  const days: DayRange[] = [];
  let isAfterHeld = false;
  for (let day = since; day < end; day += 1) {
    const isHeld = held.hasDay(day) || held.ofMonth(monthOf(day)) !== undefined;
    isAfterHeld ||= isHeld;
    if (isAfterHeld && !isHeld && absences.ofDay(day) === undefined) days.push({ from: day, to: day + 1 });
  }
  return days;
}
