/** When a symbol began, ended or paused, by its other datasets and by other symbols of its market: the evidence for reasons of absence. */
import { grouped, memoized } from '../model/by-name.js';
import { monthOf, monthStart, periodAt } from '../model/calendar.js';
import type { CryptodlError } from '../model/errors.js';
import { layerName, seriesName, type Cadence, type Period, type Series } from '../model/task.js';
import type { DayRange } from '../lake/catalogue/spans.js';
import { isListingFault } from '../exchange/listing.js';
import { datasetsOf, findDataset, hasLongBars } from '../exchange/exchange-spec.js';
import { ArchivedDays, type ArchivedContext } from './archived-days.js';
import { RestEvidence, type RestRun } from './rest-evidence.js';
import { LONGEST_DELAY_DAYS, type Probe } from './series-listing.js';

/** Other series of a run that show whether the market goes on, before those of the configuration. */
const MOST_PEERS = 3;
/** The last object of a reference symbol is searched from this many days before today. */
const REFERENCE_DAYS = 400;
const MOST_STALLED_DAYS = 100;

/** A shorter hole may be one of the archive alone. */
const LEAST_PAUSE_DAYS = 30;

/** Series begin or end together if no more days are between them: a month, and half of one that has not been published. */
const NEAR_DAYS = 45;

/** Series by whose objects of other symbols the market of a symbol goes on, with their cadence. */
type Shown = readonly (readonly [Series, Cadence])[];

interface LifeOptions extends ArchivedContext, RestRun {
  readonly today: number;
  /** Whether the archive has a sidecar, also if the listing lacks it. */
  readonly probe: Probe;
  /** The series of a market of which the lake has a manifest. */
  readonly knownSeries: (market: string) => AsyncIterable<Series>;
}

/** All methods reject like those of `ArchivedDays`. */
export class SymbolLife {
  readonly #peers = new Map<string, string[]>();
  readonly #known = memoized<ReadonlyMap<string, Series[]>>();
  /** What is known of a series: a plan asks for each of its periods. */
  readonly #facts = memoized<unknown>();
  readonly #days: ArchivedDays;
  readonly rest: RestEvidence;

  constructor(private readonly context: LifeOptions) {
    this.#days = new ArchivedDays(context);
    this.rest = new RestEvidence(context);
    for (const { series } of context.requests) {
      const peers = this.#peers.get(layerName(series)) ?? [];
      this.#peers.set(layerName(series), peers);
      if (peers.length <= MOST_PEERS && !peers.includes(series.symbol)) peers.push(series.symbol);
    }
  }

  /**
   * The first day of the symbol in any of its datasets; undefined if no other series begins with this one:
   * one series alone may begin late. If publication stalled for all of its market then, the day after the last one before that others have.
   */
  firstDay(series: Series): Promise<number | undefined> {
    return this.#once(series, 'first day', async () => {
      const others = await this.#othersOf(series);
      const records = others.filter((one) => !this.#days.isCoarse(one));
      const coarse = others.filter((one) => this.#days.isCoarse(one));
      const latest = Math.min(...(await Promise.all(coarse.map((one) => this.#tradedBy(one)))));
      const [own = Infinity, ...firsts] = await Promise.all(
        [series, ...records].map((one) => this.#days.firstOf(one)),
      );
      const other = Math.min(...firsts);
      if (other === Infinity || other > own + NEAR_DAYS) return undefined;
      const first = Math.min(this.#days.isCoarse(series) ? other : Math.min(own, other), latest);
      const beginning = records.filter((_, index) => firsts[index] === first);
      const start = await this.#nearest(series, this.#shownBy(series, 'daily', beginning), 'before', first);
      return (await this.rest.firstDayIn(series, { from: -Infinity, to: start })) ?? start;
    });
  }

  /** Months do not tell the first day, but the symbol was traded by this one: the last day of the last bar that may open in the first month. */
  async #tradedBy(series: Series): Promise<number> {
    const day = await this.#days.firstOf(series);
    const daysOfBar = { '3d': 3, '1w': 7 }[series.interval ?? ''] ?? 1;
    return Number.isFinite(day) ? monthStart(monthOf(day) + 1) + daysOfBar - 2 : Infinity;
  }

  /** The first day of the dataset in this symbol and in any of those that show whether the market goes on; undefined if none of those has it. */
  datasetStart(series: Series): Promise<number | undefined> {
    return this.#once(series, 'start of the dataset', async () => {
      const firsts = await Promise.all(
        this.#referencesOf(series).map((symbol) => this.#days.firstOf({ ...series, symbol })),
      );
      const first = Math.min(...firsts);
      return Number.isFinite(first) ? Math.min(first, await this.#days.firstOf(series)) : undefined;
    });
  }

  /**
   * The day after the last one, from a day on, that any dataset of the symbol has, if the symbol was delisted then: another series of it ends
   * with this one, and others of its market go on, in one of these series. If publication stalled for all of them then, the first day that others have. Undefined if
   * that is not proven, or not yet.
   */
  end(series: Series, cadence: Cadence, from: number): Promise<number | undefined> {
    return this.#once(series, `${cadence} end from ${from}`, async () => {
      const isCoarse = this.#days.isCoarse(series);
      const delay = LONGEST_DELAY_DAYS[isCoarse ? 'daily' : cadence];
      const latest = this.context.today - delay;
      const others = await this.#othersOf(series);
      const recent = new Set<Series>();
      let end = from;
      for (const one of [series, ...others]) {
        // The symbol is traded: its other datasets need not be asked.
        if (end > latest) return undefined;
        const days = await this.#days.daysOf(one, from - NEAR_DAYS, Infinity);
        if (days.length > 0) recent.add(one);
        end = days.reduce((last, day) => Math.max(last, day + 1), end);
      }
      if (end > latest) return undefined;
      // Another series ended with this one, or before, if this one ended long ago.
      const isEnded = async (one: Series): Promise<boolean> =>
        recent.size > 0 ? recent.has(one) : (await this.#days.firstOf(one)) < Infinity;
      if (!(await someOf(others, isEnded))) return undefined;
      const shown = this.#shownBy(series, cadence, [...recent]);
      if (!(await this.#goesOn(series, shown, end + delay - 1, Infinity))) return undefined;
      if (await this.#isStale(series, cadence, { from: end, to: latest + 1 })) return undefined;
      if ((await this.rest.firstDayIn(series, { from: end, to: Infinity })) !== undefined) return undefined;
      return this.#nearest(series, shown, 'after', end);
    });
  }

  /**
   * The longest stretches of the days `[from, to)` of which no dataset of the symbol has an object, while others of the market go on: the symbol
   * was listed twice, or suspended. A shorter stretch may be a hole of the archive alone, as any may be without other series near it. A stretch may begin
   * before these days.
   */
  async pauses(series: Series, cadence: Cadence, from: number, to: number): Promise<readonly DayRange[]> {
    const since = from - LEAST_PAUSE_DAYS;
    // A bar of several days may open before the pause ends.
    const isTold = ({ market, dataset, interval }: Series): boolean =>
      !hasLongBars(findDataset(this.context.exchange, market, dataset), interval);
    const others = (await this.#othersOf(series)).filter(isTold);
    const hasDaysNear = async (one: Series): Promise<boolean> =>
      (await this.#days.daysOf(one, from - NEAR_DAYS, to + NEAR_DAYS)).length > 0;
    if (!(await someOf(others, hasDaysNear))) return [];
    const told = [series, ...others].filter(isTold);
    const found = await Promise.all(told.map((one) => this.#days.daysOf(one, since, to)));
    const days = [...found.flat().sort((a, b) => a - b), to];
    const shown = this.#shownBy(series, cadence, []);
    const pauses: DayRange[] = [];
    let start = since;
    for (const day of days) {
      const pause = { from: Math.max(start, from), to: day };
      const isLong = day > pause.from && day - start >= LEAST_PAUSE_DAYS;
      start = day + 1;
      if (!isLong || !(await this.#goesOn(series, shown, pause.from, day))) continue;
      if ((await this.rest.firstDayIn(series, pause)) === undefined) pauses.push(pause);
    }
    return pauses;
  }

  async endedPauses(series: Series, cadence: Cadence, from: number): Promise<readonly DayRange[]> {
    const { today } = this.context;
    const pauses = await this.#once(series, `${cadence} pauses from ${from}`, () =>
      this.pauses(series, cadence, from, today),
    );
    return pauses.filter(({ to }) => to < today);
  }

  /** Whether the archive has the last object of these days, although the listing does not. */
  async #isStale(series: Series, cadence: Cadence, { from, to }: DayRange): Promise<boolean> {
    const { probe, exchange } = this.context;
    const around = periodAt(cadence, to - 1);
    const period = around.to > to ? periodAt(cadence, around.from - 1) : around;
    const isProbed = period.from >= from && exchange.archive.sidecar !== undefined;
    return isProbed && probe(exchange.archive.objectKey(series, period));
  }

  #once<T>(series: Series, what: string, act: () => Promise<T>): Promise<T> {
    return this.#facts(`${seriesName(series)} ${what}`, act) as Promise<T>;
  }

  /**
   * `after`: the first day from this one on that another symbol has. `before`: the day after the last one before this one that another symbol
   * has. The day itself if the listing has none of the days on this side.
   */
  async #nearest(series: Series, shown: Shown, side: 'before' | 'after', day: number): Promise<number> {
    const [start, end] = side === 'after' ? [day, day + MOST_STALLED_DAYS] : [day - MOST_STALLED_DAYS, day];
    let nearest: number | undefined;
    for await (const { from, to } of this.#othersPeriods(series, shown, start, end)) {
      const at = side === 'after' ? Math.max(day, from) : Math.min(day, to);
      if (at === day) return day;
      if (nearest === undefined || Math.abs(at - day) < Math.abs(nearest - day)) nearest = at;
    }
    return nearest ?? day;
  }

  /** The series whose objects of other symbols show that the market goes on: for a coarse series, daily ones that record trading come first. */
  #shownBy(series: Series, cadence: Cadence, others: readonly Series[]): Shown {
    const trading = this.#days.isCoarse(series) ? this.#tradingOf(series)[0] : undefined;
    const own: Shown[number] = trading === undefined ? [series, cadence] : [trading, 'daily'];
    const fine = others.filter((one) => one !== series && !this.#days.isCoarse(one));
    return [own, ...fine.map((one) => [one, 'daily'] as const)];
  }

  /** Whether another symbol has an object in the days `[from, to)`. */
  async #goesOn(series: Series, shown: Shown, from: number, to: number): Promise<boolean> {
    return (await this.#othersPeriods(series, shown, from, to).next()).done !== true;
  }

  /**
   * The periods of other symbols in the days `[from, to)`, series by series. The recent ones are requested once for all such days. Rejects at the end
   * with the last error of a listing: the others may tell enough.
   */
  async *#othersPeriods(series: Series, shown: Shown, from: number, to: number): AsyncGenerator<Period> {
    const recent = this.context.today - REFERENCE_DAYS;
    const [start, end] = from >= recent || to === Infinity ? [recent, Infinity] : [from, to];
    let fault: CryptodlError | undefined;
    for (const [one, cadence] of shown)
      for (const symbol of this.#referencesOf(series))
        try {
          const found = await this.#days.periods({ ...one, symbol }, cadence, start, end);
          yield* found.filter((period) => period.to > from && period.from < to);
        } catch (error) {
          if (!isListingFault(error)) throw error;
          fault = error;
        }
    if (fault !== undefined) throw fault;
  }

  /** The same dataset of the symbol in other intervals, of the run and of the lake. */
  async intervalsOf(series: Series): Promise<readonly Series[]> {
    const others = await this.#othersOf(series);
    return others.filter(({ dataset, symbol }) => dataset === series.dataset && symbol === series.symbol);
  }

  /** The other series of the symbol that the archive may have: those that record its trading, and those of the run and of the lake. */
  async #othersOf(series: Series): Promise<Series[]> {
    const { market, symbol } = series;
    const found = await this.#known(market, () => this.#readKnown(market));
    const known = [symbol, this.#contractOf(series)].flatMap((name) => found.get(name) ?? []);
    const byName = new Map([...this.#tradingOf(series), ...known].map((one) => [seriesName(one), one]));
    byName.delete(seriesName(series));
    return [...byName.values()];
  }

  async #readKnown(market: string): Promise<ReadonlyMap<string, Series[]>> {
    const all = this.context.requests.map(({ series }) => series).filter((one) => one.market === market);
    for await (const one of this.context.knownSeries(market)) all.push(one);
    return grouped(all, ({ symbol }) => symbol);
  }

  #tradingOf(series: Series): Series[] {
    const { market } = series;
    const symbol = this.#contractOf(series);
    return datasetsOf(this.context.exchange, market).flatMap(
      ({ name: dataset, provesTrading: intervals }): Series[] => {
        if (intervals === undefined) return [];
        if (intervals.length === 0) return [{ market, dataset, symbol }];
        return intervals.map((interval) => ({ market, dataset, interval, symbol }));
      },
    );
  }

  /** The contract by which a pair is traded, where series of the market have the name of the pair: BTCUSD_PERP for BTCUSD. */
  #contractOf({ market, symbol }: Series): string {
    const [, kind] = this.context.exchange.markets[market]?.references?.[0]?.split('_') ?? [];
    return kind === undefined || symbol.includes('_') ? symbol : `${symbol}_${kind}`;
  }

  /** Other symbols. Some series have the name of the pair of a contract. */
  #referencesOf(series: Series): string[] {
    const { references = [] } = this.context.exchange.markets[series.market] ?? {};
    const peers = (this.#peers.get(layerName(series)) ?? []).filter((symbol) => symbol !== series.symbol);
    const names = references.flatMap((symbol) => [symbol, symbol.replace(/_.*/, '')]);
    const others = names.filter((symbol) => symbol !== series.symbol);
    return [...new Set([...peers.slice(0, MOST_PEERS), ...others])];
  }
}

/** Asks about one series after the other, because each answer may cost requests. */
async function someOf(all: readonly Series[], is: (one: Series) => Promise<boolean>): Promise<boolean> {
  for (const one of all) if (await is(one)) return true;
  return false;
}
