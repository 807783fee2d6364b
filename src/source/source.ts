/**
 * An exchange, as the rest of the program knows it: its facts, archive, listing and REST. A command gets one, where it is
 * composed.
 */
import type { AnswerRules } from '../http/exchange-hosts.js';
import type { Body, BodyFormat, Fetch } from '../http/fetch.js';
import type { Copies } from '../http/response-cache.js';
import type { Throttle } from '../http/throttle/throttle.js';
import type { Observer } from '../model/observer.js';
import type { Cadence, Market, Period, Series } from '../model/task.js';
import type { Options } from '../options/flags.js';
import type { HaltFacts, RouteSpec } from './facts.js';
import type { Page, Span } from './rest-rows.js';
import type { Venue } from './venue.js';

export interface Source extends Venue {
  readonly archive: Archive;
  readonly answers: AnswerRules;
  readonly rest: RestApi;
  /** Times in which nothing was traded in a whole market. */
  halts(): readonly HaltFacts[];
}

/** The archive: how its objects are called, listed, packed and vouched for. */
export interface Archive {
  /** Prefix under which a dataset lists one folder per symbol. */
  datasetPrefix(market: Market, cadence: Cadence, dataset: string): string;
  /** Prefix under which all objects of a series lie. */
  seriesPrefix(series: Series, cadence: Cadence): string;
  objectKey(series: Series, period: Period): string;
  /** Reads the periods of a series' keys; undefined for every other name, such as that of a sidecar. */
  periodOf(series: Series, cadence: Cadence): (key: string) => Period | undefined;
  /** A name that is listed before the object of this period and behind the object of the period before. */
  markerBefore(series: Series, period: Period): string;
  /** Symbols with objects of every day, as the datasets of a market call them. */
  steadySymbols(market: Market): readonly string[];
  /** The end of the names of objects: `.zip`. */
  readonly ending: string;
  readonly listing: ListingFormat;
  /** What `cryptodl doctor` asks for: the address of a page that lists objects, and a small object that every copy should have. */
  readonly known: { readonly listing: string; readonly key: string };
  readonly packing: Packing;
  /** Undefined when the archive publishes no digests. */
  readonly sidecar: Sidecar | undefined;
}

/** What an object is packed in. */
export interface Packing extends BodyFormat {
  /** Name of the rows in an object, for messages and for containers of several members. */
  rowsName(key: string): string;
  /** The rows, checked against all that the container says. Rejects with a typed error. */
  unpack(body: Body, rowsName: string, options: UnpackOptions): Promise<Body>;
}

export interface UnpackOptions {
  /** Where rows that are larger than `memoryBytes` go; the folder exists, a leftover file is replaced. */
  readonly spoolPath: string;
  readonly memoryBytes: number;
  /** Hard cap of the unpacked size. */
  readonly maxBytes: number;
  /** Unpacked to packed, for rows that are larger than `memoryBytes`. */
  readonly maxRatio?: number;
  /** Gets the chunks of rows that are larger than `memoryBytes`; what it throws ends the unpacking. */
  readonly onChunk?: (chunk: Buffer) => void;
  readonly signal?: AbortSignal;
}

/** A small object beside each object, with its SHA-256. */
export interface Sidecar {
  /** Behind the key of the object. */
  readonly suffix: string;
  /** What is published beside an object. */
  textOf(key: string, sha256: string): string;
  /** The digest in lower case; undefined for a text that is no sidecar of this object. */
  digestIn(text: string, key: string): string | undefined;
}

export interface ListedObject {
  readonly key: string;
  readonly bytes: number;
  /** Without quotes. */
  readonly etag: string;
  readonly lastModified: string;
  /** Of its sidecar; only in copies, which have no sidecars of their own. */
  readonly sidecarEtag?: string;
}

export interface ListingPage {
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly string[];
  readonly truncated: boolean;
  readonly nextMarker?: string;
  readonly continuationToken?: string;
}

/** Which page is asked for: names below a prefix, behind a marker or where a token of the page before leads. */
export interface PageRequest {
  readonly prefix: string;
  readonly marker?: string | undefined;
  readonly token?: string | undefined;
  readonly pageSize?: number | undefined;
}

/** How an archive lists its objects. */
export interface ListingFormat {
  /** False: every page begins with the first name of its prefix, whatever the marker. */
  readonly startsAnywhere: boolean;
  /** Address of a page below that of the listing: `/?prefix=…`. */
  address(page: PageRequest): string;
  /** The page that was answered at an address. Throws `listing-malformed` for anything that is not one, whole. */
  parse(body: Buffer, address: string): ListingPage;
}

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
