/** The interface of an exchange's REST. */
import type { Fetch, Priority } from '../model/fetch.js';
import type { ResponseCache } from '../http/response-cache.js';
import type { Throttle } from '../http/throttle/throttle.js';
import type { Observer } from '../model/observer.js';
import type { Market, Series } from '../model/task.js';
import type { RouteSpec } from './facts.js';
import type { Assets } from './pairs.js';
import type { Page, TimeSpan } from './rest-rows.js';

export interface Addresses {
  readonly archiveUrl: string;
  readonly listingUrl: string;
  readonly fallbackUrl: string | undefined;
  readonly fapiUrl: string;
  readonly dapiUrl: string;
  readonly spotUrl: string;
}

export interface RestApi {
  /** Address of each host, by the name of the option that replaces it: `fapi-url`. */
  urls(addresses: Addresses): Readonly<Record<string, string>>;
  /** The names under which bans of a market's REST are recorded: `futures fapi.binance.com`. */
  places(addresses: Addresses, market: Market): readonly string[];
  /** The addresses that are banned together with this one, itself included. */
  bannedWith(addresses: Addresses, url: string): readonly string[];
  open(context: RestContext): Rest;
  isPerpetual(market: Market, symbol: string): boolean;
  /** Base and quote asset by symbol, from a saved answer about the symbols; undefined for any other text. */
  assetsIn(text: string): ReadonlyMap<string, Assets> | undefined;
}

export interface RestContext {
  readonly options: Addresses & { readonly priority: Priority };
  readonly fetch: Fetch;
  readonly throttle: Pick<Throttle, 'setBudget'>;
  readonly copies: ResponseCache;
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly observer: Observer;
  readonly signal: AbortSignal;
}

export interface TradedSymbol {
  readonly symbol: string;
  readonly status: string;
  /** Empty for spot, and for some symbols that are not traded yet. */
  readonly contractType: string;
}

export interface Rest {
  /** The symbols of a market. Also takes the request limits from the answer of the host. */
  symbols(market: Market): Promise<readonly TradedSymbol[]>;
  pages(route: RouteSpec, series: Series, span: TimeSpan): AsyncGenerator<Page>;
}
