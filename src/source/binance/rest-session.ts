/** Binance's REST as a run sees it: its hosts, its limits, and what a ban of one host means for the others. */
import { placeOf } from '../../http/bans.js';
import { isNoAnswer } from '../../model/errors.js';
import type { Market } from '../../model/task.js';
import { agoText } from '../../model/units.js';
import type { Options } from '../../options/flags.js';
import type { RestApi, RestSessionOptions } from '../rest.js';
import type { Venue } from '../venue.js';
import { isPerpetual, pairOf, perpetualOf } from './contracts.js';
import { exchangeInfo, parseHeldInfo, weightBucket } from './exchange-info.js';
import type { ExchangeInfo } from './exchange-info.js';
import { RestClient } from './rest-client.js';
import { seriesPages } from './series-pages.js';

export function binanceRest({ spot, spotPublic }: Venue['hosts']): RestApi {
  return {
    urls: restUrls,
    places: restPlaces,
    bannedWith,
    pairOf,
    perpetualOf,
    isPerpetual,
    open: (session) => {
      const { options, fetch, throttle, observer, signal } = session;
      const client = new RestClient({
        fetch,
        urls: { fapi: options.fapiUrl, dapi: options.dapiUrl, spot: options.spotUrl },
        // An address of spot that was moved has no other host.
        spotElsewhere: options.spotUrl === spot ? spotPublic : undefined,
        priority: options.priority,
        signal,
        warn: (message) => {
          observer.warn(message);
        },
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

function restUrls(options: Options): Record<string, string> {
  return {
    'fapi-url': options.fapiUrl,
    'dapi-url': options.dapiUrl,
    'spot-url': options.spotUrl,
  };
}

/** Asked for every time; what was said before is used, and told of, only when nobody answers. */
async function infoOf(
  { options, copies, nowMs, observer }: RestSessionOptions,
  client: RestClient,
  market: Market,
): Promise<ExchangeInfo> {
  const url = market === 'spot' ? options.spotUrl : options[market === 'cm' ? 'dapiUrl' : 'fapiUrl'];
  const name = `exchangeInfo ${url} ${market}`;
  const copy = await copies.read(name, parseHeldInfo);
  try {
    const held = await exchangeInfo(client, market, copy?.value);
    await copies.keep(name, held);
    return held.info;
  } catch (error) {
    if (copy === undefined || !isNoAnswer(error)) throw error;
    observer.warn(
      `exchangeInfo of ${new URL(url).host} cannot be had (${error.message}): what it said ${agoText(copy.at, nowMs)} is used; symbols that were listed or delisted since then are not known`,
    );
    return copy.value.info;
  }
}

const FUTURES: readonly string[] = ['futures', 'futuresData', 'funding'];

/** Where a market's REST is asked, bucket by bucket: what a ban is remembered for. */
function restPlaces(options: Options, market: Market): string[] {
  if (market === 'spot') return [placeOf('spot', options.spotUrl)];
  const url = market === 'cm' ? options.dapiUrl : options.fapiUrl;
  return FUTURES.map((bucket) => placeOf(bucket, url));
}

/** The host of USD-margined and that of coin-margined futures count together: a ban of one is one of both. */
function bannedWith(options: Options, url: string): string[] {
  const futures = [options.fapiUrl, options.dapiUrl];
  const isOf = (base: string): boolean => new URL(base).host === new URL(url).host;
  return futures.some(isOf) ? [...new Set([url, ...futures])] : [url];
}
