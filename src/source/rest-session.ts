/** REST as a run sees it: its hosts, its limits, and what a ban of one host means for the others. */
import { placeOf } from '../http/bans.js';
import type { Bans } from '../http/bans.js';
import type { Fetch } from '../http/fetch.js';
import type { Copies } from '../http/response-cache.js';
import type { Throttle } from '../http/throttle/throttle.js';
import { DAY_MS } from '../model/calendar.js';
import { CryptodlError, isNoAnswer } from '../model/errors.js';
import type { Observer } from '../model/observer.js';
import type { Market } from '../model/task.js';
import { durationText } from '../model/units.js';
import type { Options, Verb } from '../options/flags.js';
import { marketsOf } from '../select/select-datasets.js';
import { exchangeInfo, parseHeldInfo, weightBucket } from './exchange-info.js';
import type { ExchangeInfo, TradedSymbol } from './exchange-info.js';
import { RestClient } from './rest-client.js';
import type { Venue } from './venue.js';

export interface Rest {
  readonly client: RestClient;
  /** Symbols that a market's host knows; the limits that it tells are kept from now on. */
  readonly symbols: (market: Market) => Promise<readonly TradedSymbol[]>;
}

export interface RestSessionOptions {
  readonly options: Options;
  readonly venue: Venue;
  readonly fetch: Fetch;
  readonly throttle: Pick<Throttle, 'setBudget'>;
  readonly copies: Copies;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly observer: Observer;
  readonly signal: AbortSignal;
}

export function openRest(session: RestSessionOptions): Rest {
  const { options, venue, fetch, throttle, observer, signal } = session;
  const client = new RestClient({
    fetch,
    urls: { fapi: options.fapiUrl, dapi: options.dapiUrl, spot: options.spotUrl },
    // Whoever moved spot has no other host.
    spotElsewhere: options.spotUrl === venue.hosts.spot ? venue.hosts.spotPublic : undefined,
    priority: options.priority,
    signal,
    warn: (message) => {
      observer.warn(message);
    },
  });
  return {
    client,
    symbols: async (market) => {
      const { symbols, weight } = await infoOf(session, client, market);
      if (weight !== undefined)
        throttle.setBudget(weightBucket(market), { permits: weight.limit, windowMs: weight.windowMs });
      return symbols;
    },
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

/**
 * Rejects while a place that the run will ask is banned; where one source stands in for the other, only while both are.
 * `listing`: its address.
 */
export async function refuseBanned(
  bans: Pick<Bans, 'refuse'>,
  options: Options,
  listing: string,
  verb: Verb,
): Promise<void> {
  const rest = marketsOf(options).flatMap((market) => restPlaces(options, market));
  const archive = [placeOf('archive', options.archiveUrl), placeOf('listing', listing)];
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

/** The host of USD-margined and that of coin-margined futures count together: a ban of one is one of both. */
export function bannedWith(options: Options, url: string): string[] {
  const futures = [options.fapiUrl, options.dapiUrl];
  const isOf = (base: string): boolean => new URL(base).host === new URL(url).host;
  return futures.some(isOf) ? [...new Set([url, ...futures])] : [url];
}

/** Whether somebody else may know: this host does not answer, or not to us. */
export function mayDoWithout(error: unknown): error is CryptodlError {
  return error instanceof CryptodlError && !error.fatal && error.code !== 'wait-too-long';
}

/** `3h 0m ago (2026-11-21 05:00 UTC)`; both in epoch milliseconds. */
export function agoText(at: number, nowMs: number): string {
  const ageMs = Math.max(0, nowMs - at);
  const days = Math.floor(ageMs / DAY_MS);
  const age = days < 2 ? durationText(ageMs) : `${days} days`;
  return `${age} ago (${new Date(at).toISOString().replace('T', ' ').slice(0, 16)} UTC)`;
}
