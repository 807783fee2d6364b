/** Adds to the ranges of a request the days of its order that the lake lacks, and held days that may lack rows. */
import { isEnd, type Absences, type Absence } from '../lake/absences.js';
import { rangesOf, spansOf, type DayRange } from '../lake/catalogue/spans.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { Manifest } from '../lake/manifest.js';
import { REASON_FACTS } from '../model/absence-reasons.js';
import { dayPeriod } from '../model/calendar.js';
import { isFromRest } from '../model/manifest-line.js';
import { PAGE_DAYS } from './series-listing.js';
import type { PlanContext } from './series-request.js';
import { isDue, waitOfAge } from '../lake/absence-waits.js';

interface LackingLake extends Pick<Manifest, 'absences'> {
  readonly held: HeldObjects;
  /** Held days that are cut, compared with the days around them. */
  readonly cuts: ReadonlySet<number>;
  /** The run reads the listing of the archive. */
  readonly isArchived: boolean;
}

/**
 * The ranges, together with the days since the first day of the order that the lake lacks and that are due: at once if no run has asked for them, then
 * less and less often, without end. Days that are held without some of their rows, or from REST in place of the archive, are compared by each run while
 * they are young enough for the page of the listing that it reads anyway, then less and less often too.
 * `since`: the first day of the order; -Infinity: that of the series.
 */
export function withLackingDays(
  { today, nowMs, revisions }: Pick<PlanContext, 'today' | 'nowMs' | 'revisions'>,
  asked: readonly DayRange[],
  since: number | undefined,
  lake: LackingLake,
): readonly DayRange[] {
  const { held, absences, cuts, isArchived } = lake;
  const last = asked.at(-1);
  if (since === undefined || last === undefined) return asked;
  const start = since === -Infinity ? (held.first() ?? since) : since;
  if (start === -Infinity) return [{ from: start, to: last.to }];
  const lacking: DayRange[] = [];
  const known = knownAbsence(held, absences);
  const add = (from: number, to: number): void => {
    for (let day = from; day < to; day += 1) {
      const absence = known(day);
      if (absence === undefined || isDue(absence, nowMs)) lacking.push({ from: day, to: day + 1 });
    }
  };
  let next = start;
  for (const { from, to, facts } of held.spans()) {
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
  const [ended] = [...absences.days()]
    .filter(([day, { reason }]) => day >= end && isEnd(reason))
    .sort(([a], [b]) => a - b);
  return (day) => {
    if (absences.failureOf(dayPeriod(day)) !== undefined) return undefined;
    const absence = absences.ofDay(day);
    if (absence === undefined) return ended !== undefined && day >= ended[0] ? ended[1] : undefined;
    const { at } = REASON_FACTS[absence.reason];
    const isRefuted = (at === 'end' && day < end) || (at === 'start' && day > first);
    return isRefuted ? undefined : absence;
  };
}
