/** The reasons of absence, and what follows from each. */
import { DAY_MS, HOUR_MS } from './units.js';

interface ReasonFacts {
  /** The part of a series that the reason is about: before its first object, after its last one, or any. */
  readonly at: 'start' | 'end' | 'any';
  /** The reason is written only with evidence, so no rows are expected. */
  readonly isProven: boolean;
  /** The objects of a symbol prove it. Rows of REST refute it. */
  readonly isOfSymbol: boolean;
  /** The archive may publish the period later, and REST may have it. */
  readonly mayCome: boolean;
  /** The shortest wait after a request without result, in milliseconds. It is short for objects that may be published at any hour. */
  readonly leastWaitMs: number;
}

const WEEK_MS = 7 * DAY_MS;

const REASONS = {
  'not-listed-yet': { at: 'start', isProven: true, isOfSymbol: true, mayCome: false, leastWaitMs: DAY_MS },
  /** Before the first known object, without a current listing that proves more. */
  unknown: { at: 'start', isProven: false, isOfSymbol: false, mayCome: true, leastWaitMs: 6 * HOUR_MS },
  'before-history': { at: 'start', isProven: true, isOfSymbol: false, mayCome: false, leastWaitMs: WEEK_MS },
  'not-published-yet': {
    at: 'end',
    isProven: false,
    isOfSymbol: false,
    mayCome: true,
    leastWaitMs: HOUR_MS / 6,
  },
  delisted: { at: 'end', isProven: true, isOfSymbol: true, mayCome: false, leastWaitMs: DAY_MS },
  'dataset-ended': { at: 'end', isProven: true, isOfSymbol: false, mayCome: false, leastWaitMs: DAY_MS },
  hole: { at: 'any', isProven: false, isOfSymbol: false, mayCome: true, leastWaitMs: 6 * HOUR_MS },
  'not-traded': { at: 'any', isProven: true, isOfSymbol: true, mayCome: false, leastWaitMs: DAY_MS },
} as const;

export type AbsenceReason = keyof typeof REASONS;

export const REASON_FACTS: Readonly<Record<AbsenceReason, ReasonFacts>> = REASONS;
export const ABSENCE_REASONS = Object.keys(REASONS) as readonly AbsenceReason[];

/** The time from the end of a period until its publication is late. Binance publishes days on the next day, months in their first week. */
export const LATE_MS: Readonly<Record<'daily' | 'monthly', number>> = {
  daily: 2 * DAY_MS,
  monthly: 10 * DAY_MS,
};
