/** Where a run asks an exchange: the addresses that the options give, or those of the exchange. */
import { placeOf } from '../http/bans.js';
import type { Bans } from '../http/bans.js';
import type { ExchangeHosts } from '../http/exchange-hosts.js';
import type { Market } from '../model/task.js';
import type { Options, Verb } from '../options/flags.js';
import type { Source } from './source.js';
import type { Venue } from './venue.js';

/** Where somebody moved the archive, the listing is asked at the same place. */
export function listingUrl(options: Options, { hosts }: Pick<Venue, 'hosts'>): string {
  return options.listingUrl ?? (options.archiveUrl === hosts.archive ? hosts.listing : options.archiveUrl);
}

export function exchangeHosts(
  options: Options,
  { hosts, buckets, answers, rest }: Pick<Source, 'hosts' | 'buckets' | 'answers' | 'rest'>,
): ExchangeHosts {
  const archiveUrl = options.archiveUrl;
  return {
    ...answers,
    buckets,
    archiveUrl,
    listingUrl: listingUrl(options, { hosts }),
    // An archive that was moved has no other host, unless one is given.
    fallbackUrl: options.fallbackUrl ?? (archiveUrl === hosts.archive ? hosts.origin : undefined),
    restUrls: rest.urls(options),
    knownUrls: Object.values(hosts),
    bannedWith: (url) => rest.bannedWith(options, url),
  };
}

/**
 * Rejects while a place that the run will ask is banned; where one source stands in for the other, only while both are.
 */
export async function refuseBanned(
  bans: Pick<Bans, 'refuse'>,
  source: Source,
  options: Options,
  { verb, markets }: { readonly verb: Verb; readonly markets: readonly Market[] },
): Promise<void> {
  const rest = markets.flatMap((market) => source.rest.places(options, market));
  const archive = [placeOf('archive', options.archiveUrl), placeOf('listing', listingUrl(options, source))];
  const [first, other] = verb === 'metrics' ? [rest, archive] : [archive, rest];
  const isReplaced = options.fill !== undefined || options.join !== undefined;
  try {
    await bans.refuse(first);
  } catch (error) {
    if (!isReplaced) throw error;
    const isFree = await bans.refuse(other).then(
      () => true,
      () => false,
    );
    if (!isFree) throw error;
  }
}
