/** Days of tick data that may be cut off: their outcomes are reported after the days around them are held. */
import { grouped } from '../../model/by-name.js';
import { dayOf } from '../../model/calendar.js';
import { longStretches, silentStretches } from '../../lake/catalogue/empty-stretches.js';
import { heldCuts } from '../../lake/catalogue/cut-days.js';
import { seriesFolder } from '../../lake/layout.js';
import type { WrittenOutcome } from '../../model/outcome.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import type { Session } from '../session/session.js';
import type { EndedObject } from './months-from-days.js';

interface DoubtfulDay extends EndedObject {
  readonly outcome: WrittenOutcome;
}

/** When this many days wait, they are judged by the rows held so far. */
const MOST_DAYS = 1000;

type CutDaysSession = Pick<Session, 'paths' | 'manifests' | 'exchange' | 'tell' | 'nowMs'>;

export class CutDays {
  #doubtful: DoubtfulDay[] = [];

  constructor(private readonly session: CutDaysSession) {}

  /** Keeps a day that may be cut, to report it later. False: the day is not cut, and the caller reports it at once. */
  async doubt(day: DoubtfulDay): Promise<boolean> {
    const { plan, object, outcome } = day;
    const { period } = object;
    const { market, dataset } = plan.series;
    if (
      findDataset(this.session.exchange, market, dataset)?.rate === undefined ||
      period.cadence !== 'daily' ||
      object.rest?.open === true
    )
      return false;
    const { exchange } = this.session;
    const silent = silentStretches(outcome, exchange);
    if (silent.length + longStretches({ ...outcome, day: period.from }, exchange).length === 0) return false;
    this.#doubtful.push(day);
    if (this.#doubtful.length >= MOST_DAYS) await this.tell();
    return true;
  }

  /** Reports the outcomes of all kept days. The manifests then have the reasons of absence that the run found: a day may be the last one. */
  async tell(): Promise<void> {
    const groups = grouped(this.#doubtful.splice(0), ({ plan: { series, settings } }) =>
      JSON.stringify([series, settings.format]),
    );
    for (const group of groups.values()) await this.#tellSeries(group);
  }

  async #tellSeries(days: readonly DoubtfulDay[]): Promise<void> {
    const [first] = days;
    if (first === undefined) return;
    const { series, settings } = first.plan;
    const { paths, manifests, exchange, nowMs } = this.session;
    const manifest = await manifests.of(await paths.folder(seriesFolder(exchange.name, series)));
    const held = { held: manifest[settings.format], absences: manifest.absences };
    const spec = findDataset(exchange, series.market, series.dataset);
    const cuts = heldCuts(held, { spec, today: dayOf(nowMs, exchange) });
    for (const { plan, object, outcome } of days) {
      const gaps = cuts
        .filter(({ day }) => day === object.period.from)
        .map(({ fromMs, toMs }) => [instant(fromMs), instant(toMs)] as const);
      const { gaps: silences, ...whole } = outcome;
      // A silence before the first rows of a series, or after its last ones, is none.
      const isWhole = gaps.length === 0 && silences !== undefined && outcome.ids === undefined;
      const cut = gaps.length === 0 ? outcome : { ...outcome, kind: 'partial' as const, gaps };
      await this.session.tell(plan, object, isWhole ? { ...whole, kind: 'ok' } : cut);
    }
  }
}

const instant = (ms: number): string => new Date(ms).toISOString();
