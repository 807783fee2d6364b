/** Markets, datasets and columns of an exchange, made from the facts of config/. */
import { parsePeriod, type DayStart } from '../model/calendar.js';
import type { Cadence, PartitionPeriod, Market, Period } from '../model/task.js';
import { DAY_SECONDS, HOUR_MS, DURATION_MS } from '../model/units.js';
import type { ColumnSpec, DatasetFacts, OfferFacts, ExchangeFacts } from './facts.js';

/** First and last known period. `last` is undefined if unknown, or if the dataset is still published. */
export interface PublishedSpan {
  readonly first?: Period | undefined;
  readonly last?: Period | undefined;
}

export interface DatasetSpec
  extends
    DayStart,
    Readonly<Omit<DatasetFacts, 'aliases' | 'columns' | 'notes'>>,
    Readonly<Pick<OfferFacts, 'removed' | 'header' | 'sequence' | 'rest'>> {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly cadences: readonly Cadence[];
  readonly spans: Readonly<Partial<Record<Cadence, PublishedSpan>>>;
  /** Intervals by cadence, for datasets with an interval in their keys. */
  readonly intervals?: Readonly<Record<Cadence, readonly string[]>> | undefined;
  readonly columns: readonly ColumnSpec[];
  readonly notes: readonly string[];
}

interface MarketSpec extends Omit<ExchangeFacts['markets'][string], 'datasets'> {
  readonly datasets: Readonly<Record<string, DatasetSpec>>;
}

export interface ExchangeSpec
  extends
    DayStart,
    Readonly<Pick<ExchangeFacts, 'name' | 'terms' | 'firstDay' | 'defaultMarket' | 'hosts' | 'buckets'>> {
  readonly markets: Readonly<Record<Market, MarketSpec>>;
}

/** The markets of an exchange, in the order of its facts. */
export const marketNames = ({ markets }: Pick<ExchangeSpec, 'markets'>): Market[] => Object.keys(markets);

/** The datasets of a market; none for a market that the exchange does not have. */
export function datasetsOf({ markets }: Pick<ExchangeSpec, 'markets'>, market: Market): DatasetSpec[] {
  return Object.hasOwn(markets, market) ? Object.values(markets[market]?.datasets ?? {}) : [];
}

/** The datasets of all markets. */
export const allDatasets = (exchange: Pick<ExchangeSpec, 'markets'>): DatasetSpec[] =>
  marketNames(exchange).flatMap((market) => datasetsOf(exchange, market));

/** Undefined if the market has no such dataset. */
export function findDataset(
  exchange: ExchangeSpec,
  market: Market,
  dataset: string,
): DatasetSpec | undefined {
  return datasetsOf(exchange, market).find(({ name }) => name === dataset);
}

/** Whether the archive has or had the dataset. */
export const isArchived = ({ cadences }: DatasetSpec): boolean => cadences.length > 0;

/** Whether `cryptodl metrics` downloads the dataset: funding and statistics, not prices and trades. */
export function isMetric(spec: DatasetSpec): boolean {
  if (spec.rest === undefined) return false;
  return !isArchived(spec) || 'joins' in spec.rest || spec.rest.bucket === 'funding';
}

/** Whether only the program makes the dataset, from other datasets of a lake. No download has it. */
export const isMade = (spec: DatasetSpec): boolean => !isArchived(spec) && spec.rest === undefined;

/** Columns of published files, in file order. */
export const archivedColumns = ({ columns }: DatasetSpec): ColumnSpec[] =>
  columns.filter((column) => !column.restOnly);

/** All intervals of a dataset in all cadences; undefined for datasets without intervals. */
export function intervalsOf({ intervals }: DatasetSpec): string[] | undefined {
  return intervals === undefined ? undefined : [...new Set([...intervals.daily, ...intervals.monthly])];
}

export function defaultPartition(spec: DatasetSpec, interval: string | undefined): PartitionPeriod {
  return interval !== undefined && spec.dayPartitionIntervals.includes(interval) ? 'day' : spec.partition;
}

/** `5m` → 300,000; NaN for intervals without a fixed length. */
export function intervalMs(interval: string): number {
  const match = /^(\d+)([smhd])$/.exec(interval);
  return Number(match?.[1]) * (DURATION_MS[match?.[2] ?? ''] ?? Number.NaN);
}

/** Seconds between rows; undefined without an interval, for one above a day (`3d`, `1w`, `1mo`), and for bars of the program, which may lack rows. */
export function rowSeconds(spec: DatasetSpec, interval: string | undefined): number | undefined {
  if (isMade(spec)) return undefined;
  if (spec.rowSeconds !== undefined) return spec.rowSeconds;
  const seconds = intervalMs(interval ?? '') / 1000;
  return seconds <= DAY_SECONDS ? seconds : undefined;
}

/** Whether a series has bars above a day, or bars of the program. */
export const hasLongBars = (spec: DatasetSpec | undefined, interval: string | undefined): boolean =>
  spec !== undefined && interval !== undefined && rowSeconds(spec, interval) === undefined;

// The facts of config/ as an ExchangeSpec.

/** Throws a RangeError for a dataset without a description. test/unit/exchange/exchange-spec.test.ts checks the other references between the files of config/. */
export function exchangeSpecOf(
  { intervals, markets, dayStartHours, ...exchange }: ExchangeFacts,
  datasets: Readonly<Record<string, DatasetFacts>>,
): ExchangeSpec {
  const dayStartMs = dayStartHours * HOUR_MS;
  const specsOf = (market: Market, offers: Readonly<Record<string, OfferFacts>>): MarketSpec['datasets'] => {
    const specs = Object.entries(offers).map(([name, offer]) => {
      const facts = datasets[name];
      if (facts === undefined) throw new RangeError(`config: ${market} ${name} is not described`);
      return [name, { ...specOf(name, facts, offer, intervals), dayStartMs }] as const;
    });
    return Object.fromEntries(specs);
  };
  const specs = Object.entries(markets).map(
    ([market, { datasets: offers, ...facts }]) =>
      [market, { ...facts, datasets: specsOf(market, offers) }] as const,
  );
  return { ...exchange, dayStartMs, markets: Object.fromEntries(specs) };
}

function specOf(
  name: string,
  facts: DatasetFacts,
  offer: OfferFacts,
  lists: ExchangeFacts['intervals'],
): Omit<DatasetSpec, 'dayStartMs'> {
  const { intervals } = offer;
  const list = (of: string): readonly string[] => lists[of] ?? [];
  const cadences = (['daily', 'monthly'] as const).filter((cadence) => offer.cadences[cadence] !== undefined);
  return {
    name,
    ...facts,
    cadences,
    spans: Object.fromEntries(cadences.map((cadence) => [cadence, spanOf(offer, cadence)])),
    removed: offer.removed,
    header: offer.header,
    columns: columnsOf(facts, offer),
    notes: [...offer.notes, ...facts.notes],
    sequence: offer.sequence,
    rest: offer.rest,
    intervals: intervals && { daily: list(intervals.daily), monthly: list(intervals.monthly) },
  };
}

function columnsOf(facts: DatasetFacts, offer: OfferFacts): ColumnSpec[] {
  return facts.columns
    .filter((column) => !offer.omit.includes(column.name))
    .map((column) => ({ ...column, ...offer.columns[column.name] }) as ColumnSpec);
}

function spanOf(offer: OfferFacts, cadence: Cadence): PublishedSpan {
  const { first, last } = offer.cadences[cadence] ?? {};
  return { first: parsePeriod(cadence, first ?? ''), last: parsePeriod(cadence, last ?? '') };
}
