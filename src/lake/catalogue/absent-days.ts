/** Gives the reason for each day that a series does not hold. */
import { ABSENCE_REASONS, LATE_MS, REASON_FACTS, type AbsenceReason } from '../../model/absence-reasons.js';
import { dayPeriod, monthOf, monthPeriod } from '../../model/calendar.js';
import { DAY_MS } from '../../model/units.js';
import type { ErrorCode } from '../../model/errors.js';
import type { Absence, Absences } from '../absences.js';
import type { Period } from '../../model/task.js';
import { at, intersect, subtract, type DayRange, type Spans } from './spans.js';

/**
 * `stalled`: after the last published period, and its publication is late. `unexplained`: no recorded reason applies, and days before and
 * after are held. `not-fetched`: no recorded reason applies, and the day is before the first or after the last held day. `failed:`: the last
 * fetch failed, with the code of its error. `missing`: the manifest lists an object of the day, but its file does not exist. `cut`: ids of
 * trades are missing, or the rows of a held day of tick data begin or end hours from midnight, but those of the neighbouring days do not.
 */
export type GapReason =
  | AbsenceReason
  | `failed:${ErrorCode}`
  | 'unexplained'
  | 'not-fetched'
  | 'missing'
  | 'cut'
  | 'halt'
  | 'stalled';

/** Reasons with which no data is expected. Such days do not count as missing. */
const NOT_EXPECTED: ReadonlySet<GapReason> = new Set([
  'halt',
  'not-published-yet',
  ...ABSENCE_REASONS.filter((reason) => REASON_FACTS[reason].isProven),
]);

export const isMissing = (reason: GapReason): boolean => !NOT_EXPECTED.has(reason);

/** Facts about a series and its dataset that explain absent days. Days are day numbers. */
export interface SeriesFacts {
  readonly absences: Absences;
  /** First day of the dataset, and the day after its last. */
  readonly firstDay?: number;
  readonly endDay?: number | undefined;
  /** The days of the first row, and after the last row, of the held objects. */
  readonly rows?: { readonly firstDay: number; readonly endDay: number };
  /** The time of the first held row of the series, in seconds; NaN without one. */
  readonly firstRowSeconds?: number;
  /** First day of the current month, for datasets that are published by month. */
  readonly currentMonth?: number | undefined;
  /** The error codes of days that the last failure report names. */
  readonly reported?: ReadonlyMap<number, ErrorCode>;
  /** REST has the rows of all times, so its empty answers are evidence. */
  readonly isWholeInRest?: boolean;
  /** An order asks REST. What REST no longer keeps was there when it was ordered. */
  readonly asksRest?: boolean;
  /** An order asks REST, or some held rows are from it: a late month of the archive says nothing about its days. */
  readonly hasRest?: boolean;
  /** The first held rows are from REST. */
  readonly isOfRest?: boolean;
  /** Today as a day number. `not-published-yet` applies to a day only for a limited time. */
  readonly today?: number;
}

/** The source that proves a reason: config/halts.json, the listing of the archive, an answer of REST, or ids that go on. */
export type Evidence = 'list' | 'archive' | 'rest' | 'ids';

interface DayReason {
  readonly reason: GapReason;
  readonly evidence?: Evidence;
  /** REST was asked for the day too, in vain. */
  readonly isRestAsked?: true;
}

interface AbsentDays extends DayReason, DayRange {}

/** Days of `[from, to)` that are not held. Neighbouring days with the same reason form one item. */
export function absentDays(held: Spans, from: number, to: number, facts: SeriesFacts): AbsentDays[] {
  const reasonOf = reasons(held, facts);
  const found: AbsentDays[] = [];
  const missing = subtract([from, to], held);
  for (let i = 0; i < missing.length; i += 2) {
    let start = at(missing, i);
    let known = reasonOf(start);
    for (let day = start + 1; day <= at(missing, i + 1); day += 1) {
      const next = day < at(missing, i + 1) ? reasonOf(day) : undefined;
      const isSame = next?.reason === known.reason && next.evidence === known.evidence;
      if (isSame && next.isRestAsked === known.isRestAsked) continue;
      found.push({ from: start, to: day, ...known });
      if (next === undefined) break;
      start = day;
      known = next;
    }
  }
  return found;
}

/** Returns a function that gives the reason for a day that is not held, or on which the first or last object of a series lacks rows. */
export function reasons(held: Spans, known: SeriesFacts): (day: number) => DayReason {
  const { absences, reported, firstDay = -Infinity, endDay = Infinity } = known;
  const { currentMonth = Infinity, today = -Infinity } = known;
  const rows = known.rows ?? { firstDay: -Infinity, endDay: Infinity };
  const firstHeld = held.length === 0 ? Infinity : Math.max(at(held, 0), rows.firstDay);
  const lastHeld = held.length === 0 ? -Infinity : Math.min(at(held, held.length - 1), rows.endDay);
  const isLost = ({ reason, rest }: Absence): boolean =>
    known.asksRest === true && reason === 'before-history' && rest === undefined;
  const { before, after } = outerReasons(absences, firstHeld, lastHeld, isLost);
  const emptyFrom = known.isOfRest === true ? emptyBefore(firstHeld, absences) : Infinity;
  const isHeld = (day: number): boolean => intersect([day, day + 1], held).length > 0;
  return (day) => {
    const failed = absences.failureOf(dayPeriod(day));
    if (failed !== undefined) return { reason: `failed:${failed}` };
    const period = absences.days().has(day) ? dayPeriod(day) : monthPeriod(monthOf(day));
    const found = absences.of(period);
    // Without evidence, a record of a day that an object has is about the rows of the object, or older than it.
    const isOfObject = found !== undefined && !REASON_FACTS[found.reason].isProven && isHeld(day);
    const recorded = isOfObject || (found !== undefined && isLost(found)) ? undefined : found;
    if (day < firstHeld && day >= emptyFrom) return { reason: 'not-listed-yet', evidence: 'rest' };
    if (
      recorded !== undefined &&
      held.length > 0 &&
      known.isWholeInRest === true &&
      isEmptyInRest(recorded, period)
    )
      return { reason: 'not-traded', evidence: 'rest' };
    const isAfterEnd = after !== undefined && day >= after.from;
    const isRefuted = { start: day >= firstHeld, end: day < lastHeld, any: false };
    if (recorded !== undefined && !isRefuted[REASON_FACTS[recorded.reason].at]) {
      // A delisted series has no late days.
      if (recorded.reason !== 'not-published-yet') return withEvidence(recorded);
      const isOfArchive = known.hasRest === true && period.cadence === 'monthly';
      if (!isAfterEnd && !isOfArchive) return { reason: lateReason(period, recorded, today) };
    }
    if (before !== undefined && day < before.to) return before.known;
    if (isAfterEnd) return after.known;
    if (day < firstDay) return { reason: 'before-history' };
    if (day >= endDay) return { reason: 'dataset-ended' };
    if (day >= currentMonth) return { reason: 'not-published-yet' };
    const ofReport = reported?.get(day);
    if (ofReport !== undefined) return { reason: `failed:${ofReport}` };
    return { reason: day < firstHeld || day >= lastHeld ? 'not-fetched' : 'unexplained' };
  };
}

/**
 * The first of the days right before the first held one of which REST answered that it has no rows: the symbol was not listed. An empty answer is
 * evidence only beside rows of the series.
 */
function emptyBefore(firstHeld: number, absences: Absences): number {
  for (let first = firstHeld; ; first -= 1) {
    const { reason, rest } = absences.ofDay(first - 1) ?? {};
    if (reason !== 'unknown' || rest?.isEmpty !== true) return first;
  }
}

/** `not-fetched`: the last request was before the archive should have published the period. */
function lateReason({ cadence, to }: Period, { atMs }: Absence, today: number): GapReason {
  const dueMs = to * DAY_MS + LATE_MS[cadence];
  if (dueMs > today * DAY_MS) return 'not-published-yet';
  return atMs < dueMs ? 'not-fetched' : 'stalled';
}

/** Whether REST answered that it has no rows of the period, a day or more after its end. */
const isEmptyInRest = ({ reason, rest }: Absence, { to }: Period): boolean =>
  REASON_FACTS[reason].mayCome && rest?.isEmpty === true && rest.atMs >= (to + 1) * DAY_MS;

function withEvidence({ reason, rest }: Absence): DayReason {
  if (!REASON_FACTS[reason].isOfSymbol)
    return rest === undefined ? { reason } : { reason, isRestAsked: true };
  return { reason, evidence: rest === undefined ? 'archive' : 'rest' };
}

interface OuterDays {
  readonly from: number;
  readonly to: number;
  readonly known: DayReason;
}

/** Proven reasons that also apply to other days: those of the start for all days before, those of the end for all days after. */
function outerReasons(
  absences: Absences,
  firstHeld: number,
  lastHeld: number,
  isLost: (absence: Absence) => boolean,
): { readonly before: OuterDays | undefined; readonly after: OuterDays | undefined } {
  let before: OuterDays | undefined;
  let after: OuterDays | undefined;
  const look = ({ from, to }: Period, absence: Absence): void => {
    const { at: part, isProven } = REASON_FACTS[absence.reason];
    if (!isProven || isLost(absence)) return;
    const known = withEvidence(absence);
    if (part === 'start' && to <= firstHeld && to > (before?.to ?? -Infinity)) before = { from, to, known };
    if (part === 'end' && from >= lastHeld && from < (after?.from ?? Infinity)) after = { from, to, known };
  };
  for (const [day, absence] of absences.days()) look(dayPeriod(day), absence);
  for (const [month, absence] of absences.months()) look(monthPeriod(month), absence);
  return { before, after };
}
