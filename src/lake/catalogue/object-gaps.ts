/** The missing times that held objects name. */
import type { HeldSpan } from '../held-objects.js';
import type { Absences } from '../absences.js';
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';
import { parsePeriod } from '../../model/calendar.js';
import { DAY_SECONDS } from './gap.js';
import { at, intersect } from './spans.js';
import type { Part } from './gap-edges.js';

/** The missing times that an object names; those after its last row, if it was fetched before its period was over. */
export function gapsWithin(span: HeldSpan, part: Part): readonly number[] {
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
export function unfetchedTime({ facts, from, to }: HeldSpan, part: Part): number[] {
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
export function gapsOfBoth(
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
