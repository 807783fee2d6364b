/** The gaps of held objects: missing rows with their times, cut days, and what lies before the start, after the end or in a pause of a series. */
import { LONG_BAR_DAYS } from '../../convert/columns.js';
import type { HeldSpan } from '../held-objects.js';
import type { Absences } from '../absences.js';
import { isFromRest } from '../../model/manifest-line.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { dayOf, dayPeriod, parsePeriod } from '../../model/calendar.js';
import { calendarStart } from '../../model/calendar-periods.js';
import type { DayStart } from '../../model/calendar.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { reasons } from './absent-days.js';
import type { GapReason, SeriesFacts } from './absent-days.js';
import { isLongStretch, idsGoOn } from './cut-days.js';
import type { EmptyStretch } from './cut-days.js';
import { DAY_SECONDS } from './gap.js';
import type { Gap, LackState } from './gap.js';
import { at, eachSpan, intersect, inWholeRows, overlap, rowsIn, subtract, totalOf, union } from './spans.js';
import type { Spans } from './spans.js';

/** What is asked of the part of a series that the range selects. */
export interface Part {
  readonly from: number;
  readonly to: number;
  readonly rowSeconds: number | undefined;
  readonly dayStartSeconds: number;
  readonly halts: Spans;
  readonly rate: DatasetSpec['rate'];
  readonly heldDays: Spans;
  readonly known: SeriesFacts;
  readonly bars: BarOpenings;
}

export type Add = (
  span: readonly [from: number, to: number],
  state: LackState,
  of: Pick<Gap, 'reason' | 'evidence' | 'isRestAsked'>,
) => void;

export function hasEnded(after: GapReason): boolean {
  return after === 'delisted' || after === 'dataset-ended';
}

/** Adds the missing rows of held objects, or days without rows where their number is not known. Returns their times. */
export function addRows(objects: readonly HeldSpan[], part: Part, add: Add): Spans {
  const { rowSeconds: seconds, dayStartSeconds, known, halts } = part;
  const located: number[] = [];
  const notInRest: number[] = [];
  const edges: Edge[] = [];
  for (const [index, object] of objects.entries()) {
    const named = gapsWithin(object, part);
    const next = objects[index + 1];
    const isWhole =
      named.at(-1) === object.to * DAY_SECONDS && next?.from === object.to && idsGoOn(object, next);
    const spans = isWhole ? named.slice(0, -2) : named;
    if (spans.length === 0) continue;
    if (unfetchedTime(object, part).length > 0)
      edges.push({ from: at(spans, 0), to: at(spans, 1), reason: 'not-fetched' });
    for (const second of spans) located.push(second);
    if (seconds !== undefined && known.isWholeInRest === true)
      notInRest.push(...gapsOfBoth(object, known.absences, spans, dayStartSeconds));
  }
  // Two neighbouring objects may both name the gap between them.
  const gaps = intersect(union(located), [part.from * DAY_SECONDS, part.to * DAY_SECONDS]);
  if (gaps.length === 0) return gaps;
  edges.unshift(...edgesOf(part, gaps), ...pausesOf(part, gaps));
  edges.sort((a, b) => a.from - b.from);
  for (const { from, to, ...of } of edges)
    add([from, to], of.reason === 'not-fetched' ? 'unasked' : 'absent', of);
  const left = subtract(
    gaps,
    edges.flatMap(({ from, to }) => [from, to]),
  );
  let inner: Spans = seconds === undefined ? inWholeRows(left, DAY_SECONDS) : left;
  // Without a fixed number of rows, gaps are days, and a halt of hours does not explain them.
  const listed = seconds === undefined ? wholeDays(halts) : inWholeRows(halts, seconds);
  const proofs = [
    ['list', listed],
    ['rest', union(notInRest)],
  ] as const;
  for (const [evidence, halt] of proofs) {
    if (halt.length === 0) continue;
    eachSpan(intersect(inner, halt), (...span) => add(span, 'short', { reason: 'halt', evidence }));
    inner = subtract(inner, halt);
  }
  eachSpan(inner, (...span) => add(span, 'short', { reason: 'unexplained' }));
  return gaps;
}

/** The missing times that an object names; those after its last row, if it was fetched before its period was over. */
function gapsWithin(span: HeldSpan, part: Part): readonly number[] {
  const { facts } = span;
  if (facts.open !== true && facts.gaps === undefined) return [];
  const unfetched = unfetchedTime(span, part);
  if (unfetched.length > 0) return unfetched;
  const all = secondsOfGaps(facts, part.dayStartSeconds);
  if (part.rate === undefined || facts.ids !== undefined) return all;
  // Silences of a part of a day are cuts.
  return all.filter((_, index) => at(all, index | 1) - at(all, index & ~1) >= DAY_SECONDS);
}

/** The time after the last row, in seconds, of a period that was fetched before it was over. */
function unfetchedTime({ facts, from, to }: HeldSpan, part: Part): number[] {
  if (facts.open !== true) return [];
  const start =
    facts.last === undefined
      ? from * DAY_SECONDS
      : Math.round(Date.parse(facts.last) / 1000 - part.dayStartSeconds + (part.rowSeconds ?? 0));
  const end = Math.min(to, part.to) * DAY_SECONDS;
  return start < end ? [start, end] : [];
}

function secondsOfGaps({ gaps = [] }: Pick<ObjectLine, 'gaps'>, dayStartSeconds: number): number[] {
  return gaps.flat().map((instant) => Math.round(Date.parse(instant) / 1000) - dayStartSeconds);
}

/** The gaps of a held object of the archive that REST has no rows for either; those that both have, if rows of REST replaced the object. */
function gapsOfBoth(
  { facts }: HeldSpan,
  absences: Absences,
  located: readonly number[],
  dayStartSeconds: number,
): readonly number[] {
  if (facts.insteadOf !== undefined)
    return intersect(located, secondsOfGaps(facts.insteadOf, dayStartSeconds));
  // REST alone does not prove that nothing was traded.
  if (isFromRest(facts)) return [];
  const period = parsePeriod(facts.cadence, facts.period);
  const rest = period === undefined ? undefined : absences.of(period)?.rest;
  return rest?.lacksToo === facts.sha256 ? located : [];
}

type Edge = Pick<Gap, 'from' | 'to' | 'reason' | 'evidence'>;

/**
 * Parts of gaps within held days that lie before the listing or after the end of the series, with the first or last day itself: its
 * rows begin or end at any time.
 */
function edgesOf({ heldDays, known, to: heldTo, bars }: Part, gaps: Spans): Edge[] {
  const reasonOf = reasons(heldDays, known);
  let start = at(heldDays, 0);
  let end = at(heldDays, heldDays.length - 1);
  const edges: Edge[] = [];
  const first = { from: at(gaps, 0), to: at(gaps, 1), ...reasonOf(start - 1) };
  if (first.to <= (known.firstRow ?? NaN) && isBeforeStart(first.reason)) {
    while (start * DAY_SECONDS < first.to && isBeforeStart(reasonOf(start).reason)) start += 1;
    const day = isContradicted(known.absences, start) ? start : bars.firstOf(start);
    edges.push({ ...first, to: Math.max(first.from, Math.min(first.to, day * DAY_SECONDS)) });
  }
  const last = { from: at(gaps, gaps.length - 2), to: at(gaps, gaps.length - 1), ...reasonOf(end) };
  const isLate = last.to >= Math.min(end, heldTo) * DAY_SECONDS && edges.length * 2 < gaps.length;
  if (isLate && hasEnded(last.reason)) {
    while ((end - 1) * DAY_SECONDS > last.from && hasEnded(reasonOf(end - 1).reason)) end -= 1;
    const day = isContradicted(known.absences, end - 1) ? end : end - 1;
    edges.push({ ...last, from: Math.max(last.from, day * DAY_SECONDS) });
  }
  return edges;
}

/** Whether the lake has other bars of the hours that this first or last day lacks. REST may have answered since that it has none. */
function isContradicted(absences: Absences, day: number): boolean {
  const absence = absences.of(dayPeriod(day));
  return absence?.reason === 'hole' && absence.rest === undefined;
}

/** The parts of gaps that lie in a proven pause of trading, with the days on which it begins and ends. */
function pausesOf({ known: { absences }, bars }: Part, gaps: Spans): Edge[] {
  const periods = absences.periods().filter((period) => absences.of(period)?.reason === 'not-traded');
  const edges: Edge[] = [];
  eachSpan(union(periods.flatMap(({ from, to }) => [from, to])), (first, end) => {
    const to = bars.firstOf(end) * DAY_SECONDS;
    eachSpan(gaps, (start, until) => {
      if (start <= Math.min(end * DAY_SECONDS, to) && first * DAY_SECONDS <= until)
        edges.push({
          from: Math.max(start, (first - 1) * DAY_SECONDS),
          to: Math.min(until, to),
          reason: 'not-traded',
          evidence: 'archive',
        });
    });
  });
  return edges;
}

export function isBeforeStart(reason: GapReason): boolean {
  return reason === 'not-listed-yet' || reason === 'before-history';
}

/** Missing rows at unknown times: an object has fewer rows than its period and the gaps that it names. */
export function looseGaps(objects: readonly HeldSpan[], part: Part, seconds: number): Gap[] {
  const loose: Gap[] = [];
  for (const object of objects) {
    const { facts, from, to } = object;
    const expected = ((to - from) * DAY_SECONDS) / seconds;
    if (facts.rows === undefined || facts.rows >= expected) continue;
    const unknown = expected - facts.rows - rowsIn(gapsWithin(object, part), seconds);
    if (unknown < 1) continue;
    const amount = Math.round((unknown * overlap(from, to, part.from, part.to)) / (to - from));
    if (amount === 0) continue;
    const span = {
      from: Math.max(from, part.from) * DAY_SECONDS,
      to: Math.min(to, part.to) * DAY_SECONDS,
    };
    loose.push({ ...span, state: 'short', reason: 'unexplained', amount, isMissing: true, isLoose: true });
  }
  return loose;
}

/** A cut day counts as one missing day, also when both of its ends are cut. */
export function cutGaps(
  cuts: readonly EmptyStretch[],
  short: Spans,
  { dayStartSeconds, halts }: Part,
): Gap[] {
  const placed = cuts.map((cut) => ({
    ...cut,
    from: cut.from / 1000 - dayStartSeconds,
    to: cut.to / 1000 - dayStartSeconds,
  }));
  const unexplained = placed.filter(({ from, to, lacksIds }) => {
    // A halt does not explain missing ids.
    if (lacksIds === true) return true;
    const left = totalOf(subtract([from, to], halts));
    return left === to - from || isLongStretch(left * 1000);
  });
  const isCounted = (day: number): boolean =>
    intersect([day * DAY_SECONDS, (day + 1) * DAY_SECONDS], short).length > 0;
  return unexplained.map(({ day, from, to }, index) => ({
    from: Math.floor(from),
    to: Math.ceil(to),
    state: 'short',
    reason: 'cut',
    amount: unexplained[index - 1]?.day === day || isCounted(day) ? 0 : 1,
    isMissing: true,
  }));
}

export function wholeDays(spans: Spans): number[] {
  const days: number[] = [];
  eachSpan(spans, (from, to) => {
    const start = Math.ceil(from / DAY_SECONDS) * DAY_SECONDS;
    const end = Math.floor(to / DAY_SECONDS) * DAY_SECONDS;
    if (start < end) days.push(start, end);
  });
  return days;
}

// The days on which bars of several days open: no row is expected of a time in which none opens.

type BarOpenings = ReturnType<typeof barOpenings>;

/**
 * `opensIn`: whether a bar opens on one of the days `[from, to)`. True where the rows of the series do not tell, and where objects begin with a bar of the period before.
 * `firstOf`: the first day of which rows are expected if the symbol is traded from this day on: that on which the bar with this day opens, and for shorter bars
 * the next day, because the rows of the first day may begin at any hour. `endOfPause`: the day from which on bars open again if the symbol is traded from this day on.
 */
export function barOpenings(held: readonly HeldSpan[], interval: string | undefined, dayStart: DayStart) {
  const days = LONG_BAR_DAYS[interval ?? ''];
  if (days === undefined)
    return { opensIn: () => true, firstOf: (day: number) => day + 1, endOfPause: (day: number) => day };
  const opened = held.map(({ facts: { first = '' } }) => dayOf(Date.parse(first), dayStart));
  const one = opened.find((day) => !Number.isNaN(day));
  const firstOf = (day: number): number => {
    if (interval === '1w' || interval === '1mo')
      return calendarStart(day, interval === '1w' ? 'week' : 'month');
    return one === undefined ? day + 1 : day - ((((day - one) % days) + days) % days);
  };
  const isOfPeriodBefore = held.some(({ from }, index) => (opened[index] ?? from) < from);
  const opensIn = (from: number, to: number): boolean =>
    isOfPeriodBefore || firstOf(Math.ceil(to) - 1) >= from;
  return { opensIn, firstOf, endOfPause: (day: number) => Math.min(day, firstOf(day)) };
}
