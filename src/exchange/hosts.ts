/** The hosts of a run: their addresses, and whether they are banned. */
import { banKey, type Bans } from '../http/throttle/bans.js';
import type { ExchangeHosts } from '../http/throttle/exchange-hosts.js';
import type { Market } from '../model/task.js';
import type { Exchange } from './exchange.js';
import type { Addresses } from './rest-api.js';

export function exchangeHosts(
  addresses: Addresses,
  { hosts, buckets, answers, rest }: Pick<Exchange, 'hosts' | 'buckets' | 'answers' | 'rest'>,
): ExchangeHosts {
  const { archiveUrl, listingUrl, fallbackUrl } = addresses;
  return {
    ...answers,
    buckets,
    archiveUrl,
    listingUrl,
    fallbackUrl,
    restUrls: rest.urls(addresses),
    knownUrls: Object.values(hosts),
    bannedWith: (url) => rest.bannedWith(addresses, url),
  };
}

/** Rejects while a host of the run is banned. If archive and REST replace each other, rejects only while both are banned. */
export async function refuseBanned(
  bans: Pick<Bans, 'refuse'>,
  exchange: Exchange,
  options: Addresses & { readonly fill?: unknown; readonly join?: unknown },
  { isRest, markets }: { readonly isRest: boolean; readonly markets: readonly Market[] },
): Promise<void> {
  const rest = markets.flatMap((market) => exchange.rest.places(options, market));
  const archive = [banKey('archive', options.archiveUrl), banKey('listing', options.listingUrl)];
  const [first, other] = isRest ? [rest, archive] : [archive, rest];
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
