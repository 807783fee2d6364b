/** An exchange, as the rest of the program knows it. A command gets one, where it is composed. */
import type { AnswerRules } from '../http/exchange-hosts.js';
import type { Body, BodyFormat } from '../http/fetch.js';
import type { Cadence, Market, Period, Series } from '../model/task.js';
import type { HaltFacts } from './facts.js';
import type { ListingFormat } from './listing-format.js';
import type { RestApi } from './rest.js';
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
