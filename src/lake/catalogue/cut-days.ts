/**
 * Finds held days that lack rows, by four signs. Missing ids. Silences: the conversion found times without rows that are long for the rate of the object.
 * Long stretches without rows: they are found here, at a midnight, compared with near days. Few rows in a day.
 */
import { DAY_MS, dayOf, startOfDay } from '../../model/calendar.js';
import type { DayStart } from '../../model/calendar.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import type { HeldSpan } from '../held-objects.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';

/** Shorter stretches at midnight are common. */
const LONG_MS = 2 * 3600_000;
/** At the rate of the rest of the day, a long stretch would have at least this many rows. With fewer, it may be chance. */
const FEWEST_EXPECTED_ROWS = 10;
const NEAR_DAYS = 7;
const FEWEST_NEAR_DAYS = 2;
/** A long stretch is at least this many times as long as a stretch that counts as short beside it. */
const LONG_TO_SHORT = 10;

/** A day of a steady dataset with less than this share of the usual rows lacks rows. Must be below 10/12: bookDepth went from 10 to 12 bands on 2026-01-15. */
const STEADY_SHARE = 0.75;

export interface DayRows extends Pick<ObjectLine, 'rows' | 'first' | 'last'> {
  readonly day: number;
}

/** A time without rows at the start or the end of a day, or within it: epoch milliseconds `[from, to)`. */
export interface EmptyStretch {
  readonly day: number;
  readonly at: 'begin' | 'end' | 'within';
  readonly from: number;
  readonly to: number;
  /** Ids are missing at its midnight. Undefined for a stretch that was found by times or by few rows. */
  readonly lacksIds?: true;
}

export function isLongStretch(ms: number): boolean {
  return ms > LONG_MS;
}

/** Long stretches without rows at the start and the end of a day that otherwise has many rows. */
export function longStretches(day: DayRows, dayStart: DayStart): EmptyStretch[] {
  return longOf(timesOf(day.day, day), dayStart);
}

/** The times of the first and the last row of a day, in epoch milliseconds: parsed once, because a lake has hundreds of thousands of days. */
interface DayTimes {
  readonly day: number;
  readonly rows: number;
  readonly first: number;
  readonly last: number;
}

function timesOf(day: number, { rows = 0, first = '', last = '' }: Omit<DayRows, 'day'>): DayTimes {
  return { day, rows, first: Date.parse(first), last: Date.parse(last) };
}

function longOf(times: DayTimes, dayStart: DayStart): EmptyStretch[] {
  const [begin, end] = [stretchAt(times, 'begin', dayStart), stretchAt(times, 'end', dayStart)];
  // Without a division by the mean time between rows, which may be 0.
  const isLong = ({ from, to }: EmptyStretch): boolean =>
    times.rows > 1 &&
    isLongStretch(to - from) &&
    (to - from) * (times.rows - 1) >= FEWEST_EXPECTED_ROWS * (times.last - times.first);
  return [begin, end].filter(isLong);
}

/** The silences of less than a day in an object without ids. Its conversion found them by the rate of its rows. Longer ones are days without rows. */
export function silentStretches(
  { gaps = [], ids }: Pick<ObjectLine, 'gaps' | 'ids'>,
  dayStart: DayStart,
): EmptyStretch[] {
  if (ids !== undefined) return [];
  return gaps.flatMap(([start, until]) => {
    const [from, to] = [Date.parse(start), Date.parse(until)];
    const day = dayOf(from, dayStart);
    if (to - from >= DAY_MS) return [];
    const isEnd = to === startOfDay(day + 1, dayStart);
    return [{ day, at: from === startOfDay(day, dayStart) ? 'begin' : isEnd ? 'end' : 'within', from, to }];
  });
}

/** The silences of an object with ids, at its start and its end. */
function silentSides({ facts, from, to }: HeldSpan, dayStart: DayStart): EmptyStretch[] {
  return (facts.ids?.silent ?? [])
    .map((at) => stretchAt(timesOf(at === 'begin' ? from : to - 1, facts), at, dayStart))
    .filter((stretch) => stretch.to - stretch.from < DAY_MS);
}

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
  return [...cut, ...thin].sort((a, b) => a.from - b.from);
}

/** Days with few rows compared with the near days. Each is one stretch, because the times of the missing rows are not known. */
function thinDays(days: ReadonlyMap<number, DayTimes>, dayStart: DayStart): EmptyStretch[] {
  return [...days.values()].flatMap(({ day, rows }) => {
    const near = nearDays(day, days).map((one) => one.rows);
    const median = near.toSorted((a, b) => a - b)[Math.floor(near.length / 2)] ?? 0;
    if (near.length < FEWEST_NEAR_DAYS || rows >= STEADY_SHARE * median) return [];
    return [{ day, at: 'within', from: startOfDay(day, dayStart), to: startOfDay(day + 1, dayStart) }];
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

function midnightOf({ day, at }: EmptyStretch): number {
  return at === 'begin' ? day : day + 1;
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
    const longer = head.to - head.from > tail.to - tail.from ? head : tail;
    const long = [tail, head].filter(({ from, to }) => isLongStretch(to - from));
    for (const stretch of long.length > 1 ? long : [longer])
      // Not empty, also if the first row is at midnight.
      missing.push({ ...stretch, to: Math.max(stretch.to, stretch.from + 1), lacksIds: true });
  }
  return { missing, decided };
}

/** Whether the last gap of an object reaches its end, so that the missing rows there are known already. */
function endsWithGap({ facts, to }: HeldSpan, dayStart: DayStart): boolean {
  const [, end = ''] = facts.gaps?.at(-1) ?? [];
  return Date.parse(end) >= startOfDay(to, dayStart);
}

/** Whether no id is missing between two objects, and so no row, also of a schedule: its rows tell the time of the row before them. */
export function idsGoOn({ facts }: HeldSpan, next: HeldSpan): boolean {
  return facts.ids !== undefined && next.facts.ids?.first === facts.ids.last + 1;
}

function isUnusual(
  { day, at, from, to }: EmptyStretch,
  days: ReadonlyMap<number, DayTimes>,
  dayStart: DayStart,
): boolean {
  const near = nearDays(day, days);
  const short = near.filter((times) => {
    const stretch = stretchAt(times, at, dayStart);
    return (stretch.to - stretch.from) * LONG_TO_SHORT <= to - from;
  });
  return near.length >= FEWEST_NEAR_DAYS && short.length * 2 > near.length;
}

function stretchAt({ day, first, last }: DayTimes, at: EmptyStretch['at'], dayStart: DayStart): EmptyStretch {
  return at === 'begin'
    ? { day, at, from: startOfDay(day, dayStart), to: first }
    : { day, at, from: last, to: startOfDay(day + 1, dayStart) };
}
