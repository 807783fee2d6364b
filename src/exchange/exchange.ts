/** The interface of an exchange: its facts, archive, listing and REST. `run/verb/start-verb.ts` passes one to each command that needs it. */
import type { AnswerRules } from '../http/exchange-hosts.js';
import type { Body, BodyFormat } from '../model/fetch.js';
import type { Cadence, Market, Period, Series } from '../model/task.js';
import type { HaltFacts } from './facts.js';
import type { Assets } from './pairs.js';
import type { ExchangeSpec } from './exchange-spec.js';
import type { RestApi } from './rest-api.js';

export interface Exchange extends ExchangeSpec {
  readonly archive: Archive;
  readonly answers: AnswerRules;
  readonly rest: RestApi;
  /** Times without trades in a whole market. */
  halts(): readonly HaltFacts[];
  /** Base and quote asset by symbol, from the text of a saved answer about its symbols; undefined for any other text. */
  parseAssets(text: string): ReadonlyMap<string, Assets> | undefined;
}

export interface Archive {
  /** Prefix of a dataset, with one folder per symbol. */
  datasetPrefix(market: Market, cadence: Cadence, dataset: string): string;
  seriesPrefix(series: Series, cadence: Cadence): string;
  objectKey(series: Series, period: Period): string;
  /** Returns a function that reads the period from a key; undefined for a key that is not of an object of the series. */
  periodOf(series: Series, cadence: Cadence): (key: string) => Period | undefined;
  /** A name between the object of the previous period and that of this period, in the order of the listing. */
  markerBefore(series: Series, period: Period): string;
  /** The first folder of all keys, for example `data`. With `--format zip` it is also a folder of the lake. */
  readonly topFolder: string;
  /** The file ending of objects, for example `.zip`. */
  readonly ending: string;
  readonly listing: ListingFormat;
  /** Requests of `cryptodl doctor`: the address of a listing page, and a small object that every mirror should have. */
  readonly known: { readonly listing: string; readonly key: string };
  readonly packing: Packing;
  /** Undefined if the archive publishes no digests. */
  readonly sidecar: Sidecar | undefined;
}

export interface Packing extends BodyFormat {
  /** Name of the CSV in an object. */
  rowsName(key: string): string;
  /** Unpacks the CSV and checks it against all sizes and checksums of the format. Rejects with a typed error. */
  unpack(body: Body, rowsName: string, options: UnpackOptions): Promise<Body>;
}

export interface UnpackOptions {
  /** File for a CSV larger than `memoryBytes`. The folder exists; an existing file is replaced. */
  readonly spoolPath: string;
  readonly memoryBytes: number;
  /** Largest allowed unpacked size. */
  readonly maxBytes: number;
  /** Largest allowed ratio of unpacked to packed size, for a CSV larger than `memoryBytes`. */
  readonly maxRatio?: number;
  readonly signal?: AbortSignal;
}

/** A small object beside each object, with the SHA-256 of that object. */
export interface Sidecar {
  /** Follows the key of the object. */
  readonly suffix: string;
  textOf(key: string, sha256: string): string;
  /** The digest in lower case; undefined if the text is no sidecar of this object. */
  digestIn(text: string, key: string): string | undefined;
}

export interface ListedObject {
  readonly key: string;
  readonly bytes: number;
  /** Without quotes. */
  readonly etag: string;
  readonly lastModified: string;
  /** ETag of its sidecar; only in copies of listings, which do not list sidecars themselves. */
  readonly sidecarEtag?: string;
}

export interface ListingPage {
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly string[];
  readonly truncated: boolean;
  readonly nextMarker?: string;
  readonly continuationToken?: string;
}

/** Selects a page: names below a prefix, after a marker or at the token of the previous page. */
export interface PageRequest {
  readonly prefix: string;
  readonly marker?: string | undefined;
  readonly token?: string | undefined;
  readonly pageSize?: number | undefined;
}

export interface ListingFormat {
  /** False: the listing ignores markers and begins with the first name of the prefix. */
  readonly startsAnywhere: boolean;
  /** Address of a page, relative to the listing: `/?prefix=…`. */
  address(page: PageRequest): string;
  /** Reads a page. Throws `listing-malformed` for anything but a complete page. */
  parse(body: Buffer, address: string): ListingPage;
}
