/** The days that coverage judges by default: those that the lake holds, has lost, or failed to fetch. */
import type { Absences } from '../lake/absences.js';
import type { HeldObjects } from '../lake/held-objects.js';
import type { LineFacts } from '../lake/manifest-line.js';
import type { ErrorCode } from '../model/errors.js';
import type { Format } from '../model/task.js';
import { append, at } from './spans.js';
import type { Spans } from './spans.js';

/** Days `[from, to)`. */
export interface Days {
  readonly from: number;
  readonly to: number;
}

/** The range of days to check. Without `from` or `to`, the range of each series begins or ends with its own days, see `ownDays`. */
export interface DayRange {
  readonly from?: number;
  readonly to?: number;
}

/** A failure of the last failure report. */
export interface ReportedFailure {
  readonly format: Format;
  readonly period: Days;
  readonly code: ErrorCode;
}

/** A held object, with its days `[from, to)`. */
export interface HeldObject {
  readonly line: LineFacts;
  readonly from: number;
  readonly to: number;
}

/** In order of their days. */
export function objectsOf(held: HeldObjects): HeldObject[] {
  return held.spans().map(({ from, to, facts }) => ({ line: facts, from, to }));
}

export function daysOf(objects: readonly HeldObject[]): number[] {
  const days: number[] = [];
  for (const { from, to } of objects) append(days, from, to);
  return days;
}

/** The codes by day. */
export function codesOf(failures: readonly ReportedFailure[]): Map<number, ErrorCode> {
  const codes = new Map<number, ErrorCode>();
  for (const { period, code } of failures)
    for (let day = period.from; day < period.to; day += 1) codes.set(day, code);
  return codes;
}

/**
 * The days from the first to the last one that the lake holds, has lost, or failed to fetch; for a series without such days, those
 * with recorded absences. `repair` fetches what is missing of them.
 */
export function ownDays(heldDays: Spans, absences: Absences, others: readonly Days[]): Days {
  const held =
    heldDays.length === 0 ? [] : [{ from: at(heldDays, 0), to: at(heldDays, heldDays.length - 1) }];
  const own = [...held, ...absences.failed(), ...others];
  const days = own.length > 0 ? own : absences.periods();
  return {
    from: days.reduce((first, { from }) => Math.min(first, from), Infinity),
    to: days.reduce((last, { to }) => Math.max(last, to), -Infinity),
  };
}

/** The part of a range within the own days: a range does not ask for rows that the program makes, and has not made. */
export function cutRange({ from, to }: DayRange, own: Days): DayRange {
  return {
    from: Math.min(Math.max(from ?? own.from, own.from), own.to),
    to: Math.max(Math.min(to ?? own.to, own.to), own.from),
  };
}
