/** Chooses the objects of a series for the selected days, by the rules of `--cadence`. */
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
import { REASON_FACTS, type AbsenceReason } from '../model/absence-reasons.js';
import type { SourceObject, Cadence, PartitionPeriod, Period, Task } from '../model/task.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import { rangesOf, spansOf, type DayRange } from '../lake/catalogue/spans.js';
import type { PlanContext } from './series-request.js';
import { absenceReason, type SeriesListing } from './series-listing.js';

/** One selected period: the listed object, the held object, or the reason of its absence. */
export interface Choice {
  readonly period: Period;
  readonly listed?: SourceObject | undefined;
  readonly held?: ObjectLine | undefined;
  /** The period of REST that may have the rows that the held object lacks. */
  readonly standIn?: SourceObject;
  /** The period of REST that is used while the archive does not answer; `held`: the lake has its rows already. */
  readonly substitute?: Task['substitute'];
  readonly absent: AbsenceReason;
  /** The day after the last listed period, if the absent period is `delisted` or `not-published-yet`. */
  readonly sinceDay?: number | undefined;
  /** REST has no rows of the absent period either. */
  readonly isRestEmpty?: true;
  /** The listing has the neighbours of the period, but no longer the period itself. */
  readonly isWithdrawn?: boolean;
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
  /** Whether a run refused this revision. */
  readonly isRefused: (listed: SourceObject) => boolean;
  /** The monthly object replaces held days if another day of the month is a hole, or if one lacks rows. */
  readonly fillsHolesFromMonths?: true | undefined;
}

export const partitionLabel = (partition: PartitionPeriod, { cadence, from }: Period): string =>
  partition === 'day' && cadence === 'daily' ? dayText(from) : monthText(monthOf(from));

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

const lengthOf = (month: number): number => monthStart(month + 1) - monthStart(month);

async function bound(context: ChooseContext, range: DayRange): Promise<DayRange> {
  if (range.from > -Infinity) return range;
  const listings = await Promise.all(context.cadences.map((cadence) => context.list(cadence)));
  const starts = listings.flatMap((listing) => listing.first?.from ?? []);
  return { from: Math.min(range.to, ...starts), to: range.to };
}

/** The days of each month, ascending and without duplicates. */
export const byMonth = (ranges: readonly DayRange[]): ReadonlyMap<number, readonly number[]> =>
  grouped(rangesOf(spansOf(ranges)).flatMap(eachDay), monthOf);

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

const holdsDay = ({ held }: ChooseContext, month: number): boolean =>
  eachDay(monthPeriod(month)).some((day) => held.hasDay(day));

/** Whether the monthly object may have more rows of one of the days: a hole of the daily listing, or a held day that lacks rows. */
async function mayHaveMore(context: ChooseContext, month: number, days: readonly number[]): Promise<boolean> {
  const { held } = context;
  if (context.fillsHolesFromMonths !== true) return false;
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
  return listed !== undefined && !context.isRefused(withSidecar(context, monthly, listed, undefined));
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
    const sinceDay = absent === 'not-published-yet' ? listing.last?.to : undefined;
    const isCurrent = listing.copiedAtMs === undefined && listing.isProbed !== true;
    const isWithdrawn = held !== undefined && absent === 'hole' && isCurrent;
    return { period, absent, sinceDay, held, isWithdrawn };
  }
  return { period, absent, listed: withSidecar(context, listing, listed, held), held };
}

/** Adds the ETag of the sidecar, if a later run may meet the same revision again. Other objects do not need it. */
function withSidecar(
  { today, recheckDays, fillsHolesFromMonths }: ChooseContext,
  { sidecars }: SeriesListing,
  listed: SourceObject,
  held: ObjectLine | undefined,
): SourceObject {
  const { from, to } = listed.period;
  const isMet =
    held === undefined
      ? to > today - recheckDays || fillsHolesFromMonths === true
      : held.etag !== listed.etag;
  return sidecars !== undefined && isMet ? { ...listed, sidecarEtag: sidecars.get(from) ?? '' } : listed;
}

/**
 * The choices of `ranges`, and of each held period of which a listing that was read for them has another revision: an object that was
 * published late may be corrected long after its day. A revision that was refused is left to runs of its range.
 */
export async function chooseWithRevised(
  context: ChooseContext,
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
    for (const listed of listing.copiedAtMs === undefined ? listing.objects.values() : []) {
      const line = held.of(listed.period);
      if (line?.key !== listed.key || line.etag === undefined || (listed.etag ?? '') === '') continue;
      if (line.etag !== listed.etag && !isRefused(withSidecar(context, listing, listed, line)))
        revised.push(listed.period);
    }
  return revised.length === 0 ? choices : chooseObjects(context, rangesOf(spansOf([...ranges, ...revised])));
}
