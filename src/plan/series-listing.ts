/** The listed objects of one series in one cadence, near the selected days; without a current listing, those whose sidecars exist. */
import { monthOf, monthStart, periodAt, dayText, dayOf } from '../model/calendar.js';
import type { AbsenceReason } from '../model/absence-reasons.js';
import type { SourceObject, Cadence, Period, Series } from '../model/task.js';
import type { Listing } from '../exchange/listing.js';
import type { Exchange } from '../exchange/exchange.js';
import type { PublishedSpan } from '../exchange/exchange-spec.js';
import { CryptodlError } from '../model/errors.js';
import { mapOrdered } from '../model/in-order.js';

export interface SeriesListing {
  /** Objects by the first day of their period. */
  readonly objects: ReadonlyMap<number, SourceObject>;
  /** ETags of their sidecars, also by the first day of the period; undefined if sidecars were not read. */
  readonly sidecars?: ReadonlyMap<number, string> | undefined;
  /** First listed period of the series, or a later one that is not after the selected start; undefined if nothing is listed. */
  readonly first: Period | undefined;
  /** Last period that the walk found; without `more`, the last listed one. */
  readonly last: Period | undefined;
  /** Whether the walk stopped at a period after the selected days. */
  readonly more: boolean;
  /** The day at which the walk began; undefined: it began with the series. */
  readonly startDay?: number | undefined;
  /** The time of the copy that replaced the listing, in epoch milliseconds. */
  readonly copiedAtMs?: number | undefined;
  /** Sidecars were requested one by one. A missing sidecar does not prove that its object is missing. */
  readonly isProbed?: true;
}

/** Keys per page that are enough to pass stray keys and sidecars at the start of a series. */
const FIRST_ENTRIES = 20;

/** The longest seen delay of the archive, in days: of daily objects, and of a monthly object after the end of its month. */
export const LONGEST_DELAY_DAYS: Readonly<Record<Cadence, number>> = { daily: 14, monthly: 45 };

export interface ListingRange {
  readonly from?: number | undefined;
  readonly to: number;
  readonly today: number;
  /** Day after the last held one. If it is recent, the walk begins at the last held day or earlier, to find the end of a delisted series. */
  readonly heldTo?: number | undefined;
}

/** Days per page of keys and sidecars. An earlier start would cost more requests. */
export const PAGE_DAYS = 400;

/**
 * One walk with `marker` from the month of the first selected period to the last one. It starts at the first day of the
 * month, to see whether the month has days, or earlier, to tell a late series from a delisted one. If the walk finds no
 * period at or before the selected start, one more request finds the first period.
 */
export async function listSeries(
  listing: Listing,
  { archive }: Exchange,
  series: Series,
  cadence: Cadence,
  selected: ListingRange,
): Promise<SeriesListing> {
  const prefix = archive.seriesPrefix(series, cadence);
  const periodOf = archive.periodOf(series, cadence);
  const suffix = archive.sidecar?.suffix;
  const start = startOfWalk(selected, cadence);
  const marker = start === undefined ? undefined : archive.markerBefore(series, periodAt(cadence, start));
  const objects = new Map<number, SourceObject>();
  const sidecars = new Map<number, string>();
  let last: Period | undefined;
  let earliest: Period | undefined;
  let more = false;
  for await (const page of listing.objects(prefix, marker)) {
    for (const listed of page) {
      const { key, bytes, etag, lastModified, sidecarEtag } = listed;
      const isSidecar = suffix !== undefined && key.endsWith(suffix);
      const period = periodOf(isSidecar ? key.slice(0, -suffix.length) : key);
      if (period === undefined) continue;
      const sidecar = isSidecar ? etag : sidecarEtag;
      if (sidecar !== undefined) sidecars.set(period.from, sidecar);
      if (isSidecar) continue;
      earliest ??= period;
      last = period;
      objects.set(period.from, { key, period, bytes, etag, lastModified });
      more = period.from >= selected.to;
      if (more) break;
    }
    if (more) break;
  }
  const startsBefore =
    start !== undefined && (earliest === undefined || earliest.from > (selected.from ?? 0));
  const first = startsBefore ? await firstPeriod(listing, archive, series, cadence) : undefined;
  return {
    objects,
    sidecars: suffix === undefined ? undefined : sidecars,
    first: first ?? earliest,
    last,
    more,
    startDay: start,
    copiedAtMs: listing.copiedAtMs?.(prefix),
  };
}

/** The day at which the walk begins; undefined: it begins with the series. */
function startOfWalk({ from, today, heldTo = today }: ListingRange, cadence: Cadence): number | undefined {
  if (from === undefined) return undefined;
  const isNear = heldTo > today - PAGE_DAYS;
  const latest = isNear ? heldTo - 1 : Infinity;
  return Math.min(monthStart(monthOf(from)), today - LONGEST_DELAY_DAYS[cadence] - 1, latest);
}

/** The first listed period of a series; undefined if the first page has none. */
export async function firstPeriod(
  listing: Listing,
  archive: Exchange['archive'],
  series: Series,
  cadence: Cadence,
): Promise<Period | undefined> {
  const prefix = archive.seriesPrefix(series, cadence);
  const periodOf = archive.periodOf(series, cadence);
  let seen = 0;
  for await (const page of listing.objects(prefix, undefined, FIRST_ENTRIES)) {
    for (const listed of page) {
      const period = periodOf(listed.key);
      if (period !== undefined) return period;
      seen += 1;
    }
    if (seen >= FIRST_ENTRIES) break;
  }
  return undefined;
}

/**
 * The reason of absence of a period, as far as the listing of the series and the first and last known periods of the dataset (`span`)
 * prove it. `unknown`: before the first listed period. `not-published-yet`: after the last one. `hole`: between.
 */
export function absenceReason(
  listing: SeriesListing,
  period: Period,
  span: PublishedSpan | undefined,
): AbsenceReason {
  if (listing.first === undefined || period.to <= listing.first.from) {
    if (span?.first !== undefined && period.to <= span.first.from) return 'before-history';
    if (span?.last !== undefined && period.from > span.last.from) return 'dataset-ended';
    return 'unknown';
  }
  if (listing.more || (listing.last !== undefined && period.from < listing.last.from)) return 'hole';
  return span?.last !== undefined && period.from > span.last.from ? 'dataset-ended' : 'not-published-yet';
}

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
  const objects = new Map<number, SourceObject>();
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
  const { copiedAtMs, last, more } = listed;
  if (copiedAtMs === undefined || more) return listed;
  const since = dayOf(copiedAtMs, exchange) - SINCE_DAYS[cadence];
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
