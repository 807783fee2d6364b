/** Adds to the ranges of a request the days that are checked again, and those of its order that the lake lacks. */
import { isEnd, type Absences, type Absence } from '../lake/absences.js';
import { rangesOf, spansOf, type DayRange } from '../lake/catalogue/spans.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { Manifest } from '../lake/manifest.js';
import { REASON_FACTS } from '../model/absence-reasons.js';
import { dayPeriod, monthPeriod, monthOf } from '../model/calendar.js';
import { isFromRest } from '../model/manifest-line.js';
import { PAGE_DAYS } from './series-listing.js';
import type { PlanContext } from './series-request.js';
import { isDue, waitOfAge } from '../lake/absences.js';

interface LackingLake extends Pick<Manifest, 'absences'> {
  readonly held: HeldObjects;
  /** Held days that are cut, compared with the days around them. */
  readonly cuts: ReadonlySet<number>;
  /** The run reads the listing of the archive. */
  readonly isArchived: boolean;
}

/**
 * The ranges, together with the days since the first day of the order that the lake lacks and that are due: at once if no run has asked for them, then
 * less and less often, without end. Days that are held without some of their rows, or from REST in place of the archive, are compared by each run while
 * they are young enough for the page of the listing that it reads anyway, then less and less often too.
 * `sinceDay`: the first day of the order; -Infinity: that of the series.
 */
export function withLackingDays(
  { today, nowMs, revisions }: Pick<PlanContext, 'today' | 'nowMs' | 'revisions'>,
  asked: readonly DayRange[],
  sinceDay: number | undefined,
  lake: LackingLake,
): readonly DayRange[] {
  const { held, absences, cuts, isArchived } = lake;
  const last = asked.at(-1);
  if (sinceDay === undefined || last === undefined) return asked;
  const start = sinceDay === -Infinity ? (held.first() ?? sinceDay) : sinceDay;
  if (start === -Infinity) return [{ from: start, to: last.to }];
  const lacking: DayRange[] = [];
  const known = knownAbsence(held, absences);
  const add = (from: number, to: number): void => {
    for (let day = from; day < to; day += 1) {
      const absence = known(day);
      if (absence === undefined || isDue(absence, nowMs)) lacking.push({ from: day, to: day + 1 });
    }
  };
  let next = start;
  for (const { from, to, facts } of held.spans()) {
    if (to <= start) continue;
    add(next, Math.min(from, last.to));
    const isShort = facts.gaps !== undefined || facts.open === true || cuts.has(from);
    const isDoubtful = isShort || (isArchived && isFromRest(facts));
    // The page of the listing that a run reads for its days has those of the last year too.
    const isFree = facts.cadence === 'daily' && today - from < PAGE_DAYS;
    const isCompared = isFree || isCheckDay(from, today);
    if (isDoubtful && revisions !== 'ignore' && isCompared) lacking.push({ from: Math.max(from, start), to });
    next = Math.max(next, to);
  }
  add(next, last.to);
  return lacking.length === 0 ? asked : rangesOf(spansOf([...asked, ...lacking]));
}

/** Spreads the checks of held days of one age over the days of the calendar, so that each run has a share, also a weekly one. */
export function isCheckDay(day: number, today: number): boolean {
  const every = Math.max(1, Math.ceil(waitOfAge(today - day)));
  return (today + day) % every === 0;
}

/** The recorded absence of a day; undefined without one, after a failed request, and for one that days held since contradict. */
function knownAbsence(held: HeldObjects, absences: Absences): (day: number) => Absence | undefined {
  const first = held.first() ?? Infinity;
  const end = held.end() ?? -Infinity;
  const [ended] = [...absences.days()]
    .filter(([day, { reason }]) => day >= end && isEnd(reason))
    .sort(([a], [b]) => a - b);
  return (day) => {
    if (absences.failureOf(dayPeriod(day)) !== undefined) return undefined;
    const absence = absences.ofDay(day);
    if (absence === undefined) return ended !== undefined && day >= ended[0] ? ended[1] : undefined;
    const { at } = REASON_FACTS[absence.reason];
    const isRefuted = (at === 'end' && day < end) || (at === 'start' && day > first);
    return isRefuted ? undefined : absence;
  };
}

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
