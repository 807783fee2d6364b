/** A time without data in a series, with its state, reason and evidence. */
import { DAY_SECONDS } from '../../model/units.js';
import type { Evidence, GapReason } from './absent-days.js';
import { eachSpan, type Spans } from './spans.js';

/** Times of states are seconds since the start of the exchange's day 1970-01-01. Each day begins at a multiple of this number. */

/**
 * What is not held. `short`: rows of a held object are missing. `absent`: no object of the day is held. `unpublished`: the day is not due
 * yet. `failed`: the last fetch failed. `unasked`: no run has asked for the day, or for its rest, since it could be had.
 */
export type LackState = 'short' | 'absent' | 'unpublished' | 'failed' | 'unasked';

/** A time without data in a series. Between the gaps, the series is `held`. */
export interface Gap {
  /** `[from, to)` in seconds since the start of day 0 of the exchange. */
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly state: LackState;
  readonly reason: GapReason;
  /** Number of rows, or of days where the expected number of rows is unknown. */
  readonly amount: number;
  /** False when no data is expected. */
  readonly isMissing: boolean;
  readonly evidence?: Evidence;
  /** REST was asked for these days too, in vain. */
  readonly isRestAsked?: true;
  /** The rows are missing in a monthly object. */
  readonly isOfMonth?: true;
  /** The missing rows lie somewhere in this time; their exact times are unknown. */
  readonly isLoose?: true;
}

/** The whole days within spans of seconds. */
export function wholeDays(spans: Spans): number[] {
  const days: number[] = [];
  eachSpan(spans, (from, to) => {
    const start = Math.ceil(from / DAY_SECONDS) * DAY_SECONDS;
    const end = Math.floor(to / DAY_SECONDS) * DAY_SECONDS;
    if (start < end) days.push(start, end);
  });
  return days;
}
