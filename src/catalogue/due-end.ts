/** The days of a dataset that must be published by now. */
import { LATE_MS } from '../model/absence-reasons.js';
import { dayOf, monthOf, monthStart } from '../model/calendar.js';
import type { Settings } from '../model/task.js';
import { cadencesOf } from '../source/keys.js';
import type { Source } from '../source/source.js';
import { hasLongBars } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';

interface DueContext {
  readonly interval: string | undefined;
  /** Undefined for rows of REST. */
  readonly cadence: Settings['cadence'] | undefined;
  readonly venue: Source;
  readonly nowMs: number;
}

/** The day after the last one that must be published by now. Bars above a day have daily objects only for some symbols. */
export function dueEnd(
  spec: DatasetSpec | undefined,
  { interval, cadence, venue, nowMs }: DueContext,
): number {
  const isMonthly =
    cadence !== undefined &&
    spec !== undefined &&
    (hasLongBars(spec, interval) || !cadencesOf(spec, interval, cadence).includes('daily'));
  const due = dayOf(nowMs - LATE_MS[isMonthly ? 'monthly' : 'daily'], venue);
  return isMonthly ? monthStart(monthOf(due)) : due;
}
