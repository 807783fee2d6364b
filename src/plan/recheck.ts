/** Adds days to the selected ones that are looked at again: their objects may have changed or come late. */
import { dayPeriod, monthOf, monthPeriod, monthStart, parsePeriod } from '../model/calendar.js';
import { isDue } from '../lake/absences.js';
import type { Absence, Absences } from '../lake/absences.js';
import { isFromRest } from '../lake/manifest.js';
import type { HeldObjects } from '../lake/manifest.js';
import type { AbsenceReason } from '../model/task.js';
import type { DayRange } from './choose-objects.js';

export interface RecheckContext {
  readonly today: number;
  readonly nowMs: number;
  readonly revisions: 'check' | 'ignore' | 'only' | 'take';
  readonly recheckDays: number;
}

/** Reasons of absence that may end. */
const LATE: ReadonlySet<AbsenceReason> = new Set(['not-published-yet', 'hole']);

/**
 * The ranges, ascending and disjoint, together with recent days that are held or unknown, short months without requested
 * days, rows of REST that substitute the archive's, and absent periods that are due again. Ranges that end long ago stay as
 * they are, because the user selected exactly them.
 */
export function withRecheckedDays(
  { today, nowMs, revisions, recheckDays }: RecheckContext,
  asked: readonly DayRange[],
  held: HeldObjects,
  absences: Absences,
): readonly DayRange[] {
  const since = today - recheckDays;
  if (recheckDays === 0 || asked.every(({ to }) => to <= since)) return asked;
  const recent = (revisions === 'ignore' ? [] : held.lines()).flatMap((line) => {
    const period = parsePeriod(line.cadence, line.period);
    return period === undefined || isFromRest(line) || period.to <= since ? [] : [period];
  });
  const pending = held.lines().flatMap((line) => {
    const period = line.daysPending === true ? parsePeriod(line.cadence, line.period) : undefined;
    return period === undefined ? [] : [period];
  });
  // Rows of REST substitute those of the archive, which may answer again.
  const substituted = held.lines().flatMap((line) => {
    const period = line.archiveFailed === undefined ? undefined : parsePeriod(line.cadence, line.period);
    return period === undefined ? [] : [period];
  });
  const isLate = (absence: Absence): boolean => LATE.has(absence.reason) && isDue(absence, nowMs);
  const days = [...absences.days()].flatMap(([day, absence]) =>
    isLate(absence) && held.ofDay(day) === undefined ? [{ from: day, to: day + 1 }] : [],
  );
  const months = [...absences.months()].flatMap(([month, absence]) =>
    isLate(absence) && held.ofMonth(month) === undefined
      ? [{ from: monthStart(month), to: monthStart(month + 1) }]
      : [],
  );
  const unknown = unknownDays(held, absences, since, today);
  const again = [...recent, ...pending, ...substituted, ...unknown, ...days, ...months].map(
    ({ from, to }) => ({ from, to: Math.min(to, today) }),
  );
  return again.length === 0 ? asked : joined([...asked, ...again]);
}

/** Recent days after the first held one that failed or were not requested. */
function unknownDays(held: HeldObjects, absences: Absences, since: number, today: number): DayRange[] {
  const days: DayRange[] = [];
  let isBehindHeld = false;
  for (let day = since; day < today; day += 1) {
    const isHeld = held.ofDay(day) !== undefined || held.ofMonth(monthOf(day)) !== undefined;
    isBehindHeld ||= isHeld;
    const isKnown =
      isHeld ||
      absences.of(dayPeriod(day)) !== undefined ||
      absences.of(monthPeriod(monthOf(day))) !== undefined;
    if (isBehindHeld && !isKnown) days.push({ from: day, to: day + 1 });
  }
  return days;
}

/** Merges ranges into ascending, disjoint ones. */
function joined(ranges: readonly DayRange[]): DayRange[] {
  const all: { from: number | undefined; to: number }[] = [];
  for (const range of [...ranges].sort((a, b) => startOf(a) - startOf(b))) {
    const last = all.at(-1);
    if (last !== undefined && startOf(range) <= last.to) last.to = Math.max(last.to, range.to);
    else if (startOf(range) < range.to) all.push({ ...range });
  }
  return all;
}

function startOf({ from }: DayRange): number {
  return from ?? Number.NEGATIVE_INFINITY;
}
