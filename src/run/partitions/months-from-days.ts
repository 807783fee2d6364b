/** Replaces monthly objects that are broken or short with their daily objects, in the same run. */
import { daysWithin, monthOf } from '../../model/calendar.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import type { CryptodlError } from '../../model/errors.js';
import { seriesFolder } from '../../lake/layout.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import { makePlan } from '../../plan/plan.js';
import type { Plan } from '../../plan/plan.js';
import type { SeriesRequest } from '../../plan/series-request.js';
import { seriesName } from '../../model/task.js';
import { REASON_FACTS } from '../../model/absence-reasons.js';
import type { AbsenceReason } from '../../model/absence-reasons.js';
import type { ArchiveObject, PartitionPlan, Period } from '../../model/task.js';
import { countText } from '../../model/units.js';
import { hasDays } from '../../exchange/keys.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import { repeatLine } from '../../lake/undone-commits.js';
import type { RunSession } from '../session/session.js';

/** A monthly object whose outcome is not reported yet, because its daily objects may have more rows. */
export interface DoubtfulMonth {
  readonly plan: PartitionPlan;
  readonly object: ArchiveObject;
  /** The error of a failed object; undefined: the object is written. */
  readonly error?: CryptodlError;
  /** The stretches without rows in a written object. */
  readonly gaps?: ObjectLine['gaps'];
  readonly tell: () => Promise<void>;
}

interface Attempt extends DoubtfulMonth {
  readonly emptyDays: readonly number[];
  /** Whether the lake holds days before and after the month: then the month is not an end of the series. */
  readonly goesOn: { readonly before: boolean; readonly after: boolean };
  /** The plan of the days has begun. No day has failed so far, and no day that must have rows is absent. */
  isWhole: boolean;
}

type Refused = (plan: PartitionPlan, object: ArchiveObject, error: CryptodlError) => Promise<void>;

export class MonthsFromDays {
  #doubtful: DoubtfulMonth[] = [];
  readonly #attempts = new Map<string, Attempt>();

  /** `onRefused`: called for short months whose days the deadline left out. */
  constructor(
    private readonly session: RunSession,
    private readonly onRefused: Refused,
  ) {}

  /** Keeps a month for `plan`. False: its days cannot help, and the caller reports it at once. */
  doubt(month: DoubtfulMonth): boolean {
    const { plan, object, error, gaps } = month;
    const mayHelp =
      error === undefined
        ? daysWithin(object.period, gaps, this.session.exchange).length > 0
        : ERROR_TRAITS[error.code].wrongBytes;
    const { market, dataset } = plan.series;
    if (!mayHelp || !hasDays(findDataset(this.session.exchange, market, dataset), plan, object)) return false;
    this.#doubtful.push(month);
    return true;
  }

  /** The plan of the days of the kept months. Undefined if there is none, and after the deadline. */
  async plan(): Promise<Plan | undefined> {
    if (this.session.deadline.refusal() !== undefined) return undefined;
    const requests: SeriesRequest[] = [];
    for (const month of this.#doubtful) {
      const attempt = await this.#attemptOf(month);
      if (attempt === undefined) continue;
      this.#attempts.set(idOf(month.plan), attempt);
      const { plan, object, emptyDays } = attempt;
      const { from, to } = object.period;
      requests.push({
        series: plan.series,
        settings: plan.settings,
        cadences: ['daily'],
        ranges: [{ from, to }],
        exact: true,
        rewrites: 'when-days-have-more',
        ...(month.error === undefined ? { emptyDays } : {}),
      });
    }
    if (requests.length === 0) return undefined;
    return makePlan(this.session, { hasListing: true, requests });
  }

  /** Yields the same plans. From its plan on, a month counts as whole until a day fails, or a day that must have rows is absent. */
  async *begin(plans: AsyncIterable<PartitionPlan>): AsyncGenerator<PartitionPlan> {
    for await (const plan of plans) {
      const attempt = this.#attempts.get(idOf(plan));
      if (attempt !== undefined) attempt.isWhole = true;
      yield plan;
    }
  }

  failed(plan: PartitionPlan): void {
    const attempt = this.#attempts.get(idOf(plan));
    if (attempt !== undefined) attempt.isWhole = false;
  }

  absent(plan: PartitionPlan, { from }: Period, reason: AbsenceReason): void {
    const attempt = this.#attempts.get(idOf(plan));
    if (attempt === undefined || attempt.emptyDays.includes(from)) return;
    const { at, isProven } = REASON_FACTS[reason];
    const goesOn = { start: attempt.goesOn.before, end: attempt.goesOn.after, any: true }[at];
    if (goesOn || !isProven) attempt.isWhole = false;
  }

  async tell(): Promise<void> {
    const doubtful = this.#doubtful;
    this.#doubtful = [];
    // A stopped run does not complete a replacement: the next run requests the days again.
    const isComplete = !this.session.stop.signal.aborted;
    const refusal = this.session.deadline.refusal();
    for (const month of doubtful) {
      const attempt = this.#attempts.get(idOf(month.plan));
      if (isComplete && attempt?.isWhole === true) await this.#tellTaken(attempt);
      else if (isComplete && refusal !== undefined && month.error === undefined)
        await this.onRefused(month.plan, month.object, refusal);
      else {
        if (isComplete && month.error === undefined) await this.#settle(month);
        await month.tell();
      }
    }
    this.#attempts.clear();
  }

  /** Undefined if only a new revision of a held month is broken: the held file is better. For a short month, the plan of its days compares the rows. */
  async #attemptOf(month: DoubtfulMonth): Promise<Attempt | undefined> {
    const { exchange } = this.session;
    const { plan, object, error, gaps } = month;
    const { period } = object;
    const { held } = await this.#heldOf(plan);
    const isHeld = held.ofMonth(monthOf(period.from)) !== undefined;
    const empty = error === undefined ? daysWithin(period, gaps, exchange) : [];
    if (error !== undefined && isHeld && plan.rebuild !== 'damaged') return undefined;
    const before = (held.first() ?? period.from) < period.from;
    const after = (held.end() ?? period.to) > period.to;
    return { ...month, emptyDays: empty, goesOn: { before, after }, isWhole: false };
  }

  async #tellTaken({ plan, object, error, emptyDays }: Attempt): Promise<void> {
    const why =
      error === undefined
        ? `its monthly object has no rows of ${countText(emptyDays.length, 'day')}`
        : `${object.key}: ${error.message}`;
    await this.session.tell(plan, object, { kind: 'skipped' });
    this.session.observer.warn(
      `${seriesName(plan.series)} ${plan.label} is taken from its daily objects: ${why}`,
    );
  }

  /** Removes `daysPending` from the line of a short month, so that later runs do not request its days again. Rejects with `locked` if the lock is lost. */
  async #settle({ plan, object }: DoubtfulMonth): Promise<void> {
    const { lock, manifests } = this.session;
    await lock?.confirm();
    const { folder, held } = await this.#heldOf(plan);
    const line = held.ofMonth(monthOf(object.period.from));
    if (line?.daysPending !== true) return;
    const { daysPending: _, ...settled } = repeatLine(held, line);
    await manifests.append(folder, [settled]);
  }

  async #heldOf({ series, settings }: PartitionPlan) {
    const { paths, manifests, exchange } = this.session;
    const folder = await paths.folder(seriesFolder(exchange.name, series));
    return { folder, held: (await manifests.of(folder))[settings.format] };
  }
}

/** Identifies the series, format and month of a plan. The label of a day file has the day too. */
function idOf({ series, settings, label }: PartitionPlan): string {
  return JSON.stringify([series, settings.format, label.slice(0, 'YYYY-MM'.length)]);
}
