/** The gaps of a series in order of time: days without objects, missing rows of held objects with their times, cut days, and what lies before the start, after the end or in a pause. */
import type { HeldSpan } from '../held-objects.js';
import type { Absences } from '../absences.js';
import { absentDays, isMissing, type GapReason } from './absent-days.js';
import { isLongStretch, type EmptyStretch } from './empty-stretches.js';
import { DAY_SECONDS } from '../../model/units.js';
import { wholeDays, type Gap, type LackState } from './gap.js';
import { edgesOf, pausesOf, type Part, type Edge } from './gap-edges.js';
import { at, eachSpan, intersect, inWholeRows, overlap, rowsIn, subtract, totalOf, union } from './spans.js';
import type { Spans } from './spans.js';
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';
import { parsePeriod } from '../../model/calendar.js';
import { cutsOf, heldDaysOf, idsGoOn } from './cut-days.js';

type Add = (
  span: readonly [from: number, to: number],
  state: LackState,
  of: Pick<Gap, 'reason' | 'evidence' | 'isRestAsked'>,
) => void;

/** The days between held objects whose ids go on: nothing was traded. */
function quietDays(held: readonly HeldSpan[]): Spans {
  return held.flatMap((object, index) => {
    const before = held[index - 1];
    const isQuiet = before !== undefined && before.to < object.from && idsGoOn(before, object);
    return isQuiet ? [before.to * DAY_SECONDS, object.from * DAY_SECONDS] : [];
  });
}

/** `held`: the objects whose files are there; `within`: those of them in the range; `missing`: all others. */
export function gapsOf(
  { held, within, missing }: Readonly<Record<'held' | 'within' | 'missing', readonly HeldSpan[]>>,
  part: Part,
): Gap[] {
  const { from, to, heldDays, known, halts, bars, rowSeconds: seconds = DAY_SECONDS } = part;
  const proofs = [['ids', quietDays(held)] as const, ['list', halts] as const];
  const gaps: Gap[] = [];
  const add: Add = ([start, end], state, of) => {
    // No gap: a time shorter than half of that between two rows (minus a second for rounding), or in which no bar of several days opens.
    if (end - start < Math.max(1, seconds / 2 - 1)) return;
    if (isMissing(of.reason) && !bars.opensIn(Math.ceil(start / DAY_SECONDS), end / DAY_SECONDS)) return;
    const amount = Math.max(1, Math.round((end - start) / seconds));
    gaps.push({ ...of, fromSeconds: start, toSeconds: end, state, amount, isMissing: isMissing(of.reason) });
  };
  const addDays = (days: Spans, of: Parameters<Add>[2]): void => {
    let left = days;
    // A halt explains a day that is not held only when the halt lasted the whole day.
    for (const [evidence, proven] of proofs) {
      if (!isMissing(of.reason)) continue;
      const halted = wholeDays(intersect(left, proven));
      eachSpan(halted, (...span) => add(span, 'absent', { reason: 'halt', evidence }));
      left = subtract(left, halted);
    }
    eachSpan(left, (...span) => add(span, stateOf(of.reason), of));
  };
  for (const one of absentDays(heldDays, from, to, known))
    addDays([one.from * DAY_SECONDS, one.to * DAY_SECONDS], one);
  eachSpan(intersect(heldDaysOf(missing), [from, to]), (start, end) =>
    addDays([start * DAY_SECONDS, end * DAY_SECONDS], { reason: 'missing' }),
  );
  const [current, old]: [HeldSpan[], HeldSpan[]] = [[], []];
  for (const object of within) {
    const reason = oldReason(object, known.absences);
    (reason === undefined ? current : old).push(object);
    if (reason === undefined) continue;
    const [start, end] = [Math.max(object.from, from), Math.min(object.to, to)];
    add([start * DAY_SECONDS, end * DAY_SECONDS], reason === 'unexplained' ? 'short' : 'failed', { reason });
  }
  const short = addRows(current, part, add);
  if (part.rowSeconds !== undefined) gaps.push(...looseGaps(current, part, part.rowSeconds));
  const isCurrent = ({ day }: EmptyStretch): boolean => !old.some((one) => one.from <= day && day < one.to);
  gaps.push(...cutGaps(cutsOf(held, part).filter(isCurrent), short, part));
  const sorted = gaps.sort((a, b) => a.fromSeconds - b.fromSeconds || a.toSeconds - b.toSeconds);
  return joined(sorted.map((gap) => withCadence(gap, within)));
}

function withCadence(gap: Gap, within: readonly HeldSpan[]): Gap {
  const isIn = ({ from, to }: HeldSpan): boolean =>
    from * DAY_SECONDS <= gap.fromSeconds && gap.fromSeconds < to * DAY_SECONDS;
  const isOfMonth = gap.state === 'short' && within.find(isIn)?.facts.cadence === 'monthly';
  return isOfMonth ? { ...gap, isOfMonth } : gap;
}

/** Why a held object is not what the archive has: a later revision could not be fetched, or has more rows and was refused because it lacks held ones. */
function oldReason({ facts, from, to }: HeldSpan, absences: Absences): GapReason | undefined {
  const code = absences.failureOfRevision({ cadence: facts.cadence, from, to });
  if (code !== undefined) return `failed:${code}`;
  return (facts.shorter?.rows ?? 0) > (facts.rows ?? Infinity) ? 'unexplained' : undefined;
}

function stateOf(reason: GapReason): LackState {
  if (reason === 'not-published-yet') return 'unpublished';
  if (reason === 'not-fetched') return 'unasked';
  return reason.startsWith('failed:') ? 'failed' : 'absent';
}

/** Neighbouring gaps are joined if these are equal. */
const EQUAL = ['reason', 'evidence', 'isRestAsked', 'isOfMonth'] as const;

function joined(gaps: readonly Gap[]): Gap[] {
  const all: Gap[] = [];
  for (const gap of gaps) {
    const last = all.at(-1);
    const isSame = last?.toSeconds === gap.fromSeconds && EQUAL.every((name) => last[name] === gap[name]);
    if (isSame && last.isLoose === undefined && gap.isLoose === undefined)
      all[all.length - 1] = { ...last, toSeconds: gap.toSeconds, amount: last.amount + gap.amount };
    else all.push(gap);
  }
  return all;
}

/** Adds the missing rows of held objects, or days without rows where their number is not known. Returns their times. */
function addRows(objects: readonly HeldSpan[], part: Part, add: Add): Spans {
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
      edges.push({ fromSeconds: at(spans, 0), toSeconds: at(spans, 1), reason: 'not-fetched' });
    for (const second of spans) located.push(second);
    if (seconds !== undefined && known.isWholeInRest === true)
      notInRest.push(...gapsOfBoth(object, known.absences, spans, dayStartSeconds));
  }
  // Two neighbouring objects may both name the gap between them.
  const gaps = intersect(union(located), [part.from * DAY_SECONDS, part.to * DAY_SECONDS]);
  if (gaps.length === 0) return gaps;
  edges.unshift(...edgesOf(part, gaps), ...pausesOf(part, gaps));
  edges.sort((a, b) => a.fromSeconds - b.fromSeconds);
  for (const { fromSeconds, toSeconds, ...of } of edges)
    add([fromSeconds, toSeconds], of.reason === 'not-fetched' ? 'unasked' : 'absent', of);
  const left = subtract(
    gaps,
    edges.flatMap(({ fromSeconds, toSeconds }) => [fromSeconds, toSeconds]),
  );
  let inner: Spans = seconds === undefined ? inWholeRows(left, DAY_SECONDS) : left;
  // Without a fixed number of rows, gaps are days, and a halt of hours does not explain them.
  const listed = seconds === undefined ? wholeDays(halts) : inWholeRows(halts, seconds);
  const proofs = [['list', listed] as const, ['rest', union(notInRest)] as const];
  for (const [evidence, halt] of proofs) {
    if (halt.length === 0) continue;
    eachSpan(intersect(inner, halt), (...span) => add(span, 'short', { reason: 'halt', evidence }));
    inner = subtract(inner, halt);
  }
  eachSpan(inner, (...span) => add(span, 'short', { reason: 'unexplained' }));
  return gaps;
}

/** Missing rows at unknown times: an object has fewer rows than its period and the gaps that it names. */
function looseGaps(objects: readonly HeldSpan[], part: Part, seconds: number): Gap[] {
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
      fromSeconds: Math.max(from, part.from) * DAY_SECONDS,
      toSeconds: Math.min(to, part.to) * DAY_SECONDS,
    };
    loose.push({ ...span, state: 'short', reason: 'unexplained', amount, isMissing: true, isLoose: true });
  }
  return loose;
}

/** A cut day counts as one missing day, also when both of its ends are cut. */
function cutGaps(cuts: readonly EmptyStretch[], short: Spans, { dayStartSeconds, halts }: Part): Gap[] {
  const placed = cuts.map((cut) => ({
    ...cut,
    fromSeconds: cut.fromMs / 1000 - dayStartSeconds,
    toSeconds: cut.toMs / 1000 - dayStartSeconds,
  }));
  const unexplained = placed.filter(({ fromSeconds, toSeconds, lacksIds }) => {
    // A halt does not explain missing ids.
    if (lacksIds === true) return true;
    const left = totalOf(subtract([fromSeconds, toSeconds], halts));
    return left === toSeconds - fromSeconds || isLongStretch(left * 1000);
  });
  const isCounted = (day: number): boolean =>
    intersect([day * DAY_SECONDS, (day + 1) * DAY_SECONDS], short).length > 0;
  return unexplained.map(({ day, fromSeconds, toSeconds }, index) => ({
    fromSeconds: Math.floor(fromSeconds),
    toSeconds: Math.ceil(toSeconds),
    state: 'short',
    reason: 'cut',
    amount: unexplained[index - 1]?.day === day || isCounted(day) ? 0 : 1,
    isMissing: true,
  }));
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

const secondsOfGaps = ({ gaps = [] }: Pick<ObjectLine, 'gaps'>, dayStartSeconds: number): number[] =>
  gaps.flat().map((instant) => Math.round(Date.parse(instant) / 1000) - dayStartSeconds);

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
