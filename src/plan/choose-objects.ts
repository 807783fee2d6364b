/** Chooses the objects of a series for the selected days, by the rules of `--cadence`. */
import { isEnd } from '../lake/absences.js';
import { isDue, waitOfAge } from '../lake/absence-waits.js';
import type { Absence, Absences } from '../lake/absences.js';
import { isFromRest } from '../model/manifest-line.js';
import type { ObjectLine } from '../model/manifest-line.js';
import type { HeldObjects } from '../lake/held-objects.js';
import { grouped } from '../model/by-name.js';
import {
  dayPeriod,
  eachDay,
  dayText,
  monthOf,
  monthPeriod,
  monthStart,
  monthText,
} from '../model/calendar.js';
import { REASON_FACTS } from '../model/absence-reasons.js';
import type { AbsenceReason } from '../model/absence-reasons.js';
import type { ArchiveObject, Cadence, PartitionPeriod, Period, Task } from '../model/task.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import { rangesOf, spansOf } from '../lake/catalogue/spans.js';
import type { DayRange } from '../lake/catalogue/spans.js';
import type { PlanContext } from './series-request.js';
import { absenceReason, PAGE_DAYS } from './series-listing.js';
import type { SeriesListing } from './series-listing.js';

/** One selected period: the listed object, the held object, or the reason of its absence. */
export interface Choice {
  readonly period: Period;
  readonly listed?: ArchiveObject;
  readonly held?: ObjectLine;
  /** The period of REST that may have the rows that the held object lacks. */
  readonly standIn?: ArchiveObject;
  /** The period of REST that is used while the archive does not answer; `held`: the lake has its rows already. */
  readonly substitute?: Task['substitute'];
  readonly absent: AbsenceReason;
  /** The day after the last listed period, if the absent period is `delisted` or `not-published-yet`. */
  readonly since?: number;
  /** REST has no rows of the absent period either. */
  readonly isRestEmpty?: true;
  /** The listing has the neighbours of the period, but no longer the period itself. */
  readonly isWithdrawn?: true;
  /** The name of an absent period that has no key in the archive. */
  readonly key?: string;
  /** The monthly object is chosen for a part of its month, or for day files, because the archive lacks days of the month. */
  readonly isWider?: true;
}

export interface ChooseContext extends Pick<PlanContext, 'today' | 'recheckDays'> {
  readonly cadences: readonly Cadence[];
  readonly partition: PartitionPeriod;
  /** Held objects that decide between daily and monthly objects; empty when the series is rewritten. */
  readonly held: HeldObjects;
  /** All held objects, for periods that the listing does not have. */
  readonly known: HeldObjects;
  /** Held months stay monthly, even if `cadences` has only days: a rewrite of the series did not end. */
  readonly keepsMonths?: boolean;
  /** The listing of one cadence, which is requested at most once. */
  readonly list: (cadence: Cadence) => Promise<SeriesListing>;
  /** First and last known periods of the dataset, over all series. */
  readonly spans: DatasetSpec['spans'];
  /** Whether trading was halted for a part of a day. The monthly object is not asked for the rows that such a day lacks. */
  readonly isHalted: (day: number) => boolean;
  /** Whether this monthly object may replace held days if a day of the month is a hole or lacks rows; undefined: never. */
  readonly mayReplaceDays?: (monthly: ArchiveObject) => boolean;
}

export function labelOf(partition: PartitionPeriod, { cadence, from }: Period): string {
  return partition === 'day' && cadence === 'daily' ? dayText(from) : monthText(monthOf(from));
}

/** The chosen periods, in ascending order. */
export async function chooseObjects(context: ChooseContext, ranges: readonly DayRange[]): Promise<Choice[]> {
  const bounded = await Promise.all(ranges.map((range) => bound(context, range)));
  const choices: Choice[] = [];
  for (const [month, days] of byMonth(bounded)) {
    if (await takesMonth(context, month, days)) {
      const isPart = days.length < lengthOf(month) || context.partition === 'day';
      const isHeld = context.held.ofMonth(month) !== undefined || holdsDay(context, month);
      const isWider = context.cadences.includes('daily') && isPart && !isHeld;
      const choice = choose(context, await context.list('monthly'), monthPeriod(month));
      choices.push(isWider ? { ...choice, isWider } : choice);
      continue;
    }
    const listing = await context.list('daily');
    for (const day of days) choices.push(choose(context, listing, dayPeriod(day)));
  }
  return choices;
}

/**
 * Of bars that are longer than a day, most days have no object, so days between the first and the last object are not missing. A whole month of
 * which nothing is listed, held or proven is absent as a month. Of a series without any object, all days stay, with their reason.
 */
export async function withoutUnlisted(
  context: ChooseContext,
  choices: readonly Choice[],
): Promise<readonly Choice[]> {
  if (context.known.size === 0 && choices.every(({ listed }) => listed === undefined)) return choices;
  const isKept = ({ period, listed, held, absent }: Choice): boolean =>
    period.cadence === 'monthly' || (listed ?? held) !== undefined || REASON_FACTS[absent].isProven;
  const kept: Choice[] = [];
  for (const [month, own] of grouped(choices, ({ period }) => monthOf(period.from))) {
    const some = own.filter(isKept);
    const isMonth =
      some.length === 0 && own.length === lengthOf(month) && context.cadences.includes('monthly');
    kept.push(...(isMonth ? [choose(context, await context.list('monthly'), monthPeriod(month))] : some));
  }
  return kept;
}

function lengthOf(month: number): number {
  return monthStart(month + 1) - monthStart(month);
}

async function bound(context: ChooseContext, range: DayRange): Promise<DayRange> {
  if (range.from > -Infinity) return range;
  const listings = await Promise.all(context.cadences.map((cadence) => context.list(cadence)));
  const starts = listings.flatMap((listing) => listing.first?.from ?? []);
  return { from: Math.min(range.to, ...starts), to: range.to };
}

/** The days of each month, ascending and without duplicates. */
export function byMonth(ranges: readonly DayRange[]): Map<number, number[]> {
  const months = new Map<number, number[]>();
  for (const { from, to } of rangesOf(spansOf(ranges)))
    for (let month = monthOf(from); monthStart(month) < to; month += 1) {
      const part = { from: Math.max(from, monthStart(month)), to: Math.min(to, monthStart(month + 1)) };
      const days = months.get(month);
      months.set(month, days === undefined ? eachDay(part) : [...days, ...eachDay(part)]);
    }
  return months;
}

/** Whether the monthly object is chosen for these days of the month. A day never has two objects. */
async function takesMonth(context: ChooseContext, month: number, days: readonly number[]): Promise<boolean> {
  const isHeld = context.held.ofMonth(month) !== undefined;
  if (isHeld && context.keepsMonths === true) return true;
  if (!context.cadences.includes('monthly')) return false;
  if (isHeld || !context.cadences.includes('daily')) return true;
  if (holdsDay(context, month)) return mayHaveMore(context, month, days);
  const isOver = monthStart(month + 1) <= context.today;
  if (!isOver || (await prefersDays(context, month, days))) return false;
  return (await context.list('monthly')).objects.has(monthStart(month));
}

function holdsDay({ held }: ChooseContext, month: number): boolean {
  return eachDay(monthPeriod(month)).some((day) => held.hasDay(day));
}

/** Whether the monthly object may have more rows of one of the days: a hole of the daily listing, or a held day that lacks rows. */
async function mayHaveMore(context: ChooseContext, month: number, days: readonly number[]): Promise<boolean> {
  const { mayReplaceDays, held } = context;
  if (mayReplaceDays === undefined) return false;
  const daily = await context.list('daily');
  const isHole = (day: number): boolean =>
    !held.hasDay(day) &&
    !daily.objects.has(day) &&
    absenceReason(daily, dayPeriod(day), context.spans.daily) === 'hole';
  const isShort = (day: number): boolean =>
    (held.ofDay(day)?.gaps?.length ?? 0) > 0 && !context.isHalted(day);
  if (!days.some((day) => isHole(day) || isShort(day))) return false;
  const monthly = await context.list('monthly');
  const listed = monthly.objects.get(monthStart(month));
  return listed !== undefined && mayReplaceDays(withSidecar(context, monthly, listed, undefined));
}

/** Day files come from daily objects if the archive has any of the month. So does a part of a month, if the archive has each of its days. */
async function prefersDays(context: ChooseContext, month: number, days: readonly number[]): Promise<boolean> {
  if (context.partition === 'month' && days.length === lengthOf(month)) return false;
  const { objects } = await context.list('daily');
  if (context.partition === 'month') return days.every((day) => objects.has(day));
  return eachDay(monthPeriod(month)).some((day) => objects.has(day));
}

function choose(context: ChooseContext, listing: SeriesListing, period: Period): Choice {
  const listed = listing.objects.get(period.from);
  const held = (listed === undefined ? context.known : context.held).of(period);
  const absent = absenceReason(listing, period, context.spans[period.cadence]);
  if (listed === undefined) {
    const isAfterLast = absent === 'not-published-yet' && listing.last !== undefined;
    const since = isAfterLast ? { since: listing.last.to } : {};
    if (held === undefined) return { period, absent, ...since };
    const isWithdrawn = absent === 'hole' && listing.copiedAt === undefined && listing.isProbed !== true;
    const withdrawn = isWithdrawn ? ({ isWithdrawn } as const) : {};
    return { period, absent, ...since, held, ...withdrawn };
  }
  const object = withSidecar(context, listing, listed, held);
  return held === undefined ? { period, absent, listed: object } : { period, absent, listed: object, held };
}

/** Adds the ETag of the sidecar, if a later run may meet the same revision again. Other objects do not need it. */
function withSidecar(
  { today, recheckDays, mayReplaceDays }: ChooseContext,
  { sidecars }: SeriesListing,
  listed: ArchiveObject,
  held: ObjectLine | undefined,
): ArchiveObject {
  const { from, to } = listed.period;
  const isMet =
    held === undefined ? to > today - recheckDays || mayReplaceDays !== undefined : held.etag !== listed.etag;
  return sidecars !== undefined && isMet ? { ...listed, sidecarEtag: sidecars.get(from) ?? '' } : listed;
}

// Days that are checked again, because their objects may have changed or been published late.

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
  const days = [...absences.days()].flatMap(([day, absence]) =>
    day < end && isLate(absence) && !held.hasDay(day) ? [{ from: day, to: day + 1 }] : [],
  );
  const months = [...absences.months()].flatMap(([month, absence]) =>
    isLate(absence) && held.ofMonth(month) === undefined
      ? [{ from: monthStart(month), to: monthStart(month + 1) }]
      : [],
  );
  const unknown = unknownDays(held, absences, since, end);
  const added = [...again, ...unknown, ...days, ...months].map(({ from, to }) => ({
    from,
    to: Math.min(to, today),
  }));
  return added.length === 0 ? asked : rangesOf(spansOf([...asked, ...added]));
}

/**
 * The choices of `ranges`, and of each held period of which a listing that was read for them has another revision: an object that was
 * published late may be corrected long after its day. A revision that was refused is left to runs of its range.
 */
export async function chooseWithRevised(
  context: ChooseContext & { readonly isRefused: (listed: ArchiveObject) => boolean },
  ranges: readonly DayRange[],
): Promise<Choice[]> {
  const read = new Set<SeriesListing>();
  const list = async (cadence: Cadence): Promise<SeriesListing> => {
    const listing = await context.list(cadence);
    read.add(listing);
    return listing;
  };
  const choices = await chooseObjects({ ...context, list }, ranges);
  const { held, isRefused } = context;
  const revised: Period[] = [];
  for (const listing of read)
    for (const listed of listing.copiedAt === undefined ? listing.objects.values() : []) {
      const line = held.of(listed.period);
      if (line?.key !== listed.key || line.etag === undefined || (listed.etag ?? '') === '') continue;
      if (line.etag !== listed.etag && !isRefused(withSidecar(context, listing, listed, line)))
        revised.push(listed.period);
    }
  return revised.length === 0 ? choices : chooseObjects(context, rangesOf(spansOf([...ranges, ...revised])));
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

/**
 * The ranges, together with the days since the first day of the order that the lake lacks and that are due: at once if no run has asked for them, then
 * less and less often, without end. Days that are held without some of their rows, or from REST in place of the archive, are compared by each run while
 * they are young enough for the page of the listing that it reads anyway, then less and less often too.
 * `since`: the first day of the order; -Infinity: that of the series. `cuts`: held days that are cut, compared with the days around them.
 * `isArchived`: the run reads the listing of the archive.
 */
export function withLackingDays(
  { today, nowMs, revisions }: Pick<PlanContext, 'today' | 'nowMs' | 'revisions'>,
  asked: readonly DayRange[],
  since: number | undefined,
  {
    held,
    absences,
    cuts,
    isArchived,
  }: {
    readonly held: HeldObjects;
    readonly absences: Absences;
    readonly cuts: ReadonlySet<number>;
    readonly isArchived: boolean;
  },
): readonly DayRange[] {
  const last = asked.at(-1);
  if (since === undefined || last === undefined) return asked;
  const start = since === -Infinity ? (held.first() ?? since) : since;
  if (start === -Infinity) return [{ from: start, to: last.to }];
  const spans = held.spans();
  const lacking: DayRange[] = [];
  const known = knownAbsence(held, absences);
  const add = (from: number, to: number): void => {
    for (let day = from; day < to; day += 1) {
      const absence = known(day);
      if (absence === undefined || isDue(absence, nowMs)) lacking.push({ from: day, to: day + 1 });
    }
  };
  let next = start;
  for (const { from, to, facts } of spans) {
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
  const ended = [...absences.days()]
    .filter(([day, { reason }]) => day >= end && isEnd(reason))
    .reduce<readonly [number, Absence] | undefined>(
      (one, other) => (one === undefined || other[0] < one[0] ? other : one),
      undefined,
    );
  return (day) => {
    if (absences.failureOf(dayPeriod(day)) !== undefined) return undefined;
    const absence = absences.ofDay(day);
    if (absence === undefined) return ended !== undefined && day >= ended[0] ? ended[1] : undefined;
    const { at } = REASON_FACTS[absence.reason];
    const isRefuted = (at === 'end' && day < end) || (at === 'start' && day > first);
    return isRefuted ? undefined : absence;
  };
}
