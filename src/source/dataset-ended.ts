/** Datasets that the venue has ended, and how to say so. */
import { periodText } from '../model/calendar.js';
import type { Cadence, Market } from '../model/task.js';
import { findDataset, marketNames } from './venue.js';
import type { DatasetSpec, Venue } from './venue.js';

/** Day after the last one of these cadences, when each of them has an end. */
export function endOfDataset(
  spec: DatasetSpec,
  cadences: readonly Cadence[] = spec.cadences.slice(0, 1),
): number | undefined {
  const ends = cadences.flatMap((cadence) => spec.spans[cadence]?.last?.to ?? []);
  return ends.length === 0 || ends.length < cadences.length ? undefined : Math.max(...ends);
}

/** `um liquidationSnapshot was removed by Binance; cm ended 2024-10-14`; undefined when it goes on. */
export function endedText(venue: Venue, market: Market, dataset: string): string | undefined {
  const spec = findDataset(venue, market, dataset);
  const own = spec === undefined ? undefined : fate(spec);
  if (own === undefined) return undefined;
  const others = marketNames(venue).flatMap((other) => {
    const text = other === market ? undefined : fateIn(venue, other, dataset);
    return text === undefined ? [] : [`${other} ${text}`];
  });
  return [`${market} ${dataset} ${own}`, ...others].join('; ');
}

function fateIn(venue: Venue, market: Market, dataset: string): string | undefined {
  const spec = findDataset(venue, market, dataset);
  return spec === undefined ? undefined : (fate(spec) ?? 'goes on');
}

function fate(spec: DatasetSpec): string | undefined {
  if (spec.removed) return 'was removed by Binance';
  const last = spec.spans[spec.cadences[0] ?? 'daily']?.last;
  return endOfDataset(spec) === undefined || last === undefined ? undefined : `ended ${periodText(last)}`;
}
