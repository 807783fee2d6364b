/** Chooses the periods of a series that are requested from REST: all of them, or those that the archive lacks. */
import { dayPeriod, eachDay, dayText, monthOf, monthPeriod, monthStart } from '../model/calendar.js';
import type { Absences } from '../lake/absences.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { revisionOf, isFromRest, type ObjectLine } from '../model/manifest-line.js';
import { MAX_GAPS } from '../model/outcome.js';
import { REASON_FACTS, type AbsenceReason } from '../model/absence-reasons.js';
import type { SourceObject, PartitionPlan, Period, RestPeriod, Series, Task } from '../model/task.js';
import type { RestOffer } from './rest-evidence.js';
import { restKey } from '../exchange/keys.js';
import { byMonth, type Choice } from './choose-objects.js';
import { rangesOf, spansOf, type DayRange } from '../lake/catalogue/spans.js';

export interface RestPlanContext {
  readonly series: Series;
  readonly offer: RestOffer;
  readonly held: HeldObjects;
  readonly absences: Absences;
  /** Whether the period was absent at a recent request, so that it is not requested again yet. */
  readonly isRecentlyAbsent: (period: Period) => boolean;
}

/** The chosen periods, in ascending order. A range without start begins with the first day of REST. */
export function chooseFromRest(context: RestPlanContext, ranges: readonly DayRange[]): Choice[] {
  const { offer } = context;
  const bounded = ranges.map(({ from, to }) => ({
    from: from === -Infinity ? offer.from : from,
    to: Math.min(to, offer.to),
  }));
  const firstHeld = context.held.first() ?? Number.POSITIVE_INFINITY;
  return [...byMonth(bounded)].flatMap(([month, days]) => {
    const first = monthStart(month);
    const end = monthStart(month + 1);
    const isWhole = days.length === end - first && end <= offer.today;
    // After the first held period, a period without rows is a hole. Before it, the series may not have been listed yet: rows that follow tell.
    return periodsOf(context, month, isWhole ? undefined : days).map((period) =>
      choiceOf(context, period, firstHeld < period.from ? 'hole' : 'unknown'),
    );
  });
}

/** The choices, with periods of REST for those that the archive lacks. */
export const fillFromRest = (context: RestPlanContext, choices: readonly Choice[]): Choice[] =>
  choices.flatMap((choice) => fill(context, choice));

function fill(context: RestPlanContext, choice: Choice): Choice[] {
  const { offer } = context;
  const { period, listed, held, absent } = choice;
  const standIn = standInOf(context, choice);
  const more = standIn === undefined ? choice : { ...choice, standIn };
  if (listed !== undefined) {
    const substitute = substituteOf(context, choice);
    return [substitute === undefined ? more : { ...more, substitute }];
  }
  if (standIn !== undefined) return [more];
  if ((held !== undefined && !isFromRest(held)) || !REASON_FACTS[absent].mayCome) return [choice];
  if (period.cadence === 'daily') {
    const isOffered = period.from >= offer.from && period.to <= offer.to;
    return isOffered ? [choiceOf(context, period, absent)] : [choice];
  }
  if (!offer.hasMonths) return [choice];
  const isWhole = period.to <= offer.today;
  const days = eachDay({ from: period.from, to: Math.min(period.to, offer.to) });
  return periodsOf(context, monthOf(period.from), isWhole ? undefined : days).map((part) =>
    choiceOf(context, part, absent),
  );
}

/**
 * The period of REST that substitutes an object while the archive does not answer; `held` if the lake has its rows from REST already.
 * Undefined if rows of the archive are held, if REST lacks the period, or if the period has too many rows.
 */
function substituteOf(
  { series, offer, held: all }: RestPlanContext,
  { period, held, listed }: Choice,
): Choice['substitute'] {
  const { from, to } = period;
  if (offer.substitutes?.(period) !== true || listed?.rest !== undefined) return undefined;
  if (held !== undefined && !isFromRest(held)) return undefined;
  const lines = held === undefined ? eachDay(period).map((day) => all.ofDay(day)) : [held];
  if (lines.every((line) => line !== undefined && isFromRest(line) && line.open !== true)) return 'held';
  if (from < offer.from || to > offer.to) return undefined;
  const open = to > offer.settledTo ? ({ open: true } as const) : {};
  const rest: RestPeriod = { from, to, reasonIfEmpty: 'hole', fills: true, ...open };
  return { key: restKey(series, period), period, rest };
}

/**
 * The period of REST that completes a held object. Undefined if its missing rows are not known, or if REST lacks the period, lacked it at a
 * recent request, or has too many rows of it. What came from REST is requested again by each run, because REST may have lagged behind.
 */
function standInOf(
  { series, offer, isRecentlyAbsent, held: all }: RestPlanContext,
  { period, held }: Choice,
): SourceObject | undefined {
  const { from, to } = period;
  if (held?.rows === undefined || held.open === true) return undefined;
  const { rows, gaps = offer.hasMonths ? gapAtEnd(all, period, held) : undefined } = held;
  // At the maximum number, further gaps may be unknown, and the rows of REST cannot be compared with them.
  if (gaps === undefined || gaps.length >= MAX_GAPS) return undefined;
  if (from < offer.from || to > offer.today) return undefined;
  if (!isFromRest(held) && offer.standsIn?.(period) !== true) return undefined;
  if (isRecentlyAbsent(period)) return undefined;
  const keepsHeld = { ...revisionOf(held), rows, gaps };
  const insteadOf = isFromRest(held) ? held.insteadOf : keepsHeld;
  const filled = { from, to, reasonIfEmpty: 'hole', fills: true, keepsHeld } as const;
  const rest: RestPeriod = insteadOf === undefined ? filled : { ...filled, insteadOf };
  return { key: restKey(series, period), period, rest };
}

/** The time of scheduled rows that a held object lacks at its end, if the next one proves it. */
function gapAtEnd(held: HeldObjects, { to }: Period, { ids }: Pick<ObjectLine, 'ids'>): ObjectLine['gaps'] {
  const next = (held.ofMonth(monthOf(to)) ?? held.ofDay(to))?.ids;
  if (ids === undefined || next === undefined || next.first <= ids.last + 1) return undefined;
  return [[new Date((ids.last + 1) * 60_000).toISOString(), `${dayText(to)}T00:00:00Z`]];
}

/**
 * With `hasMonths`, a complete month is one period, unless the lake holds single days of it or REST has only its last days. A held
 * month stays one period. `days` undefined: the whole month is selected.
 */
function periodsOf(
  { held, offer }: RestPlanContext,
  month: number,
  days: readonly number[] | undefined,
): Period[] {
  const all = eachDay(monthPeriod(month));
  if (held.ofMonth(month) !== undefined) return [monthPeriod(month)];
  const isCut = offer.from > monthStart(month) && offer.from < monthStart(month + 1);
  const holdsDays = all.some((day) => held.hasDay(day));
  if (days === undefined && offer.hasMonths && !isCut && !holdsDays) return [monthPeriod(month)];
  return (days ?? all).map((day) => dayPeriod(day));
}

function choiceOf(context: RestPlanContext, period: Period, otherwise: AbsenceReason): Choice {
  const { series, held, absences, offer, isRecentlyAbsent } = context;
  const line = held.of(period) ?? held.ofMonth(monthOf(period.from));
  const known = line === undefined ? {} : { held: line };
  // A held period of the archive is not requested from REST.
  if (line !== undefined && !isFromRest(line)) return { period, absent: otherwise, held: line };
  const key = restKey(series, period);
  if (period.from < offer.from) return { period, absent: reasonIfGone(absences, period), key, ...known };
  if (line === undefined && isRecentlyAbsent(period)) return { period, absent: otherwise, key };
  const rest: RestPeriod = {
    from: period.from,
    to: period.to,
    reasonIfEmpty: otherwise,
    ...(offer.mode === 'fill' ? { fills: true } : {}),
    ...(period.to > offer.settledTo ? { open: true } : {}),
  };
  const choice = { period, absent: otherwise, listed: { key, period, rest }, ...known };
  const standIn = standInOf(context, choice);
  return standIn === undefined ? choice : { ...choice, standIn };
}

/** The reason of a period that REST keeps no longer: lost if an earlier run asked for it in vain, unless REST answered that it has no rows of it. */
function reasonIfGone(absences: Absences, period: Period): AbsenceReason {
  const { reason = 'delisted', rest } = absences.of(period) ?? {};
  if (rest?.isEmpty === true) return reason;
  const wasAsked = absences.failureOf(period) !== undefined || REASON_FACTS[reason].mayCome;
  return wasAsked ? 'hole' : 'before-history';
}

/** The plan with the substitutes of its failed tasks, because the archive did not answer. */
export function substitutedPlan(plan: PartitionPlan): PartitionPlan {
  const tasks = plan.tasks.map((task): Task => {
    const { substitute, failure, object } = task;
    if (substitute === undefined || failure === undefined) return task;
    const archiveFailed = failure.code;
    if (substitute === 'held') return { ...task, action: { kind: 'skip', archiveFailed } };
    const { rest } = substitute;
    const marked = { ...substitute, ...(rest === undefined ? {} : { rest: { ...rest, archiveFailed } }) };
    return { series: task.series, object: marked, action: { kind: 'fetch' }, failure, standsFor: object };
  });
  return joinPeriods([{ ...plan, tasks }])[0] ?? plan;
}

/** Joins consecutive periods to spans that share pages of REST, also across files. */
export function joinPeriods(plans: readonly PartitionPlan[]): PartitionPlan[] {
  const asked = plans
    .flatMap(({ tasks }) => tasks)
    .filter(({ action }) => action.kind === 'fetch')
    .flatMap(({ object }) => (object.rest === undefined ? [] : [object.period]));
  const spans = rangesOf(spansOf(asked));
  const spanOf = ({ from }: Period): DayRange | undefined =>
    spans.find((span) => from >= span.from && from < span.to);
  return plans.map((plan) => ({
    ...plan,
    tasks: plan.tasks.map((task) => {
      const { rest, period } = task.object;
      if (rest === undefined) return task;
      return { ...task, object: { ...task.object, rest: { ...rest, ...spanOf(period) } } };
    }),
  }));
}
