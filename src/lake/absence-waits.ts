/** When to request an absent period again. */
import { DAY_MS } from '../model/calendar.js';
import { REASON_FACTS } from '../model/absence-reasons.js';
import type { Absence } from './absences.js';

/** The age of a period divided by this number is the time between two of its requests. */
const AGES_PER_WAIT = 8;
const LONGEST_WAIT_DAYS = 30;

/** The days between two requests of a period of this age in days: none at first, 30 at last, without end. */
export const waitOfAge = (days: number): number =>
  Math.max(0, Math.min(Math.floor(days / AGES_PER_WAIT), LONGEST_WAIT_DAYS));

/** A daily run begins less than a day after the end of the one before. Milliseconds. */
const LONGEST_RUN_MS = 6 * 3_600_000;

/** Whether to request an absent period again. The wait grows with the age that the period had at its last request. */
export function isDue({ reason, atMs, to }: Pick<Absence, 'reason' | 'atMs' | 'to'>, nowMs: number): boolean {
  const ageDays = Math.floor(atMs / DAY_MS - to);
  const waitMs = Math.max(REASON_FACTS[reason].leastWaitMs, waitOfAge(ageDays) * DAY_MS - LONGEST_RUN_MS);
  // A time in the future means that the clock was set back. Requests must not stop then.
  return nowMs < atMs || nowMs >= atMs + waitMs;
}

/** Whether to request an absent period from REST; true before the first request. */
export const isRestDue = ({ reason, to, rest }: Absence, nowMs: number): boolean =>
  rest === undefined || isDue({ reason, to, atMs: rest.atMs }, nowMs);
