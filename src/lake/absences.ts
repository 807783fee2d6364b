/** What is remembered of periods that nobody has: why, and how often that was asked. */
import { DAY_MS, monthOf, parsePeriod, periodText } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { ErrorCode } from '../model/errors.js';
import type { AbsenceReason, ArchiveObject, Cadence, Format, Period } from '../model/task.js';

/** A manifest line: periods of one cadence, one after the other, that are absent for one reason. */
export interface AbsentLine {
  readonly v: 1;
  readonly kind: 'absent';
  readonly cadence: Cadence;
  /** First and last period, included: `2024-01-15` or `2024-01`. */
  readonly first: string;
  readonly last: string;
  readonly reason: AbsenceReason;
  /** It is there, but could not be had: why. `reason` is then `hole`, for readers that do not know this field. */
  readonly failed?: ErrorCode;
  /** Of one period, which may be held in an earlier revision: what was fetched, and is not fetched again. */
  readonly refused?: RefusedRevision;
  /** How often it was asked in vain, and when the last time, ISO. */
  readonly asked: number;
  readonly at: string;
  /** The same of REST, which a run asks only when it is told to; also of held periods that lack rows. */
  readonly rest?: { readonly asked: number; readonly at: string };
  readonly tool: string;
}

/** One state of an object and its sidecar in the listing. */
export interface RefusedRevision {
  readonly format: Format;
  readonly etag: string;
  /** Empty: the listing had no sidecar. */
  readonly sidecarEtag: string;
}

/** A line with a refused revision. */
export interface RefusedLine extends AbsentLine {
  readonly failed: ErrorCode;
  readonly refused: RefusedRevision;
}

export interface Absence {
  readonly reason: AbsenceReason;
  readonly asked: number;
  /** Milliseconds since 1970 of the last time that it was asked. */
  readonly atMs: number;
  /** How often REST was asked in vain, and when the last time. */
  readonly rest?: { readonly asked: number; readonly atMs: number };
}

/** The latest word on each period of a series, in whatever format its data is held. What is held is not absent, whatever is said here. */
export class Absences {
  readonly #daily = new Map<number, Absence>();
  readonly #monthly = new Map<number, Absence>();
  readonly #failedDays = new Map<number, ErrorCode>();
  readonly #failedMonths = new Map<number, ErrorCode>();
  readonly #refused = new Map<string, RefusedLine>();

  add(line: AbsentLine): void {
    const first = parsePeriod(line.cadence, line.first);
    const last = parsePeriod(line.cadence, line.last);
    const atMs = Date.parse(line.at);
    if (first === undefined || last === undefined || Number.isNaN(atMs) || !(line.asked >= 1))
      throw new CryptodlError('manifest-damaged', `"${line.first}" … "${line.last}" are no periods`);
    const { reason, asked, rest, failed, refused } = line;
    if (failed !== undefined && refused !== undefined)
      this.#refused.set(`${refused.format} ${line.cadence} ${line.first}`, { ...line, failed, refused });
    const ofRest = rest === undefined ? {} : { rest: { asked: rest.asked, atMs: Date.parse(rest.at) } };
    const absence: Absence = { reason, asked, atMs, ...ofRest };
    const [absences, failures, from, end] =
      line.cadence === 'daily'
        ? [this.#daily, this.#failedDays, first.from, last.to]
        : [this.#monthly, this.#failedMonths, monthOf(first.from), monthOf(last.from) + 1];
    for (let at = from; at < end; at += 1) {
      absences.delete(at);
      failures.delete(at);
      if (failed === undefined) absences.set(at, absence);
      else failures.set(at, failed);
    }
  }

  /** Why a period that is there could not be had; undefined for what did not fail the last time. */
  failureOf({ cadence, from }: Period): ErrorCode | undefined {
    return cadence === 'daily' ? this.#failedDays.get(from) : this.#failedMonths.get(monthOf(from));
  }

  /** The line of an earlier run that fetched this revision of an object, with this sidecar, and could not take it. */
  refusalOf(format: Format, { period, etag, sidecarEtag }: ArchiveObject): RefusedLine | undefined {
    const line = this.#refused.get(`${format} ${period.cadence} ${periodText(period)}`);
    return line?.refused.etag === etag && line?.refused.sidecarEtag === sidecarEtag ? line : undefined;
  }

  of({ cadence, from }: Period): Absence | undefined {
    return cadence === 'daily' ? this.#daily.get(from) : this.#monthly.get(monthOf(from));
  }

  /** Of single days, by day. */
  days(): ReadonlyMap<number, Absence> {
    return this.#daily;
  }

  /** Of whole months, by month (see `monthOf`). */
  months(): ReadonlyMap<number, Absence> {
    return this.#monthly;
  }
}

/** What may come at any hour is asked for soon again; what nobody had for long, seldom. */
const SOONEST_MS: Readonly<Record<AbsenceReason, number>> = {
  'not-published-yet': 600_000,
  hole: 6 * 3_600_000,
  'not-listed-yet': DAY_MS,
  halt: DAY_MS,
  delisted: DAY_MS,
  'dataset-ended': DAY_MS,
  'before-history': 7 * DAY_MS,
};
const LATEST_MS = 30 * DAY_MS;

/** Whether it is worth asking again: twice as late each time, a month at most. */
export function isDue({ reason, asked, atMs }: Omit<Absence, 'rest'>, nowMs: number): boolean {
  const waitMs = Math.min(SOONEST_MS[reason] * 2 ** Math.min(asked - 1, 30), LATEST_MS);
  // A clock that was set back must not keep anything from being asked.
  return nowMs < atMs || nowMs >= atMs + waitMs;
}

/** Whether it is worth asking REST: at once where that was not done yet. */
export function isRestDue({ reason, rest }: Absence, nowMs: number): boolean {
  return rest === undefined || isDue({ reason, ...rest }, nowMs);
}
