/** Finds the objects of a series by requests for the sidecars that should exist by date, without a current listing. */
import type { Exchange } from '../exchange/exchange.js';
import { dayText, periodAt, dayOf } from '../model/calendar.js';
import { CryptodlError } from '../model/errors.js';
import { mapOrdered } from '../model/in-order.js';
import type { Series, Cadence, ArchiveObject, Period } from '../model/task.js';
import type { ListingRange, SeriesListing } from './series-listing.js';

/** Whether the sidecar of a key exists; true if that is unknown. Rejects with `unreachable` without a connection to the archive. */
export type Probe = (key: string) => Promise<boolean>;

const PROBES_AT_ONCE = 16;

/** Finds the objects by probing each selected period. They have no sizes and ETags. Rejects with `unreachable` for an open start. */
export async function probeSeries(
  probe: Probe,
  exchange: Exchange,
  series: Series,
  cadence: Cadence,
  selected: ListingRange,
): Promise<SeriesListing> {
  if (selected.from === undefined) {
    const hint = `try again, or give --from, for example --from ${dayText(selected.to - 1)}`;
    const text = 'the listing is not available, so the start of a series is not known';
    throw new CryptodlError('unreachable', text, { hint });
  }
  const objects = new Map<number, ArchiveObject>();
  let first: Period | undefined;
  let last: Period | undefined;
  const found = mapOrdered(periods(cadence, selected.from, selected.to), PROBES_AT_ONCE, async (period) => {
    const key = exchange.archive.objectKey(series, period);
    // A month is published after its end.
    return period.to <= selected.today && (await probe(key)) ? { key, period } : undefined;
  });
  for await (const object of found) {
    if (object === undefined) continue;
    first ??= object.period;
    last = object.period;
    objects.set(object.period.from, object);
  }
  return { objects, first, last, more: false, isProbed: true };
}

function periods(cadence: Cadence, from: number, to: number): Period[] {
  const found: Period[] = [];
  for (let day = from; day < to; day = found.at(-1)?.to ?? to) found.push(periodAt(cadence, day));
  return found;
}

/** A copy of the listing may lack periods from this many days before it, because the archive publishes them after their end. */
const SINCE_DAYS: Readonly<Record<Cadence, number>> = { daily: 3, monthly: 35 };

/** If a copy replaced the listing, probes the periods that may have been published since the copy was made. */
export async function withNewerProbed(
  probe: Probe,
  exchange: Exchange,
  series: Series,
  { cadence, listed, selected }: { cadence: Cadence; listed: SeriesListing; selected: ListingRange },
): Promise<SeriesListing> {
  const { copiedAt, last, more } = listed;
  if (copiedAt === undefined || more) return listed;
  const since = dayOf(copiedAt, exchange) - SINCE_DAYS[cadence];
  const from = Math.max(since, last?.to ?? since, selected.from ?? since);
  if (from >= selected.to) return listed;
  const newer = await probeSeries(probe, exchange, series, cadence, { ...selected, from });
  return {
    ...listed,
    objects: new Map([...listed.objects, ...newer.objects]),
    first: listed.first ?? newer.first,
    last: newer.last ?? last,
  };
}
