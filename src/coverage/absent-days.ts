/** Gives the reason for each day that a series does not hold. */
import { dayPeriod, monthOf, monthPeriod, monthStart } from '../model/calendar.js';
import type { ErrorCode } from '../model/errors.js';
import type { Absences } from '../lake/absences.js';
import type { AbsenceReason } from '../model/task.js';
import { at, subtract } from './spans.js';
import type { Spans } from './spans.js';

/**
 * `unexplained`: no recorded reason applies, and days before and after are held. `not-fetched`: no recorded reason applies, and
 * the day is before the first or after the last held day. `failed:`: the last fetch failed, with the code of its error.
 * `not-traded`: a hole of the archive for which REST answered that it has no rows either. `missing`: the manifest lists an object of the day, but its file does not exist. `cut`: the rows of a held day of tick data begin or end hours from midnight, but those of the neighbouring days do not.
 */
export type GapReason =
  | AbsenceReason
  | `failed:${ErrorCode}`
  | 'unexplained'
  | 'not-fetched'
  | 'missing'
  | 'cut'
  | 'halt'
  | 'not-traded';

/** Reasons with which no data is expected. Such days do not count as missing. */
const NOT_EXPECTED: ReadonlySet<GapReason> = new Set([
  'halt',
  'not-traded',
  'before-history',
  'not-listed-yet',
  'not-published-yet',
  'delisted',
  'dataset-ended',
]);

/** Whether data is expected on days with this reason. */
export function isMissing(reason: GapReason): boolean {
  return !NOT_EXPECTED.has(reason);
}

/** Facts about a series and its dataset that explain absent days. Days are day numbers. */
export interface SeriesFacts {
  readonly absences: Absences;
  /** First day of the dataset, and the day after its last. */
  readonly first?: number;
  readonly end?: number;
  /** First day of the current month, for datasets that are published by month. */
  readonly currentMonth?: number;
  /** The error codes of days that the last failure report names. */
  readonly reported?: ReadonlyMap<number, ErrorCode>;
  /** REST has the rows of all times, so its empty answers are evidence. */
  readonly isWholeInRest?: true;
  /** Today as a day number. `not-published-yet` applies to a day only for a limited time. */
  readonly today?: number;
}

export interface AbsentDays {
  readonly from: number;
  readonly to: number;
  readonly reason: GapReason;
}

/** Days of `[from, to)` that are not held. Neighbouring days with the same reason form one item. */
export function absentDays(held: Spans, from: number, to: number, known: SeriesFacts): AbsentDays[] {
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

/** Returns a function that gives the reason for a day that is not held. */
export function reasons(held: Spans, known: SeriesFacts): (day: number) => GapReason {
  const { absences, first = -Infinity, end = Infinity, currentMonth = Infinity, today = -Infinity } = known;
  const { reported } = known;
  const firstHeld = held.length === 0 ? Infinity : at(held, 0);
  const lastHeld = held.length === 0 ? -Infinity : at(held, held.length - 1);
  const outer = outerReasons(absences, firstHeld, lastHeld);
  return (day) => {
    const failed = absences.failureOf(dayPeriod(day)) ?? absences.failureOf(monthPeriod(monthOf(day)));
    if (failed !== undefined) return `failed:${failed}`;
    const ofDay = absences.days().get(day);
    const recorded = ofDay ?? absences.months().get(monthOf(day));
    const lateTo = ofDay === undefined ? monthStart(monthOf(day) + 1) + LATE_MONTH_DAYS : day + LATE_DAYS;
    const isAfterEnd = outer.after !== undefined && day >= outer.after.from;
    // A delisted series has no late days.
    const isLate = day >= lastHeld && lateTo >= today && !isAfterEnd;
    const isInner = day >= firstHeld && day < lastHeld;
    if (
      recorded?.reason === 'hole' &&
      recorded.rest?.isEmpty === true &&
      known.isWholeInRest === true &&
      isInner
    )
      return 'not-traded';
    if (
      recorded !== undefined &&
      stillApplies(recorded.reason, { isEarly: day < firstHeld, isOver: day >= lastHeld, isLate })
    )
      return recorded.reason;
    if (outer.before !== undefined && day < outer.before.to) return outer.before.reason;
    if (outer.after !== undefined && day >= outer.after.from) return outer.after.reason;
    if (day < first) return 'before-history';
    if (day >= end) return 'dataset-ended';
    if (day >= currentMonth) return 'not-published-yet';
    const ofReport = reported?.get(day);
    if (ofReport !== undefined) return `failed:${ofReport}`;
    return day < firstHeld || day >= lastHeld ? 'not-fetched' : 'unexplained';
  };
}

/** The longest known delays of publication in days: of a daily object, and of a monthly object after the end of its month. */
const LATE_DAYS = 14;
const LATE_MONTH_DAYS = 45;

/** Whether a recorded reason still applies. Days that were fetched later may contradict it. */
function stillApplies(
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
      return true;
  }
}

/** Recorded reasons that also apply to other days: `not-listed-yet` for all days before, `delisted` for all days after. */
function outerReasons(
  absences: Absences,
  firstHeld: number,
  lastHeld: number,
): { readonly before: AbsentDays | undefined; readonly after: AbsentDays | undefined } {
  let before: AbsentDays | undefined;
  let after: AbsentDays | undefined;
  const look = (from: number, to: number, reason: AbsenceReason): void => {
    const isEarly = reason === 'not-listed-yet' || reason === 'before-history';
    const isOver = reason === 'delisted' || reason === 'dataset-ended';
    if (isEarly && to <= firstHeld && to > (before?.to ?? -Infinity)) before = { from, to, reason };
    if (isOver && from >= lastHeld && from < (after?.from ?? Infinity)) after = { from, to, reason };
  };
  for (const [day, { reason }] of absences.days()) look(day, day + 1, reason);
  for (const [month, { reason }] of absences.months()) look(monthStart(month), monthStart(month + 1), reason);
  return { before, after };
}
