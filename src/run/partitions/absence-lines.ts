/** The manifest lines of the absent and failed periods of a run: only new facts get one. */
import type { Absence, Absences } from '../../lake/absences.js';
import type { AbsentLine, RefusedRevision, RestAnswer } from '../../model/manifest-line.js';
import { isHeld, type Manifest } from '../../lake/manifest.js';
import { REASON_FACTS, type AbsenceReason } from '../../model/absence-reasons.js';
import type { SourceObject, Format, Period, Cadence } from '../../model/task.js';
import { TOOL_VERSION } from '../../model/version.js';
import { isDeepStrictEqual } from 'node:util';
import { dayPeriod, monthPeriod, periodText } from '../../model/calendar.js';
import type { ErrorCode } from '../../model/errors.js';
import { isDue, isRestDue } from '../../lake/absence-waits.js';
import { isSupportedPeriod } from '../../lake/line-fields.js';

export interface AbsenceNote extends RestAnswer {
  readonly cadence: Cadence;
  readonly reason: AbsenceReason;
  readonly failed?: ErrorCode;
  readonly refused?: RefusedRevision;
  /** The revision that failed; an empty ETag if the archive did not list one. */
  readonly listed?: { readonly format: Format; readonly etag: string };
  readonly hasAskedRest: boolean;
  /** The lake holds the period with missing rows. */
  readonly isKept: boolean;
}

/** Consecutive periods with one note; of failures, one period. `from` and `to` are day numbers, or month numbers (see `monthOf`). */
export interface Stretch {
  readonly note: AbsenceNote;
  readonly from: number;
  to: number;
}

/** Lines only for new facts: another reason or error, or the same answer after a repetition that was due. */
export function absentLines(manifest: Manifest, { note, from, to }: Stretch, nowMs: number): AbsentLine[] {
  const { cadence, reason, failed, refused, isKept } = note;
  const at = new Date(nowMs).toISOString();
  const lines: { line: AbsentLine; end: number }[] = [];
  for (let number = from; number < to; number += 1) {
    const period = cadence === 'daily' ? dayPeriod(number) : monthPeriod(number);
    const before = manifest.absences.of(period);
    const isNews =
      failed === undefined
        ? manifest.absences.failureOf(period) !== undefined || isAbsenceNews(before, note, nowMs)
        : isFailureNews(manifest.absences, period, note);
    if (!isNews) continue;
    // A symbol may begin, end or pause within a held month.
    const { isProven } = REASON_FACTS[reason];
    const contradictsLake =
      failed === undefined
        ? !isProven && isKept !== isHeld(manifest, period)
        : isOfHeld(manifest, period, note);
    if (contradictsLake) continue;
    const text = periodText(period);
    // Readers refuse other periods.
    if (!isSupportedPeriod(text)) continue;
    const asked = before?.reason === reason ? before.asked + 1 : 1;
    const rest = restOf(before, note, at);
    const facts = {
      v: 1,
      kind: 'absent',
      cadence,
      reason,
      ...(failed !== undefined && { failed }),
      ...(refused !== undefined && { refused }),
      asked,
      at,
      ...rest,
      tool: TOOL_VERSION,
    } as const;
    const last = lines.at(-1);
    const isSame = last?.line.asked === asked && isDeepStrictEqual(last.line.rest, facts.rest);
    if (last?.end === number && isSame)
      lines[lines.length - 1] = { line: { ...last.line, last: text }, end: number + 1 };
    else lines.push({ line: { ...facts, first: text, last: text }, end: number + 1 });
  }
  return lines.map(({ line }) => line);
}

/** Undefined if the object has no listed ETag, or if the plan did not read the sidecars of the listing for it. */
export function refusedRevision(
  format: Format,
  { etag, sidecarEtag }: SourceObject,
): RefusedRevision | undefined {
  if (etag === undefined || etag === '' || sidecarEtag === undefined) return undefined;
  return { format, etag, sidecarEtag };
}

/** Whether a failure is about rows that the lake holds, and not about a later revision of them. */
function isOfHeld(manifest: Manifest, period: Period, { listed, refused }: AbsenceNote): boolean {
  const held = listed && manifest[listed.format].of(period);
  if (held === undefined) return refused === undefined && isHeld(manifest, period);
  return listed?.etag === '' || held.etag === undefined || held.etag === listed?.etag;
}

function isFailureNews(absences: Absences, period: Period, { failed, refused }: AbsenceNote): boolean {
  if (refused === undefined) return absences.failureOf(period) !== failed;
  const { format, ...revision } = refused;
  const before = absences.refusalOf(format, { key: '', period, ...revision });
  return before === undefined || before.failed !== failed || before.tool !== TOOL_VERSION;
}

function isAbsenceNews(
  before: Absence | undefined,
  { reason, hasAskedRest, isEmpty, lacksToo }: AbsenceNote,
  nowMs: number,
): boolean {
  if (before?.reason !== reason || isDue(before, nowMs)) return true;
  const isProof = (isEmpty ?? before.rest?.isEmpty) !== before.rest?.isEmpty;
  const isOther = lacksToo !== undefined && lacksToo !== before.rest?.lacksToo;
  return hasAskedRest && (isProof || isOther || isRestDue(before, nowMs));
}

/** An earlier answer of REST stays if only the archive was requested now. */
function restOf(
  before: Absence | undefined,
  { reason, hasAskedRest, isEmpty, lacksToo }: AbsenceNote,
  at: string,
): Pick<AbsentLine, 'rest'> {
  // A new reason with evidence of the archive is not one of REST.
  const isOld = before?.reason !== reason && REASON_FACTS[reason].isProven;
  const { asked = 0, atMs, ...known } = (isOld ? undefined : before?.rest) ?? {};
  const answer = {
    ...known,
    ...(isEmpty === undefined ? {} : { isEmpty }),
    ...(lacksToo === undefined ? {} : { lacksToo }),
  };
  if (hasAskedRest) return { rest: { asked: asked + 1, at, ...answer } };
  return atMs === undefined ? {} : { rest: { asked, at: new Date(atMs).toISOString(), ...answer } };
}
