/** Makes the markets, datasets and columns of an exchange from the facts of config/. */
import { parsePeriod } from '../model/calendar.js';
import type { Cadence, Market } from '../model/task.js';
import type { ColumnSpec, DatasetFacts, OfferFacts, ExchangeFacts } from './facts.js';
import type { PublishedSpan, DatasetSpec, MarketSpec, ExchangeSpec } from './exchange-spec.js';

/** Throws a RangeError for a dataset without a description. test/unit/exchange/exchange-spec.test.ts checks the other references between the files of config/. */
export function exchangeSpecOf(
  { intervals, markets, dayStartHours, ...exchange }: ExchangeFacts,
  datasets: Readonly<Record<string, DatasetFacts>>,
): ExchangeSpec {
  const dayStartMs = dayStartHours * 3_600_000;
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
