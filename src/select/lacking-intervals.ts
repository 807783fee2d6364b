/** Selected intervals that a series never had: a note for the plan, or the error if the run has nothing else. */
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { Options } from '../options/flags.js';
import type { Plan } from '../plan/plan.js';
import { isListingFault } from '../source/listing.js';
import type { Listing } from '../source/listing.js';
import type { Source } from '../source/source.js';
import { findDataset, intervalsOf } from '../source/venue.js';
import { isAll } from './select-datasets.js';
import type { RunSelection } from './selection.js';

interface Context {
  readonly listing: Listing;
  readonly venue: Source;
  readonly options: Pick<Options, 'interval' | 'symbols'>;
}

/** The maximum number of series whose other intervals are listed. Each needs a request per cadence. */
const MOST_NAMED = 3;

/**
 * A note for each named series that has no object of its interval in the archive, with the intervals that it has. Throws a usage
 * error if no series of the plan has its interval.
 */
export async function lackingIntervals(
  context: Context,
  { verb, requests, hasListing }: Pick<RunSelection, 'verb' | 'requests' | 'hasListing'>,
  { totals, unpublished }: Pick<Plan, 'totals' | 'unpublished'>,
): Promise<string[]> {
  const { options } = context;
  if (unpublished.length === 0) return [];
  if (verb !== 'vision' || options.symbols === undefined || !hasListing || isAll(options.interval)) return [];
  const ofRest = new Set(
    requests.filter(({ rest }) => rest !== undefined).map((one) => seriesName(one.series)),
  );
  const lacking = unpublished.filter(
    (series) => series.interval !== undefined && !ofRest.has(seriesName(series)),
  );
  const texts: string[] = [];
  for (const series of lacking.slice(0, MOST_NAMED)) {
    const known = await publishedIntervals(context, series);
    const others = known.filter((interval) => interval !== series.interval);
    if (others.length > 0) texts.push(lackingText(series, others));
  }
  const [first] = texts;
  if (first === undefined) return [];
  const more =
    lacking.length > MOST_NAMED
      ? ` (and ${lacking.length - MOST_NAMED} more series lack their interval)`
      : '';
  if (lacking.length === totals.series && totals.fetch + totals.skip === 0) throw usage(`${first}${more}`);
  return texts.map((text, at) => `lacking    ${text}${at === texts.length - 1 ? more : ''}`);
}

/** Throws a usage error if one of the first series has no object of its interval, but objects of other intervals. */
export async function refuseLackingIntervals(
  context: Pick<Context, 'listing' | 'venue'>,
  all: readonly Series[],
): Promise<void> {
  for (const series of all.slice(0, MOST_NAMED)) {
    const known = series.interval === undefined ? [] : await publishedIntervals(context, series);
    if (known.length > 0 && !known.includes(series.interval ?? '')) throw usage(lackingText(series, known));
  }
}

function lackingText(series: Series, known: readonly string[]): string {
  return `the archive has no ${seriesName(series)}; it has ${known.join(', ')}`;
}

/** The intervals of the symbol in the dataset, in the order of the exchange; none without a listing. */
async function publishedIntervals(
  { listing, venue }: Pick<Context, 'listing' | 'venue'>,
  series: Series,
): Promise<string[]> {
  const spec = findDataset(venue, series.market, series.dataset);
  if (spec === undefined) return [];
  const found = new Set<string>();
  try {
    for (const cadence of spec.cadences) {
      const prefix = venue.archive.seriesPrefix(series, cadence).replace(/[^/]+\/$/, '');
      for await (const name of listing.folders(prefix)) found.add(name);
    }
  } catch (error) {
    if (!isListingFault(error)) throw error;
  }
  return (intervalsOf(spec) ?? []).filter((interval) => found.has(interval));
}
