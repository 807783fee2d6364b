/** Writes the absent and failed periods of a run into the manifests, with their reasons: only new facts get a line. */
import { isDeepStrictEqual } from 'node:util';
import { dayPeriod, monthPeriod, periodText } from '../../model/calendar.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import type { CryptodlError, ErrorCode } from '../../model/errors.js';
import type { AbsentLine, RefusedRevision, RestAnswer } from '../../model/manifest-line.js';
import { TOOL_VERSION } from '../../model/version.js';
import { isDue, isRestDue, numberOf, type Absence, type Absences } from '../../lake/absences.js';
import { isSupportedPeriod } from '../../lake/line-fields.js';
import { isHeld, type Manifest } from '../../lake/manifest.js';
import { checkedFolder } from '../../files/path-checks.js';
import { seriesFolder } from '../../lake/layout.js';
import { REASON_FACTS, type AbsenceReason } from '../../model/absence-reasons.js';
import type { SourceObject, Cadence, Format, Period, Series } from '../../model/task.js';
import type { Session } from '../session/session.js';

interface AbsenceContext extends Pick<Session, 'manifests' | 'nowMs'> {
  readonly paths: { readonly root: string };
  readonly exchange: { readonly name: string };
  readonly options: { readonly verify: string };
}

interface AbsenceNote extends RestAnswer {
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
interface Stretch {
  readonly note: AbsenceNote;
  readonly from: number;
  to: number;
}

export interface Found {
  /** The first day with this reason. It may be before the selected periods. */
  readonly sinceDay?: number | undefined;
  readonly hasAskedRest?: boolean;
  /** REST answered, and has no rows of the period. */
  readonly isRestEmpty?: true | undefined;
  /** The lake holds the period, which lacks rows that other series of the symbol have. */
  readonly isKept?: true;
}

/** Collects the absent and failed periods of a run in memory, until `write`. */
export class AbsenceNotes {
  readonly #bySeries = new Map<string, Stretch[]>();

  constructor(private readonly context: AbsenceContext) {}

  /** Notes an absent period, and the earlier periods with the same reason from `sinceDay`. */
  note(series: Series, period: Period, reason: AbsenceReason, found: Found = {}): void {
    const { sinceDay = period.from, hasAskedRest = false, isRestEmpty, isKept = false } = found;
    const { cadence } = period;
    const own = numberOf(period);
    const first = numberOf({ cadence, from: Math.min(sinceDay, period.from) });
    // For coverage, a delisted series ends at its first absent day, so the days between are not noted.
    const step = reason === 'delisted' ? Math.max(1, own - first) : 1;
    for (let at = first; at <= own; at += step) {
      // Only the selected period is requested from REST.
      const isAsked = hasAskedRest && at === own;
      const isTold = ({ note, from, to }: Stretch): boolean =>
        note.cadence === cadence &&
        // A plan of the days of a month may prove less than that of the run.
        (note.reason === reason || (REASON_FACTS[note.reason].isProven && !REASON_FACTS[reason].isProven)) &&
        note.failed === undefined &&
        from <= at &&
        at < to &&
        (note.hasAskedRest || !isAsked);
      const answer = isAsked && isRestEmpty === true ? ({ isEmpty: true } as const) : {};
      if (!this.#stretchesOf(series).some(isTold))
        this.#add(series, at, { cadence, reason, hasAskedRest: isAsked, isKept, ...answer });
    }
  }

  /** Notes a held period that lacks rows, and of which REST gave no further rows. `lacksToo`: the digest of the held object, if REST answered. */
  noteKept(series: Series, period: Period, lacksToo: string | undefined): void {
    const answer = lacksToo === undefined ? {} : { lacksToo };
    const kept = { reason: 'hole', hasAskedRest: true, isKept: true } as const;
    this.#add(series, numberOf(period), { cadence: period.cadence, ...kept, ...answer });
  }

  /** Notes a failed object. */
  noteFailure(
    { series, settings: { format } }: { series: Series; settings: { readonly format: Format } },
    object: SourceObject,
    { code }: CryptodlError,
  ): void {
    // The deadline ended the work on the object, so its state is unknown.
    if (code === 'time-over') return;
    const isVerified = this.context.options.verify !== 'none';
    const refused = isVerified && ERROR_TRAITS[code].lasting ? refusedRevision(format, object) : undefined;
    this.#add(series, numberOf(object.period), {
      cadence: object.period.cadence,
      reason: 'hole',
      failed: code,
      ...(refused === undefined ? {} : { refused }),
      listed: { format, etag: object.etag ?? '' },
      hasAskedRest: false,
      isKept: false,
    });
  }

  /** Adds one period, or extends the last stretch by it. */
  #add(series: Series, from: number, note: AbsenceNote): void {
    const stretches = this.#stretchesOf(series);
    const last = stretches.at(-1);
    if (note.failed === undefined && last?.to === from && isDeepStrictEqual(last.note, note)) last.to += 1;
    else stretches.push({ note, from, to: from + 1 });
  }

  #stretchesOf(series: Series): Stretch[] {
    const folder = seriesFolder(this.context.exchange.name, series);
    const stretches = this.#bySeries.get(folder) ?? [];
    this.#bySeries.set(folder, stretches);
    return stretches;
  }

  /** Writes the notes of the series that the lake holds. No other writer may change their manifests at the same time. */
  async write(): Promise<void> {
    const { paths, manifests } = this.context;
    for (const [name, stretches] of this.#bySeries) {
      const folder = await checkedFolder(paths.root, name);
      const manifest = await manifests.of(folder);
      const lines = stretches.flatMap((stretch) => absentLines(manifest, stretch, this.context.nowMs));
      if (lines.length > 0) await manifests.append(folder, lines);
    }
    this.#bySeries.clear();
  }
}

/** Lines only for new facts: another reason or error, or the same answer after a repetition that was due. */
function absentLines(manifest: Manifest, { note, from, to }: Stretch, nowMs: number): AbsentLine[] {
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
function refusedRevision(format: Format, { etag, sidecarEtag }: SourceObject): RefusedRevision | undefined {
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
