/**
 * REST of Binance for one run: hosts, limits, the pages of a series, and the hosts that are banned together.
 */
import { placeOf } from '../../http/bans.js';
import { isNoAnswer } from '../../model/errors.js';
import type { Market } from '../../model/task.js';
import { agoText } from '../../model/units.js';
import type { Addresses, RestApi, RestContext } from '../rest-api.js';
import type { ExchangeSpec } from '../exchange-spec.js';
import { exchangeInfo, isPerpetual, parseHeldInfo, weightBucket } from './exchange-info.js';
import type { ExchangeInfo } from './exchange-info.js';
import { RestClient } from './rest-client.js';
import { seriesPages } from './series-pages.js';

export function binanceRest({ spot, spotPublic }: ExchangeSpec['hosts']): RestApi {
  return {
    urls: ({ fapiUrl, dapiUrl, spotUrl }) => ({
      'fapi-url': fapiUrl,
      'dapi-url': dapiUrl,
      'spot-url': spotUrl,
    }),
    places: restPlaces,
    bannedWith,
    isPerpetual,
    open: (session) => {
      const { options, fetch, throttle, observer, signal } = session;
      const client = new RestClient({
        fetch,
        urls: { fapi: options.fapiUrl, dapi: options.dapiUrl, spot: options.spotUrl },
        // A custom address of spot has no replacement.
        otherSpotUrl: options.spotUrl === spot ? spotPublic : undefined,
        priority: options.priority,
        signal,
        warn: (message) => observer.warn(message),
      });
      return {
        pages: (route, series, span) => seriesPages(client, route, series, span),
        symbols: async (market) => {
          const { symbols, weight } = await infoOf(session, client, market);
          if (weight !== undefined)
            throttle.setBudget(weightBucket(market), { permits: weight.limit, windowMs: weight.windowMs });
          return symbols;
        },
      };
    },
  };
}

/** Always sends a request. If the host does not answer, uses the cached answer and prints a warning. */
async function infoOf(
  { options, copies, nowMs, observer }: RestContext,
  client: RestClient,
  market: Market,
): Promise<ExchangeInfo> {
  const url = market === 'spot' ? options.spotUrl : options[market === 'cm' ? 'dapiUrl' : 'fapiUrl'];
  const name = `exchangeInfo ${url} ${market}`;
  const copy = await copies.read(name, parseHeldInfo);
  try {
    const info = await exchangeInfo(client, market);
    await copies.keep(name, info);
    return info;
  } catch (error) {
    if (copy === undefined || !isNoAnswer(error)) throw error;
    observer.warn(
      `exchangeInfo of ${new URL(url).host} is not available (${error.message}): its copy of ${agoText(copy.at, nowMs)} is used; later listings and delistings of symbols are not known`,
    );
    return copy.value;
  }
}

const FUTURES: readonly string[] = ['futures', 'futuresData', 'funding'];

/** The places of a market's REST, one per bucket. Bans are recorded by place. */
function restPlaces(options: Addresses, market: Market): string[] {
  if (market === 'spot') return [placeOf('spot', options.spotUrl)];
  const url = market === 'cm' ? options.dapiUrl : options.fapiUrl;
  return FUTURES.map((bucket) => placeOf(bucket, url));
}

/** The hosts of USD-margined and coin-margined futures share their limits, so a ban of one applies to both. */
function bannedWith(options: Addresses, url: string): string[] {
  const futures = [options.fapiUrl, options.dapiUrl];
  const isOf = (base: string): boolean => new URL(base).host === new URL(url).host;
  return futures.some(isOf) ? [...new Set([url, ...futures])] : [url];
}
