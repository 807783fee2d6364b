/** Absent periods of a series, as recorded in its manifest: the reason, the number of requests, and when to request them again. */
import { dayPeriod, monthOf, monthPeriod, parsePeriod, periodText } from '../model/calendar.js';
import { HOUR_MS, DAY_MS } from '../model/units.js';
import { ERROR_TRAITS } from '../model/error-codes.js';
import { CryptodlError, type ErrorCode } from '../model/errors.js';
import { LATE_MS, REASON_FACTS, type AbsenceReason } from '../model/absence-reasons.js';
import type { AbsentLine, ObjectLine, RestAnswer, RefusedRevision } from '../model/manifest-line.js';
import type { SourceObject, Cadence, Format, Period } from '../model/task.js';

export interface RefusedLine extends AbsentLine {
  readonly failed: ErrorCode;
  readonly refused: RefusedRevision;
}

export interface Absence {
  readonly reason: AbsenceReason;
  readonly asked: number;
  /** The last request, in epoch milliseconds. */
  readonly atMs: number;
  /** The day after the last period of its line. */
  readonly to: number;
  /** Requests to REST without result. */
  readonly rest?: { readonly asked: number; readonly atMs: number } & RestAnswer;
}

interface Failure {
  readonly code: ErrorCode;
  readonly atMs: number;
}

/**
 * The latest record of each period of a series, for all formats: what a run finds out replaces what earlier runs recorded, in either cadence. Callers
 * check held periods first: those are not absent.
 */
export class Absences {
  readonly #absent = { daily: new Map<number, Absence>(), monthly: new Map<number, Absence>() };
  readonly #failed = { daily: new Map<number, Failure>(), monthly: new Map<number, Failure>() };
  readonly #refused = new Map<string, RefusedLine>();
  #hasEnds = false;

  /** Adds a line. `isHeld`: whether an object has a period: then the line is about the rows of the object. */
  add(line: AbsentLine, isHeld: (period: Period) => boolean = () => false): void {
    const first = parsePeriod(line.cadence, line.first);
    const last = parsePeriod(line.cadence, line.last);
    const atMs = Date.parse(line.at);
    if (first === undefined || last === undefined || Number.isNaN(atMs) || !(line.asked >= 1))
      throw new CryptodlError(
        'manifest-damaged',
        `"${line.first}" … "${line.last}" are not periods, or "asked" or "at" is wrong`,
        { hint: 'cryptodl verify --fix' },
      );
    const { reason, asked, rest, failed, refused } = line;
    if (failed !== undefined && refused !== undefined)
      this.#refused.set(`${refused.format} ${line.cadence} ${line.first}`, { ...line, failed, refused });
    // The held days have more rows than their month. What is known of its other days stays.
    if (failed === 'month-incomplete') return;
    const ofRest = rest === undefined ? {} : { rest: { ...rest, atMs: Date.parse(rest.at) } };
    const absence: Absence = { reason, asked, atMs, to: last.to, ...ofRest };
    const absences = this.#absent[line.cadence];
    const failures = this.#failed[line.cadence];
    for (let at = numberOf(first); at <= numberOf(last); at += 1) {
      absences.delete(at);
      failures.delete(at);
      if (failed === undefined) absences.set(at, absence);
      else failures.set(at, { code: failed, atMs });
    }
    if (failed !== undefined) return;
    this.#removeFailures({ from: first.from, to: last.to }, atMs);
    // A period that is not due yet tells nothing about the end of its series.
    const isDueByThen = atMs >= first.to * DAY_MS + LATE_MS[line.cadence];
    if (isEnd(reason)) this.#hasEnds = true;
    else if (this.#hasEnds && isDueByThen && REASON_FACTS[reason].at !== 'start' && !isHeld(last))
      this.#removeEnds(last.to, atMs);
  }

  /** Adds a line of an object: a request for its period was answered. `isNew`: its days were not held before, so they were holes then, and are none now. */
  addObject({ cadence, period }: Pick<ObjectLine, 'cadence' | 'period'>, isNew: boolean): void {
    const holes = isNew ? this.#absent.daily : new Map<number, Absence>();
    if (this.#failed.daily.size + this.#failed.monthly.size + holes.size === 0) return;
    const days = parsePeriod(cadence, period);
    if (days === undefined) return;
    this.#removeFailures(days, Infinity);
    for (let day = days.from; day < days.to; day += 1)
      if (holes.get(day)?.reason === 'hole') holes.delete(day);
  }

  /** Removes the failures of earlier runs about these days: a day may have been requested as a part of a month before. */
  #removeFailures({ from, to }: Pick<Period, 'from' | 'to'>, beforeMs: number): void {
    const { daily, monthly } = this.#failed;
    const remove = (failures: Map<number, Failure>, number: number): void => {
      if ((failures.get(number)?.atMs ?? Infinity) < beforeMs) failures.delete(number);
    };
    if (daily.size > 0) for (let day = from; day < to; day += 1) remove(daily, day);
    if (monthly.size > 0)
      for (let month = monthOf(from); month <= monthOf(to - 1); month += 1) remove(monthly, month);
  }

  /** Removes the ends before a day that earlier runs recorded: a later run found that the series goes on, or may go on. */
  #removeEnds(day: number, beforeMs: number): void {
    for (const period of this.periods()) {
      const absence = this.of(period);
      if (absence !== undefined && period.from < day && isEnd(absence.reason) && absence.atMs < beforeMs)
        this.#absent[period.cadence].delete(numberOf(period));
    }
  }

  /** The error code of the last request of these days, also of one for the month of a day; undefined if it did not fail. */
  failureOf({ cadence, from }: Period): ErrorCode | undefined {
    const { daily, monthly } = this.#failed;
    const ofDay = cadence === 'daily' ? daily.get(from) : undefined;
    return (ofDay ?? monthly.get(monthOf(from)))?.code;
  }

  /** The error code of the last request of a later revision of a held object. A revision that cannot be read has none: its rows cannot be had. */
  failureOfRevision(held: Period): ErrorCode | undefined {
    const code = this.#failed[held.cadence].get(numberOf(held))?.code;
    // The line may be of a later version, with codes that this version does not know.
    if (code === undefined || !Object.hasOwn(ERROR_TRAITS, code)) return code;
    const { lasting, retryable } = ERROR_TRAITS[code];
    return lasting && !retryable ? undefined : code;
  }

  periods(): Period[] {
    return periodsOf(this.#absent);
  }

  failed(): Period[] {
    return periodsOf(this.#failed);
  }

  /** The line of an earlier run that fetched and rejected this revision of an object with this sidecar. */
  refusalOf(format: Format, { period, etag, sidecarEtag }: SourceObject): RefusedLine | undefined {
    const line = this.#refused.get(`${format} ${period.cadence} ${periodText(period)}`);
    return line?.refused.etag === etag && line?.refused.sidecarEtag === sidecarEtag ? line : undefined;
  }

  of(period: Period): Absence | undefined {
    return this.#absent[period.cadence].get(numberOf(period));
  }

  /** The absence of a day, or of its month. */
  ofDay(day: number): Absence | undefined {
    return this.#absent.daily.get(day) ?? this.#absent.monthly.get(monthOf(day));
  }

  /** Absences of daily objects, by day. */
  days(): ReadonlyMap<number, Absence> {
    return this.#absent.daily;
  }

  /** Absences of monthly objects, by month (see `monthOf`). */
  months(): ReadonlyMap<number, Absence> {
    return this.#absent.monthly;
  }
}

/** Whether a reason is written only for a series that has ended. */
export function isEnd(reason: AbsenceReason): boolean {
  const { at, isProven } = REASON_FACTS[reason];
  return at === 'end' && isProven;
}

/** The day, or the number of the month (see `monthOf`). */
export const numberOf = ({ cadence, from }: Pick<Period, 'cadence' | 'from'>): number =>
  cadence === 'daily' ? from : monthOf(from);

function periodsOf({ daily, monthly }: Readonly<Record<Cadence, ReadonlyMap<number, unknown>>>): Period[] {
  return [...[...daily.keys()].map(dayPeriod), ...[...monthly.keys()].map(monthPeriod)];
}

/** The age of a period divided by this number is the time between two of its requests. */
const AGES_PER_WAIT = 8;
const MOST_WAIT_DAYS = 30;

/** The days between two requests of a period of this age in days: none at first, 30 at last, without end. */
export const waitOfAge = (days: number): number =>
  Math.max(0, Math.min(Math.floor(days / AGES_PER_WAIT), MOST_WAIT_DAYS));

/** A daily run begins less than a day after the end of the one before. Milliseconds. */
const LONGEST_RUN_MS = 6 * HOUR_MS;

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
