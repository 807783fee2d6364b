/** The gaps of a series in order of time. */
import type { HeldSpan } from '../held-objects.js';
import type { Absences } from '../absences.js';
import { absentDays, isMissing, type GapReason } from './absent-days.js';
import { idsGoOn } from './id-seams.js';
import type { EmptyStretch } from './empty-stretches.js';
import { DAY_SECONDS, wholeDays, type Gap, type LackState } from './gap.js';
import { addRows, cutGaps, looseGaps, type Add } from './held-gaps.js';
import type { Part } from './gap-edges.js';
import { eachSpan, intersect, subtract, type Spans } from './spans.js';
import { cutsOf, heldDaysOf } from './cut-days.js';

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
    gaps.push({ ...of, from: start, to: end, state, amount, isMissing: isMissing(of.reason) });
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
  const sorted = gaps.sort((a, b) => a.from - b.from || a.to - b.to);
  return joined(sorted.map((gap) => withCadence(gap, within)));
}

function withCadence(gap: Gap, within: readonly HeldSpan[]): Gap {
  const isIn = ({ from, to }: HeldSpan): boolean =>
    from * DAY_SECONDS <= gap.from && gap.from < to * DAY_SECONDS;
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
    const isSame = last?.to === gap.from && EQUAL.every((name) => last[name] === gap[name]);
    if (isSame && last.isLoose === undefined && gap.isLoose === undefined)
      all[all.length - 1] = { ...last, to: gap.to, amount: last.amount + gap.amount };
    else all.push(gap);
  }
  return all;
}
