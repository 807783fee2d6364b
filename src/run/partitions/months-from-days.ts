/** Replaces monthly objects that are broken or short with their daily objects, in the same run. */
import { daysWithin, monthOf } from '../../model/calendar.js';
import { ERROR_TRAITS } from '../../model/error-codes.js';
import { seriesFolder } from '../../lake/layout.js';
import type { Outcome } from '../../model/outcome.js';
import { makePlan, type Plan } from '../../plan/plan.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import { seriesName } from '../../model/task.js';
import { REASON_FACTS, type AbsenceReason } from '../../model/absence-reasons.js';
import type { SourceObject, PartitionPlan, Period, PlanTotals } from '../../model/task.js';
import { countText } from '../../model/units.js';
import { hasDays } from '../../exchange/keys.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import { repeatLine } from '../../lake/undone-commits.js';
import type { RunSession } from '../session/session.js';

/** An object and its outcome, which is not reported yet. */
export interface EndedObject {
  readonly plan: PartitionPlan;
  readonly object: SourceObject;
  readonly outcome: Outcome;
}

/** A monthly object that waits, because its daily objects may have more rows. */
interface DoubtfulMonth extends EndedObject {
  /** The days without rows in a written object. */
  readonly emptyDays: readonly number[];
  /** Whether the lake holds days before and after the month: then the month is not an end of the series. */
  goesOn: { readonly before: boolean; readonly after: boolean };
  /** The plan of the days has begun. No day has failed so far, and no day that must have rows is absent. */
  isWhole: boolean;
}

const NOWHERE = { before: false, after: false };

export class MonthsFromDays {
  /** By `idOf` their plan. */
  readonly #doubtful = new Map<string, DoubtfulMonth>();

  constructor(private readonly session: RunSession) {}

  /** Keeps a month for `takeDays`. False: its days cannot help, and the caller reports it at once. */
  doubt(month: EndedObject): boolean {
    const { plan, object, outcome } = month;
    const { exchange } = this.session;
    const emptyDays = 'gaps' in outcome ? daysWithin(object.period, outcome.gaps, exchange) : [];
    const isBroken = outcome.kind === 'failed' && ERROR_TRAITS[outcome.error.code].wrongBytes;
    const { market, dataset } = plan.series;
    if (!isBroken && emptyDays.length === 0) return false;
    if (!hasDays(findDataset(exchange, market, dataset), plan, object)) return false;
    this.#doubtful.set(idOf(plan), { ...month, emptyDays, goesOn: NOWHERE, isWhole: false });
    return true;
  }

  /** Runs the days of the kept months, and adds them to the totals of the run. */
  async takeDays(
    totals: PlanTotals,
    run: (plans: AsyncIterable<PartitionPlan>) => Promise<void>,
  ): Promise<void> {
    const plan = await this.#plan();
    if (plan === undefined) return;
    for (const name of ['partitions', 'fetch', 'skip', 'absent', 'fetchBytes'] as const)
      totals[name] += plan.totals[name];
    try {
      await run(this.#begin(plan.spool.plans()));
    } finally {
      await plan.spool.close();
    }
  }

  /** The plan of the days of the kept months. Undefined if there is none, and after the deadline. */
  async #plan(): Promise<Plan | undefined> {
    if (this.session.deadline.refusal() !== undefined) return undefined;
    const requests: SelectedSeries[] = [];
    for (const month of this.#doubtful.values()) {
      const { plan, object, outcome, emptyDays } = month;
      const { from, to } = object.period;
      const { held } = await this.#heldOf(plan);
      const isHeld = held.ofMonth(monthOf(from)) !== undefined;
      // The held file is better than a broken revision of it. For a short month, the plan of its days compares the rows.
      if (outcome.kind === 'failed' && isHeld && plan.rebuild !== 'damaged') continue;
      month.goesOn = { before: (held.first() ?? from) < from, after: (held.end() ?? to) > to };
      requests.push({
        series: plan.series,
        settings: plan.settings,
        cadences: ['daily'],
        ranges: [{ from, to }],
        exact: true,
        rewrites: 'when-days-have-more',
        ...(outcome.kind === 'failed' ? {} : { emptyDays }),
      });
    }
    if (requests.length === 0) return undefined;
    return makePlan(this.session, { hasListing: true, requests });
  }

  /** From its plan on, a month counts as whole until a day fails, or a day that must have rows is absent. */
  async *#begin(plans: AsyncIterable<PartitionPlan>): AsyncGenerator<PartitionPlan> {
    for await (const plan of plans) {
      this.#setWhole(plan, true);
      yield plan;
    }
  }

  #setWhole(plan: PartitionPlan, isWhole: boolean): void {
    const month = this.#doubtful.get(idOf(plan));
    if (month !== undefined) month.isWhole = isWhole;
  }

  failed(plan: PartitionPlan): void {
    this.#setWhole(plan, false);
  }

  absent(plan: PartitionPlan, { from }: Period, reason: AbsenceReason): void {
    const month = this.#doubtful.get(idOf(plan));
    if (month === undefined || month.emptyDays.includes(from)) return;
    const { before: start, after: end } = month.goesOn;
    const { at, isProven } = REASON_FACTS[reason];
    if (!isProven || { start, end, any: true }[at]) month.isWhole = false;
  }

  /** The kept months, with the outcomes to report. */
  async *ends(): AsyncGenerator<EndedObject> {
    const doubtful = [...this.#doubtful.values()];
    this.#doubtful.clear();
    // A stopped run does not complete a replacement: the next run requests the days again.
    const isComplete = !this.session.stop.signal.aborted;
    const refusal = this.session.deadline.refusal();
    for (const month of doubtful) {
      const isFailed = month.outcome.kind === 'failed';
      if (isComplete && month.isWhole) {
        yield { ...month, outcome: { kind: 'skipped' } };
        this.#warnOfTaken(month);
      } else if (isComplete && refusal !== undefined && !isFailed)
        yield { ...month, outcome: { kind: 'failed', error: refusal } };
      else {
        if (isComplete && !isFailed) await this.#settle(month);
        yield month;
      }
    }
  }

  #warnOfTaken({ plan, object, outcome, emptyDays }: DoubtfulMonth): void {
    const why =
      outcome.kind === 'failed'
        ? `${object.key}: ${outcome.error.message}`
        : `its monthly object has no rows of ${countText(emptyDays.length, 'day')}`;
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
const idOf = ({ series, settings, label }: PartitionPlan): string =>
  JSON.stringify([series, settings.format, label.slice(0, 'YYYY-MM'.length)]);
