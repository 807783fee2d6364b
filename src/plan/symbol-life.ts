/** What the archive has of a symbol, in all datasets that record its trading, and whether its market goes on: the evidence for reasons of absence. */
import { monthOf, monthStart } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import type { Cadence, Period, Series } from '../model/task.js';
import { cadencesOf } from '../source/keys.js';
import { isListingFault } from '../source/listing.js';
import type { Listing } from '../source/listing.js';
import type { Source } from '../source/source.js';
import { datasetsOf, findDataset, hasLongBars } from '../source/venue.js';
import { firstPeriod, LONGEST_DELAY_DAYS, periodAt } from './series-listing.js';

/** Other series of a run that show whether the market goes on, before those of the configuration. */
const MOST_PEERS = 3;
/** The last object of a reference symbol is searched from this many days before today. */
const REFERENCE_DAYS = 400;
const MOST_ENTRIES = 1000;

const MOST_STALLED_DAYS = 100;

/** A shorter hole may be one of the archive alone. */
const LEAST_PAUSE_DAYS = 30;

type Days = Pick<Period, 'from' | 'to'>;

interface LifeOptions {
  readonly venue: Source;
  readonly listing: Listing;
  readonly today: number;
  /** The series of the run. */
  readonly series: readonly Series[];
}

/** Asks the listing at most once for each fact. */
export class SymbolLife {
  readonly #options: LifeOptions;
  readonly #peers = new Map<string, string[]>();
  readonly #answers = new Map<string, Promise<readonly Period[]>>();

  constructor(options: LifeOptions) {
    this.#options = options;
    for (const series of options.series) {
      const peers = this.#peers.get(groupOf(series)) ?? [];
      this.#peers.set(groupOf(series), peers);
      if (peers.length <= MOST_PEERS && !peers.includes(series.symbol)) peers.push(series.symbol);
    }
  }

  /** The first day of the symbol in any of these datasets; Infinity without objects, undefined if the listing does not tell. */
  firstDay(series: Series): Promise<number | undefined> {
    return orUndefined(async () => {
      const [own = Infinity, ...others] = await Promise.all(
        this.#recordsOf(series).map((one) => this.#firstOf(one)),
      );
      const first = Math.min(...others);
      return first < Infinity && this.#isCoarse(series) ? first : Math.min(own, first);
    });
  }

  /**
   * The first day of the dataset in any of the symbols that show whether the market goes on, and in this one; undefined if none of the others
   * has it, or if the listing does not tell. Other symbols have contracts of pairs by the name of the pair.
   */
  datasetStart(series: Series): Promise<number | undefined> {
    return orUndefined(async () => {
      const symbols = this.#referencesOf(series).flatMap((symbol) => [symbol, symbol.replace(/_.*/, '')]);
      const others = [...new Set(symbols)].filter((symbol) => symbol !== series.symbol);
      const firsts = await Promise.all(others.map((symbol) => this.#firstOf({ ...series, symbol })));
      const first = Math.min(...firsts);
      return Number.isFinite(first) ? Math.min(first, await this.#firstOf(series)) : undefined;
    });
  }

  /**
   * The day after the last one, from a day on, that any of these datasets has, if the symbol was delisted then: others of its market go on.
   * If publication stalled for all of them then, the first day that others have. Undefined if that is not proven, or not yet.
   */
  end(series: Series, cadence: Cadence, from: number): Promise<number | undefined> {
    return orUndefined(async () => {
      const isCoarse = this.#isCoarse(series);
      const delay = LONGEST_DELAY_DAYS[isCoarse ? 'daily' : cadence];
      const latest = this.#options.today - delay;
      let end = from;
      for (const one of this.#recordsOf(series)) {
        // The symbol is traded: its other datasets need not be asked.
        if (end > latest) return undefined;
        const days = await this.#daysOf(one, from, Infinity);
        end = days.reduce((last, day) => Math.max(last, day + 1), end);
      }
      if (end > latest || !(await this.#goesOn(series, cadence, end + delay - 1, Infinity))) return undefined;
      return this.#resumedFrom(series, cadence, end);
    });
  }

  /**
   * The longest stretches of the days `[from, to)` of which none of these datasets has an object, while others of the market go on: the symbol
   * was listed twice, or suspended. A shorter stretch may be a hole of the archive alone.
   */
  async pauses(series: Series, cadence: Cadence, from: number, to: number): Promise<readonly Days[]> {
    const found = await orUndefined(() =>
      Promise.all(this.#recordsOf(series).map((one) => this.#daysOf(one, from, to))),
    );
    if (found === undefined) return [];
    const days = [...found.flat().sort((a, b) => a - b), to];
    const pauses: Days[] = [];
    let start = from;
    for (const day of days) {
      if (day - start >= LEAST_PAUSE_DAYS && (await this.#goesOn(series, cadence, start, day)))
        pauses.push({ from: start, to: day });
      start = day + 1;
    }
    return pauses;
  }

  /** The first day from this one on that another symbol has; the day itself if the listing has none of the days around it. */
  async #resumedFrom(series: Series, cadence: Cadence, day: number): Promise<number> {
    const [shown, shownCadence] = this.#shownBy(series, cadence);
    const recent = this.#options.today - REFERENCE_DAYS;
    const [start, end] = day >= recent ? [recent, Infinity] : [day, day + MOST_STALLED_DAYS];
    const firsts: number[] = [];
    for (const symbol of this.#referencesOf(series)) {
      const periods = await orUndefined(() => this.#periods({ ...shown, symbol }, shownCadence, start, end));
      for (const { from, to } of periods ?? []) if (to > day) firsts.push(Math.max(day, from));
      if (firsts.includes(day)) return day;
    }
    return firsts.length === 0 ? day : Math.min(...firsts);
  }

  /** The series by whose objects of other symbols their market goes on: a coarse one is shown by daily objects that record trading. */
  #shownBy(series: Series, cadence: Cadence): [Series, Cadence] {
    const trading = this.#isCoarse(series) ? this.#recordsOf(series)[1] : undefined;
    return trading === undefined ? [series, cadence] : [trading, 'daily'];
  }

  /**
   * Whether another symbol has an object of the same dataset and cadence in the days `[from, to)`; for a coarse series, a daily object of a dataset
   * that records trading.
   */
  async #goesOn(series: Series, cadence: Cadence, from: number, to: number): Promise<boolean> {
    const [shown, shownCadence] = this.#shownBy(series, cadence);
    const recent = this.#options.today - REFERENCE_DAYS;
    const start = from >= recent || to === Infinity ? recent : from;
    const end = start === recent ? Infinity : to;
    for (const symbol of this.#referencesOf(series)) {
      const periods = await orUndefined(() => this.#periods({ ...shown, symbol }, shownCadence, start, end));
      if (periods?.some((period) => period.to > from && period.from < to) === true) return true;
    }
    return false;
  }

  /** The series itself, with both of its cadences, and those that record the trading of its symbol. */
  #recordsOf(series: Series): Series[] {
    const { market, symbol } = series;
    const trading = datasetsOf(this.#options.venue, market).flatMap(
      ({ name: dataset, provesTrading: intervals }): Series[] => {
        if (intervals === undefined) return [];
        if (intervals.length === 0) return [{ market, dataset, symbol }];
        return intervals.map((interval) => ({ market, dataset, interval, symbol }));
      },
    );
    return [series, ...trading.filter((one) => groupOf(one) !== groupOf(series))];
  }

  /** Whether the objects of a series do not tell its first and last day: it is published by month only, or has bars of several days. */
  #isCoarse({ market, dataset, interval }: Series): boolean {
    const spec = findDataset(this.#options.venue, market, dataset);
    if (spec === undefined) return true;
    return hasLongBars(spec, interval) || !cadencesOf(spec, interval).includes('daily');
  }

  #referencesOf(series: Series): string[] {
    const { references = [] } = this.#options.venue.markets[series.market] ?? {};
    const peers = (this.#peers.get(groupOf(series)) ?? []).filter((symbol) => symbol !== series.symbol);
    const others = references.filter((symbol) => symbol !== series.symbol && !peers.includes(symbol));
    return [...peers.slice(0, MOST_PEERS), ...others];
  }

  /** A monthly object counts from the start of its month, unless the month has daily objects. */
  async #firstOf(series: Series): Promise<number> {
    const [day = Infinity, month = Infinity] = await Promise.all(
      (['daily', 'monthly'] as const).map(async (cadence) => {
        const [first] = await this.#ask(series, cadence, 'first', async () => {
          const { listing, venue } = this.#options;
          return [await firstPeriod(listing, venue.archive, series, cadence)].filter(
            (one) => one !== undefined,
          );
        });
        return first?.from;
      }),
    );
    return Number.isFinite(day) && month === monthStart(monthOf(day)) ? day : Math.min(day, month);
  }

  async #daysOf(series: Series, from: number, to: number): Promise<number[]> {
    const [start, end] = [monthStart(monthOf(from)), to === Infinity ? to : monthStart(monthOf(to - 1) + 1)];
    const [days, months] = await Promise.all([
      this.#periods(series, 'daily', start, end),
      this.#periods(series, 'monthly', start, end),
    ]);
    // Such an object proves one day of its month.
    if (this.#isCoarse(series))
      return [...days, ...months].filter((one) => one.from >= from && one.to <= to).map((one) => one.from);
    const withDays = new Set(days.map((day) => monthOf(day.from)));
    return [...days, ...months.filter((month) => !withDays.has(monthOf(month.from)))]
      .flatMap((period) => Array.from({ length: period.to - period.from }, (_, index) => period.from + index))
      .filter((day) => day >= from && day < to);
  }

  /** The periods of a series in the days `[from, to)`. */
  #periods(series: Series, cadence: Cadence, from: number, to: number): Promise<readonly Period[]> {
    return this.#ask(series, cadence, `${from} ${to}`, async () => {
      const { listing, venue } = this.#options;
      const periodOf = venue.archive.periodOf(series, cadence);
      const marker = venue.archive.markerBefore(series, periodAt(cadence, from));
      const entries = Math.min(MOST_ENTRIES, 2 * (to - from) + 10);
      const found: Period[] = [];
      for await (const page of listing.objects(
        venue.archive.seriesPrefix(series, cadence),
        marker,
        entries,
      )) {
        const periods = page.flatMap(({ key }) => periodOf(key) ?? []);
        found.push(...periods.filter((period) => period.to > from && period.from < to));
        if (periods.some((period) => period.from >= to)) break;
      }
      return found;
    });
  }

  /** Rejects with `unreachable` if a copy replaces the listing: it lacks newer objects. */
  #ask(
    series: Series,
    cadence: Cadence,
    what: string,
    act: () => Promise<readonly Period[]>,
  ): Promise<readonly Period[]> {
    const { listing, venue } = this.#options;
    const spec = findDataset(venue, series.market, series.dataset);
    if (spec === undefined || !cadencesOf(spec, series.interval).includes(cadence))
      return Promise.resolve([]);
    const prefix = venue.archive.seriesPrefix(series, cadence);
    const known = this.#answers.get(`${prefix} ${what}`);
    if (known !== undefined) return known;
    const answer = act().then((periods) => {
      if (listing.copiedAt?.(prefix) === undefined) return periods;
      throw new CryptodlError('unreachable', `the listing of ${prefix} is a copy`);
    });
    this.#answers.set(`${prefix} ${what}`, answer);
    return answer;
  }
}

function groupOf({ market, dataset, interval = '' }: Series): string {
  return `${market} ${dataset} ${interval}`;
}

async function orUndefined<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (isListingFault(error)) return undefined;
    throw error;
  }
}
