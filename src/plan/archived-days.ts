/** The days of which the archive has objects of a series. */
import type { Exchange } from '../exchange/exchange.js';
import { findDataset, hasLongBars } from '../exchange/exchange-spec.js';
import { cadencesOf } from '../exchange/keys.js';
import type { Listing } from '../exchange/listing.js';
import { memoized } from '../model/by-name.js';
import { eachDay, monthOf, monthStart, periodAt } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { Cadence, Period, Series } from '../model/task.js';
import { firstPeriod } from './series-listing.js';

export interface ArchivedContext {
  readonly exchange: Exchange;
  readonly listing: Listing;
}

const MOST_ENTRIES = 1000;

/** Asks the listing at most once for each fact. All methods reject with its error if it does not answer, or with `unreachable` if it is a copy. */
export class ArchivedDays {
  readonly #answers = memoized<readonly Period[]>();

  constructor(private readonly context: ArchivedContext) {}

  /** Whether the objects of a series do not tell its first and last day: it is published by month only, or has bars of several days. */
  isCoarse({ market, dataset, interval }: Series): boolean {
    const spec = findDataset(this.context.exchange, market, dataset);
    return spec === undefined || hasLongBars(spec, interval) || !cadencesOf(spec, interval).includes('daily');
  }

  /** A monthly object counts from the start of its month, unless the month has daily objects. */
  async firstOf(series: Series): Promise<number> {
    const [day = Infinity, month = Infinity] = await Promise.all(
      (['daily', 'monthly'] as const).map(async (cadence) => {
        const [first] = await this.#ask(series, cadence, 'first', async () => {
          const { listing, exchange } = this.context;
          const found = await firstPeriod(listing, exchange.archive, series, cadence);
          return found === undefined ? [] : [found];
        });
        return first?.from;
      }),
    );
    return Number.isFinite(day) && month === monthStart(monthOf(day)) ? day : Math.min(day, month);
  }

  /** The days `[from, to)` that have an object. */
  async daysOf(series: Series, from: number, to: number): Promise<number[]> {
    const [start, end] = [monthStart(monthOf(from)), to === Infinity ? to : monthStart(monthOf(to - 1) + 1)];
    const [days, months] = await Promise.all([
      this.periods(series, 'daily', start, end),
      this.periods(series, 'monthly', start, end),
    ]);
    // Such an object proves one day of its month.
    if (this.isCoarse(series))
      return [...days, ...months].filter((one) => one.from >= from && one.to <= to).map((one) => one.from);
    const withDays = new Set(days.map((day) => monthOf(day.from)));
    return [...days, ...months.filter((month) => !withDays.has(monthOf(month.from)))]
      .flatMap(eachDay)
      .filter((day) => day >= from && day < to);
  }

  /** The periods of a series in the days `[from, to)`. */
  periods(series: Series, cadence: Cadence, from: number, to: number): Promise<readonly Period[]> {
    return this.#ask(series, cadence, `${from} ${to}`, async () => {
      const { listing, exchange } = this.context;
      const periodOf = exchange.archive.periodOf(series, cadence);
      const marker = exchange.archive.markerBefore(series, periodAt(cadence, from));
      const entries = Math.min(MOST_ENTRIES, 2 * (to - from) + 10);
      const found: Period[] = [];
      const prefix = exchange.archive.seriesPrefix(series, cadence);
      for await (const page of listing.objects(prefix, marker, entries)) {
        const periods = page.flatMap(({ key }) => periodOf(key) ?? []);
        found.push(...periods.filter((period) => period.to > from && period.from < to));
        if (periods.some((period) => period.from >= to)) break;
      }
      return found;
    });
  }

  /** Rejects with `unreachable` if a copy replaces the listing: it lacks newer objects. */
  async #ask(series: Series, cadence: Cadence, what: string, act: () => Promise<readonly Period[]>) {
    const { listing, exchange } = this.context;
    const spec = findDataset(exchange, series.market, series.dataset);
    if (spec === undefined || !cadencesOf(spec, series.interval).includes(cadence)) return [];
    const prefix = exchange.archive.seriesPrefix(series, cadence);
    return this.#answers(`${prefix} ${what}`, async () => {
      const periods = await act();
      if (listing.copiedAtMs?.(prefix) === undefined) return periods;
      throw new CryptodlError('unreachable', `the listing of ${prefix} is a copy`);
    });
  }
}
