/** Why days of a series are not held, as far as anybody knows. */
import { dayPeriod, monthOf, monthPeriod, monthStart } from '../model/calendar.js';
import type { ErrorCode } from '../model/errors.js';
import type { Absences } from '../lake/absences.js';
import type { AbsenceReason } from '../model/task.js';
import { at, subtract } from './spans.js';
import type { Spans } from './spans.js';

/**
 * `unexplained`: nothing is known of it, though there is data before and behind it. `not-fetched`: nothing is known, and it
 * lies before or behind all that is held. `failed:`: it could not be had the last time, with the code of the error. `cut`: a held
 * day of ticks ends or begins hours from midnight, and its neighbours do not.
 */
export type GapReason = AbsenceReason | `failed:${ErrorCode}` | 'unexplained' | 'not-fetched' | 'cut';

/** What cannot be there is not missing. */
const CANNOT_BE: ReadonlySet<GapReason> = new Set([
  'halt',
  'before-history',
  'not-listed-yet',
  'not-published-yet',
  'delisted',
  'dataset-ended',
]);

export function isMissing(reason: GapReason): boolean {
  return !CANNOT_BE.has(reason);
}

/** What is known of a series besides what it holds. */
export interface Known {
  readonly absences: Absences;
  /** First day of the dataset, and the day after its last. */
  readonly first?: number;
  readonly end?: number;
  /** It is published by month: from this day on no month is over. */
  readonly runningMonth?: number;
  /** What was late when it was asked for is not late for ever. */
  readonly today?: number;
}

export interface AbsentDays {
  readonly from: number;
  readonly to: number;
  readonly reason: GapReason;
}

/** Days of `[from, to)` that are not held, in as few pieces as there are reasons. */
export function absentDays(held: Spans, from: number, to: number, known: Known): AbsentDays[] {
  const reasonOf = reasons(held, known);
  const found: AbsentDays[] = [];
  const missing = subtract([from, to], held);
  for (let i = 0; i < missing.length; i += 2) {
    let start = at(missing, i);
    let reason = reasonOf(start);
    for (let day = start + 1; day <= at(missing, i + 1); day += 1) {
      const next = day < at(missing, i + 1) ? reasonOf(day) : undefined;
      if (next === reason) continue;
      found.push({ from: start, to: day, reason });
      if (next === undefined) break;
      start = day;
      reason = next;
    }
  }
  return found;
}

/** Why a day that is not held is not. */
export function reasons(held: Spans, known: Known): (day: number) => GapReason {
  const { absences, first = -Infinity, end = Infinity, runningMonth = Infinity, today = -Infinity } = known;
  const firstHeld = held.length === 0 ? Infinity : at(held, 0);
  const lastHeld = held.length === 0 ? -Infinity : at(held, held.length - 1);
  const outer = outerReasons(absences, firstHeld, lastHeld);
  return (day) => {
    const failed = absences.failureOf(dayPeriod(day)) ?? absences.failureOf(monthPeriod(monthOf(day)));
    if (failed !== undefined) return `failed:${failed}`;
    const ofDay = absences.days().get(day);
    const remembered = ofDay ?? absences.months().get(monthOf(day));
    const lateTo = ofDay === undefined ? monthStart(monthOf(day) + 1) + LATE_MONTH_DAYS : day + LATE_DAYS;
    const isBehind = outer.behind !== undefined && day >= outer.behind.from;
    // Of a delisted series nothing is late.
    const isLate = day >= lastHeld && lateTo >= today && !isBehind;
    if (
      remembered !== undefined &&
      isStillSo(remembered.reason, { isEarly: day < firstHeld, isOver: day >= lastHeld, isLate })
    )
      return remembered.reason;
    if (outer.before !== undefined && day < outer.before.to) return outer.before.reason;
    if (outer.behind !== undefined && day >= outer.behind.from) return outer.behind.reason;
    if (day < first) return 'before-history';
    if (day >= end) return 'dataset-ended';
    if (day >= runningMonth) return 'not-published-yet';
    return day < firstHeld || day >= lastHeld ? 'not-fetched' : 'unexplained';
  };
}

/** How long the archive has been late (facts, section 1.8): a day, a month after its end. */
const LATE_DAYS = 14;
const LATE_MONTH_DAYS = 45;

/** What was said of a day may be refuted by what is held since: it came, or others behind it did. */
function isStillSo(
  reason: AbsenceReason,
  day: { readonly isEarly: boolean; readonly isOver: boolean; readonly isLate: boolean },
): boolean {
  switch (reason) {
    case 'not-published-yet':
      return day.isLate;
    case 'not-listed-yet':
    case 'before-history':
      return day.isEarly;
    case 'delisted':
    case 'dataset-ended':
      return day.isOver;
    case 'hole':
    case 'halt':
      return true;
  }
}

/** A series that was not listed on a day was not on those before; what was delisted does not come back by itself. */
function outerReasons(
  absences: Absences,
  firstHeld: number,
  lastHeld: number,
): { readonly before: AbsentDays | undefined; readonly behind: AbsentDays | undefined } {
  let before: AbsentDays | undefined;
  let behind: AbsentDays | undefined;
  const look = (from: number, to: number, reason: AbsenceReason): void => {
    const isEarly = reason === 'not-listed-yet' || reason === 'before-history';
    const isOver = reason === 'delisted' || reason === 'dataset-ended';
    if (isEarly && to <= firstHeld && to > (before?.to ?? -Infinity)) before = { from, to, reason };
    if (isOver && from >= lastHeld && from < (behind?.from ?? Infinity)) behind = { from, to, reason };
  };
  for (const [day, { reason }] of absences.days()) look(day, day + 1, reason);
  for (const [month, { reason }] of absences.months()) look(monthStart(month), monthStart(month + 1), reason);
  return { before, behind };
}
