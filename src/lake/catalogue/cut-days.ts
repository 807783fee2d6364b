/**
 * Finds held days that lack rows, by four signs. Missing ids. Silences: the conversion found times without rows that are long for the rate of the object.
 * Long stretches without rows: they are found here, at a midnight, compared with near days. Few rows in a day.
 */
import { startOfDay, UTC, type DayStart } from '../../model/calendar.js';
import type { HeldSpan, HeldObjects } from '../held-objects.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { isLongStretch, longOf, silentSides, silentStretches } from './empty-stretches.js';
import { stretchAt, timesOf, type DayTimes, type EmptyStretch } from './empty-stretches.js';
import type { Absences } from '../absences.js';
import { reasons } from './absent-days.js';
import { hasEnded, isBeforeStart, type Part } from './gap-edges.js';
import { append, type DayRange } from './spans.js';
import { ownDays, factsOf, type FactTerms } from './series-facts.js';

const NEAR_DAYS = 7;
const FEWEST_NEAR_DAYS = 2;
/** A long stretch is at least this many times as long as a stretch that counts as short beside it. */
const LONG_TO_SHORT = 10;

/** A day of a steady dataset with less than this share of the usual rows lacks rows. Must be below 10/12: bookDepth went from 10 to 12 bands on 2026-01-15. */
const STEADY_SHARE = 0.75;

/**
 * The stretches in which held objects lack rows, in order of time. Of the long stretches, only unusual ones count: most of the near days, and at least two,
 * have a short one there. `isIdle`: whether the symbol is proven not to trade on a day. At the midnights of such a day, only missing ids count, and the
 * days beside it may have few rows: the symbol may have been listed or delisted within them.
 */
export function cutStretches(
  held: readonly HeldSpan[],
  isIdle: (day: number) => boolean,
  dayStart: DayStart,
  rate?: DatasetSpec['rate'],
): EmptyStretch[] {
  const days = new Map<number, DayTimes>();
  const long: EmptyStretch[] = [];
  for (const { facts, from: day } of held) {
    const { cadence, open, rows, first, last } = facts;
    if (cadence !== 'daily' || open === true || first === undefined || last === undefined) continue;
    if (rows === undefined) continue;
    const times = timesOf(day, facts);
    days.set(day, times);
    long.push(...longOf(times, dayStart));
  }
  const isSeriesEdge = ({ day, at }: EmptyStretch): boolean =>
    at === 'begin' ? isIdle(day - 1) : at === 'end' && isIdle(day + 1);
  const { missing, decided } = seamsOf(held, dayStart);
  const unusual = long.filter(
    (stretch) =>
      !decided.has(midnightOf(stretch)) && !isSeriesEdge(stretch) && isUnusual(stretch, days, dayStart),
  );
  const silent = (rate === undefined ? [] : held)
    .flatMap((object) => [...silentStretches(object.facts, dayStart), ...silentSides(object, dayStart)])
    .filter(
      (stretch) => !isSeriesEdge(stretch) && (stretch.at === 'within' || !decided.has(midnightOf(stretch))),
    );
  const isSilent = ({ day, at }: EmptyStretch): boolean =>
    silent.some((one) => one.day === day && one.at === at);
  const cut = [...missing, ...silent, ...unusual.filter((stretch) => !isSilent(stretch))];
  const cutDays = new Set(cut.map(({ day }) => day));
  const thin =
    rate?.isSteady === true
      ? thinDays(days, dayStart).filter(
          ({ day }) => !isIdle(day - 1) && !isIdle(day + 1) && !cutDays.has(day),
        )
      : [];
  return [...cut, ...thin].sort((a, b) => a.fromMs - b.fromMs);
}

/** Days with few rows compared with the near days. Each is one stretch, because the times of the missing rows are not known. */
function thinDays(days: ReadonlyMap<number, DayTimes>, dayStart: DayStart): EmptyStretch[] {
  return [...days.values()].flatMap(({ day, rows }) => {
    const near = nearDays(day, days).map((one) => one.rows);
    const median = near.toSorted((a, b) => a - b)[Math.floor(near.length / 2)] ?? 0;
    if (near.length < FEWEST_NEAR_DAYS || rows >= STEADY_SHARE * median) return [];
    return [{ day, at: 'within', fromMs: startOfDay(day, dayStart), toMs: startOfDay(day + 1, dayStart) }];
  });
}

function nearDays(day: number, days: ReadonlyMap<number, DayTimes>): DayTimes[] {
  const near: DayTimes[] = [];
  for (let other = day - NEAR_DAYS; other <= day + NEAR_DAYS; other += 1) {
    const times = other === day ? undefined : days.get(other);
    if (times !== undefined) near.push(times);
  }
  return near;
}

const midnightOf = ({ day, at }: EmptyStretch): number => (at === 'begin' ? day : day + 1);

function isUnusual(
  { day, at, fromMs, toMs }: EmptyStretch,
  days: ReadonlyMap<number, DayTimes>,
  dayStart: DayStart,
): boolean {
  const near = nearDays(day, days);
  const short = near.filter((times) => {
    const stretch = stretchAt(times, at, dayStart);
    return (stretch.toMs - stretch.fromMs) * LONG_TO_SHORT <= toMs - fromMs;
  });
  return near.length >= FEWEST_NEAR_DAYS && short.length * 2 > near.length;
}

/** The days of the objects as spans. */
export function heldDaysOf(objects: readonly DayRange[]): number[] {
  const days: number[] = [];
  for (const { from, to } of objects) append(days, from, to);
  return days;
}

const mayBeCut = (held: readonly HeldSpan[], rate: DatasetSpec['rate']): boolean =>
  rate !== undefined || held.some(({ facts }) => facts.ids !== undefined);

/** The stretches without rows of the cut days in the range; empty for a series with neither a rate nor ids. */
export function cutsOf(
  held: readonly HeldSpan[],
  { from, to, rate, heldDays, known, dayStartSeconds }: Omit<Part, 'rowSeconds' | 'halts' | 'bars'>,
): EmptyStretch[] {
  if (!mayBeCut(held, rate)) return [];
  const reasonOf = reasons(heldDays, known);
  const isIdle = (day: number): boolean => {
    const { reason } = reasonOf(day);
    return hasEnded(reason) || isBeforeStart(reason) || reason === 'not-traded';
  };
  const cuts = cutStretches(held, isIdle, { dayStartMs: dayStartSeconds * 1000 }, rate);
  return cuts.filter(({ day }) => day >= from && day < to);
}

/** The stretches without rows for which held days count as cut, for runs and `repair`. */
export function heldCuts(
  { held, absences }: { readonly held: HeldObjects; readonly absences: Absences },
  terms: Pick<FactTerms, 'spec' | 'today'>,
): readonly EmptyStretch[] {
  const objects = held.spans();
  const rate = terms.spec?.rate;
  // Most series have neither a rate nor ids, and a run calls this for each series.
  if (!mayBeCut(objects, rate)) return [];
  const heldDays = heldDaysOf(objects);
  const known = { absences, ...factsOf(terms, objects) };
  const { from, to } = ownDays(heldDays, absences, []);
  const dayStartSeconds = (terms.spec ?? UTC).dayStartMs / 1000;
  return cutsOf(objects, { from, to: Math.min(to, terms.today), rate, dayStartSeconds, heldDays, known });
}

/**
 * Compares the last id of each object with the first id of the next one. `missing`: for each midnight at which ids are missing, the longer stretch
 * beside it, or both if both are long. `decided`: the midnights at which ids tell whether rows
 * are missing, so that silences and long stretches do not count there. Ids that begin anew tell nothing.
 */
function seamsOf(
  held: readonly HeldSpan[],
  dayStart: DayStart,
): { readonly missing: EmptyStretch[]; readonly decided: ReadonlySet<number> } {
  const missing: EmptyStretch[] = [];
  const decided = new Set<number>();
  for (const [index, { facts, from: day }] of held.entries()) {
    const before = held[index - 1];
    const [last, first] = [before?.facts.ids?.last, facts.ids?.first];
    if (before === undefined || before.facts.open === true || last === undefined || first === undefined)
      continue;
    const ids = first - last - 1;
    // Days without objects between ids that go on had no rows.
    if (ids < 0 || (ids > 0 && before.to !== day)) continue;
    decided.add(before.to).add(day);
    if (ids === 0 || endsWithGap(before, dayStart)) continue;
    const tail = stretchAt(timesOf(day - 1, before.facts), 'end', dayStart);
    const head = stretchAt(timesOf(day, facts), 'begin', dayStart);
    const longer = head.toMs - head.fromMs > tail.toMs - tail.fromMs ? head : tail;
    const long = [tail, head].filter(({ fromMs, toMs }) => isLongStretch(toMs - fromMs));
    for (const stretch of long.length > 1 ? long : [longer])
      // Not empty, also if the first row is at midnight.
      missing.push({ ...stretch, toMs: Math.max(stretch.toMs, stretch.fromMs + 1), lacksIds: true });
  }
  return { missing, decided };
}

/** Whether the last gap of an object reaches its end, so that the missing rows there are known already. */
function endsWithGap({ facts, to }: HeldSpan, dayStart: DayStart): boolean {
  const [, end = ''] = facts.gaps?.at(-1) ?? [];
  return Date.parse(end) >= startOfDay(to, dayStart);
}

/** Whether no id is missing between two objects, and so no row, also of a schedule: its rows tell the time of the row before them. */
export const idsGoOn = ({ facts }: HeldSpan, next: HeldSpan): boolean =>
  facts.ids !== undefined && next.facts.ids?.first === facts.ids.last + 1;
