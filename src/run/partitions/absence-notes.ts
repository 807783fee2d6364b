/** Writes the absent and failed periods of a run into the manifests, with their reasons. */
import { isDeepStrictEqual } from 'node:util';
import { monthOf } from '../../model/calendar.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import type { CryptodlError } from '../../model/errors.js';
import { checkedFolder } from '../../files/path-checks.js';
import { seriesFolder } from '../../lake/layout.js';
import { REASON_FACTS, type AbsenceReason } from '../../model/absence-reasons.js';
import type { SourceObject, Format, Period, Series } from '../../model/task.js';
import type { Session } from '../session/session.js';
import { refusedRevision, absentLines, type AbsenceNote, type Stretch } from './absence-lines.js';

interface AbsenceContext extends Pick<Session, 'manifests' | 'nowMs'> {
  readonly paths: { readonly root: string };
  readonly exchange: { readonly name: string };
  readonly options: { readonly verify: string };
}

export interface Found {
  /** The first day with this reason. It may be before the selected periods. */
  readonly since?: number | undefined;
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

  /** Notes an absent period, and the earlier periods with the same reason from the day `since`. */
  note(series: Series, period: Period, reason: AbsenceReason, found: Found = {}): void {
    const { since = period.from, hasAskedRest = false, isRestEmpty, isKept = false } = found;
    const { cadence } = period;
    const own = numberOf(period);
    const first = numberOf({ cadence, from: Math.min(since, period.from) });
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

function numberOf({ cadence, from }: Pick<Period, 'cadence' | 'from'>): number {
  return cadence === 'daily' ? from : monthOf(from);
}
