/** One request: what the layers pass on, and what they return. */

/** The order of requests when permits are scarce. */
export type Priority = 'high' | 'normal' | 'low';

/** One HTTP GET, as the layers see it. */
export interface FetchRequest {
  /** Absolute, every path segment percent-encoded. */
  readonly url: string;
  /** Name of the bucket: the server counts its requests together. */
  readonly bucket: string;
  /** Permits that the request takes; 1 by default. */
  readonly weight?: number;
  readonly priority?: Priority;
  /** Bodies larger than `spoolAboveBytes` go to this path instead of memory. */
  readonly spoolPath?: string;
  readonly spoolAboveBytes?: number;
  /** A larger body is an error. */
  readonly maxBytes?: number;
  /** Asks caches on the way to revalidate. */
  readonly bypassCache?: boolean;
  /** ETag of the held answer, with its quotes. The server answers 304 if it is still valid. */
  readonly heldEtag?: string | undefined;
  /** Expectations of the body, checked on every attempt. */
  readonly expect?: Expectation;
  /** The part of the body that an earlier attempt left at `spoolPath`. Only the rest is requested if the object is the same. */
  readonly partial?: PartialBody;
}

/** The first part of a body, in a file. */
export interface PartialBody {
  readonly bytes: number;
  /** Strong ETag of the object, with its quotes. */
  readonly etag: string;
}

/** How a packed body is told from a page of text, and from a part of itself, before it is unpacked. */
export interface BodyFormat {
  /** For messages: `zip`. */
  readonly name: string;
  isStart(head: Buffer): boolean;
  /** Whether the last `tailBytes` of a body have the end of the format. */
  hasEnd(tail: Buffer): boolean;
  readonly tailBytes: number;
}

export interface Expectation {
  /** What the body must be packed in. */
  readonly format?: BodyFormat;
  /** Throws an error for a wrong answer; called for 304 and 404 too. */
  readonly check?: (response: FetchResponse) => void;
  /** Size from the listing; it decides if no digest is known. */
  readonly bytes?: number;
  /** MD5 in hex, from an ETag; a difference is an error. */
  readonly md5?: string;
  /** MD5 in hex, from the ETag of the listing; it explains the difference of another digest. */
  readonly listedMd5?: string;
  /** Requests the published SHA-256, past caches if asked; undefined if none is published. */
  readonly sha256?: (bypassCache: boolean) => Promise<string | undefined>;
}

/** Signs of an attempt. Between `paused` and `resumed`, the disk of this machine is slower than the host. */
export type Sign = 'sent' | 'headers' | 'bytes' | 'paused' | 'resumed';

/**
 * The reason of a wait. `permit`: a limit of this run · `pause`: the host refused with 429 or 418 · `socket` and
 * `socket-of-host`: the limits of sockets · `retry-after`: the host told the wait · `breaker`: the breaker of the host is
 * open.
 */
export type Wait =
  'permit' | 'pause' | 'socket' | 'socket-of-host' | 'retry-budget' | 'back-off' | 'retry-after' | 'breaker';

/** Called when a wait begins. Returns the function to call at its end. */
export type OnWait = (what: Wait) => () => void;

export interface FetchContext {
  readonly signal: AbortSignal;
  /** Aborts with `signal`, and when waiting ends. Requests that are in flight or have a permit go on. */
  readonly waitSignal?: AbortSignal;
  /** One id for all attempts of a request. */
  readonly traceId: string;
  /** Id of this attempt, set by the retry layer: `<traceId>/1`, `<traceId>/2`. */
  readonly attemptId?: string;
  /**
   * Set for all attempts but the first. A `retry` takes from the retry budget. An attempt after a wait for a limit or a
   * breaker (`waited`) takes nothing, but only a few of them may start at once.
   */
  readonly again?: 'retry' | 'waited' | undefined;
  readonly onWait?: OnWait;
  /** Set by the timeout layer: called for each sign of life of the host, and for pauses of this machine. */
  readonly onActivity?: (what: Sign, bytes?: number) => void;
}

/** The end of one attempt. */
export interface AttemptEnd {
  readonly request: FetchRequest;
  readonly attemptId: string;
  /** All times are of the monotonic clock. Between `begunAt` and `sentAt` the attempt waits for a socket. */
  readonly begunAt: number;
  readonly sentAt: number;
  readonly endedAt: number;
  /** From the request to the first byte of the answer; undefined without an answer. */
  readonly firstByteMs: number | undefined;
  /** Undefined for an answered attempt. */
  readonly error: unknown;
}

export type Body =
  | { readonly kind: 'memory'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly path: string; readonly size: number };

/** A complete body. `sha256` and `md5` are hex digests of the received bytes. */
export interface FetchResponse {
  /** 304 only with `heldEtag`. */
  readonly status: 200 | 304 | 404;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  readonly sha256: string;
  readonly md5?: string;
}

/**
 * Resolves when the body is complete. Rejects with a CryptodlError. 304 and 404 are answers, not errors.
 */
export type Fetch = (request: FetchRequest, context: FetchContext) => Promise<FetchResponse>;

export type Layer = (next: Fetch) => Fetch;

export function bodySize(body: Body): number {
  return body.kind === 'memory' ? body.bytes.length : body.size;
}

/** Host and port of an absolute URL. */
export function hostOf(url: string): string {
  return new URL(url).host;
}
