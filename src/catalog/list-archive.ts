/** Reads symbols and objects from the listing of the archive. */
import type { Session } from '../download/session.js';
import { periodText } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { ArchiveObject, Period, Series } from '../model/task.js';
import type { SymbolPatterns } from '../options/symbols.js';
import { listSeries } from '../plan/series-listing.js';
import type { Range } from '../select/date-range.js';
import { datasetName, refuseEnded } from '../select/select-datasets.js';
import type { ChosenDataset } from '../select/select-datasets.js';
import { inKeyOrderOf, listedSymbols, selectSymbols } from '../select/select-symbols.js';

interface ListedPeriod {
  readonly series: Series;
  readonly object: ArchiveObject;
}

/** The archive of a session. */
type Catalog = Pick<Session, 'listing' | 'observer' | 'options' | 'venue'>;

/** First and last period, number and size of all objects of a symbol in the selected datasets. */
interface Extent {
  readonly first: string | null;
  readonly last: string | null;
  readonly objects: number;
  /** Sum of the sizes of the zips. */
  readonly bytes: number;
}

/** No limit in time. */
export const ALWAYS: Pick<Range, 'from' | 'to'> = { to: Number.MAX_SAFE_INTEGER };

export const SERIES_AT_ONCE = 16;

/**
 * The selected symbols of the datasets, in key order. Rejects with usage errors if the archive lists no symbol of a removed dataset, or of all
 * datasets together; for unknown symbols, unless `skipUnknown`; and if the patterns select nothing.
 */
export async function symbolsIn(
  session: Catalog,
  datasets: readonly ChosenDataset[],
  patterns: SymbolPatterns | undefined,
): Promise<readonly string[]> {
  const listed = await listedSymbols(session, datasets);
  for (const dataset of datasets)
    if (listed.get(dataset.spec)?.size === 0 && dataset.spec.removed) refuseEnded(session.venue, dataset);
  const found = inKeyOrderOf(listed);
  const what = datasets.map(datasetName).join(', ');
  if (found.length === 0) throw usage(`the archive lists no symbol of ${what}`);
  const all = patterns ?? { names: [], globs: ['*'], exclusions: [] };
  const { quote = [], skipUnknown } = session.options;
  const { symbols, warnings } = selectSymbols(all, quote, found, { what, skipUnknown });
  for (const warning of warnings) session.observer.warn(warning);
  return symbols;
}

export function textOf(period: Period | undefined): string | null {
  return period === undefined ? null : periodText(period);
}

export async function extentOf(
  session: Catalog,
  datasets: readonly ChosenDataset[],
  symbol: string,
): Promise<Extent> {
  let first: ArchiveObject | undefined;
  let last: ArchiveObject | undefined;
  let objects = 0;
  let bytes = 0;
  for (const dataset of datasets) {
    for (const { object } of await periodsOf(session, dataset, symbol, ALWAYS)) {
      if (first === undefined || object.period.from < first.period.from) first = object;
      if (last === undefined || object.period.to > last.period.to) last = object;
      objects += 1;
      bytes += object.bytes ?? 0;
    }
  }
  return {
    first: textOf(first?.period),
    last: textOf(last?.period),
    objects,
    bytes,
  };
}

export async function periodsOf(
  session: Catalog,
  { market, spec, interval, cadences }: ChosenDataset,
  symbol: string,
  range: Pick<Range, 'from' | 'to'>,
): Promise<ListedPeriod[]> {
  const ofInterval = interval === undefined ? {} : { interval };
  const series: Series = { market, dataset: spec.name, ...ofInterval, symbol };
  const { from, to } = range;
  const found: ListedPeriod[] = [];
  for (const cadence of cadences) {
    // `today` serves reasons of absence, which are not needed here: with the largest day, the walk begins no earlier for them.
    const want = { ...(from === undefined ? {} : { from }), to, today: Number.MAX_SAFE_INTEGER };
    const listing = await listSeries(session.listing, session.venue, series, cadence, want);
    // The walk begins with the month of `from`, and ends with one object after the range.
    for (const object of listing.objects.values()) {
      if (object.period.to > (from ?? 0) && object.period.from < to) found.push({ series, object });
    }
  }
  return found;
}
