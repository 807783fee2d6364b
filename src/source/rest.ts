/** REST of an exchange, as a run uses it. */
import type { Fetch } from '../http/fetch.js';
import type { Copies } from '../http/response-cache.js';
import type { Throttle } from '../http/throttle/throttle.js';
import type { Observer } from '../model/observer.js';
import type { Market, Series } from '../model/task.js';
import type { Options } from '../options/flags.js';
import type { RouteSpec } from './facts.js';
import type { Page, Span } from './rest-rows.js';

/** REST of an exchange: its hosts, and what is asked of them. */
export interface RestApi {
  /** Address of each host, by the flag that moves it: `fapi-url`. */
  urls(options: Options): Readonly<Record<string, string>>;
  /** What a ban is remembered for where REST of a market is asked: `futures fapi.binance.com`. */
  places(options: Options, market: Market): readonly string[];
  /** The addresses that are banned when this one is, itself included. */
  bannedWith(options: Options, url: string): readonly string[];
  open(session: RestSessionOptions): Rest;
  /** What a symbol is a contract of: `BTCUSD` of `BTCUSD_PERP`. */
  pairOf(symbol: string): string;
  /** The perpetual contract of a pair. */
  perpetualOf(pair: string): string;
  /** Whether a symbol is the perpetual contract of its pair. */
  isPerpetual(market: Market, symbol: string): boolean;
}

export interface RestSessionOptions {
  readonly options: Options;
  readonly fetch: Fetch;
  readonly throttle: Pick<Throttle, 'setBudget'>;
  readonly copies: Copies;
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
  /** Symbols that a market's host knows; the limits that it tells are kept from now on. */
  symbols(market: Market): Promise<readonly TradedSymbol[]>;
  /** Pages of one series over a span of time. */
  pages(route: RouteSpec, series: Series, span: Span): AsyncGenerator<Page>;
}
