/** The held objects of a series that lack rows at one of their ends. */
import type { HeldSpan, HeldObjects } from '../lake/held-objects.js';
import { isCheckDay } from './lacking-days.js';
import type { EmptyStretch } from '../lake/catalogue/empty-stretches.js';

/** The end of a symbol is proven weeks after it. */
export const RECENT_DAYS = 60;

type Cuts = readonly EmptyStretch[];

/** Two neighbouring objects, or the outer end of one, with rows missing between them. `asked`: the object that tells when evidence is asked for. */
interface Seam {
  readonly before: HeldSpan | undefined;
  readonly next: HeldSpan | undefined;
  readonly asked: HeldSpan;
}

export const lackingSeams = (spans: readonly HeldSpan[], cuts: Cuts): Seam[] =>
  [...spans, undefined].flatMap((next, index) => {
    const before = spans[index - 1];
    const isLacking =
      (next !== undefined && lacksHead(next, cuts)) || (before !== undefined && lacksTail(before, cuts));
    const asked = next ?? before;
    return isLacking && asked !== undefined ? [{ before, next, asked }] : [];
  });

/** Whether evidence may be asked for although a run fetches nothing. So that most series are not read again after the run, the plan asks this. */
export const mayLackEdges = (held: HeldObjects, cuts: Cuts, today: number): boolean =>
  lackingSeams(held.spans(), cuts).some(({ asked }) => isRecentOrDue(asked, today));

export const isRecentOrDue = ({ from, to }: HeldSpan, today: number): boolean =>
  today - to < RECENT_DAYS || isCheckDay(from, today);

function lacksHead({ from, facts: { gaps, first = '' } }: HeldSpan, cuts: Cuts): boolean {
  const isAfterGap = gaps !== undefined && Date.parse(gaps[0]?.[0] ?? '') < Date.parse(first);
  return isAfterGap || cuts.some(({ day, at }) => day === from && at === 'begin');
}

function lacksTail({ to, facts: { gaps, last = '', open } }: HeldSpan, cuts: Cuts): boolean {
  const isBeforeGap =
    gaps !== undefined && open !== true && Date.parse(gaps.at(-1)?.[0] ?? '') > Date.parse(last);
  return isBeforeGap || cuts.some(({ day, at }) => day === to - 1 && at === 'end');
}
