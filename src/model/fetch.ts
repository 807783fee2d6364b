/** The types of one request, which its layers pass on and return. */

/** Decides the order of requests when permits are scarce. */
export type Priority = 'high' | 'normal' | 'low';

export interface FetchRequest {
  /** Absolute; every path segment is percent-encoded. */
  readonly url: string;
  /** GET by default. */
  readonly method?: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** Further headers, with names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly sends?: Buffer;
  /** Name of the bucket. The server counts all requests of a bucket together. */
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
  /** Checked on every attempt. */
  readonly expect?: Expectation;
  /** The part of the body that an earlier attempt left at `spoolPath`. Of the same object, the server sends only the rest. */
  readonly partial?: PartialBody | undefined;
}

/** The first part of a body, in a file. */
export interface PartialBody {
  readonly bytes: number;
  /** Strong ETag of the object, with its quotes. */
  readonly etag: string;
}

/** Recognizes a complete packed body before it is unpacked. A page of text and the first part of a body are refused. */
export interface BodyFormat {
  /** For messages: `zip`. */
  readonly name: string;
  /** Whether a body that begins with these bytes can have the format. */
  isStart(head: Buffer): boolean;
  /** Whether the last `tailBytes` of a body contain the end record of the format. */
  hasEnd(tail: Buffer): boolean;
  readonly tailBytes: number;
}

export interface Expectation {
  readonly format?: BodyFormat;
  /** Throws an error for a wrong answer. Called for 404 too. */
  readonly check?: (response: FetchResponse) => void;
  /** Size from the listing; it decides if no digest is known. */
  readonly bytes?: number;
  /** MD5 in hex, from the ETag of the listing. It decides if no SHA-256 is published, else it only explains a difference. */
  readonly md5?: string;
  /** Requests the published SHA-256 in hex. Resolves with undefined if none is published. */
  readonly sha256?: (bypassCache: boolean) => Promise<string | undefined>;
}

/** The progress of an attempt. `uploading`: a chunk of the sent body goes out. Between `paused` and `resumed`, this machine delays the body: its disk is slow, or `--bwlimit` applies. */
export type Sign = 'sent' | 'uploading' | 'headers' | 'bytes' | 'paused' | 'resumed';

/**
 * The reason of a wait. `permit`: the limit of a bucket · `pause`: the host refused with 429 or 418 · `socket` and
 * `socket-of-host`: `--pool-limit` and `--pool-limit-per-host` · `retry-budget`: the retry budget allows no retry now ·
 * `back-off`: the delay before a retry · `retry-after`: the same delay, given by the host · `breaker`: the breaker of the host is
 * open.
 */
export type WaitReason =
  'permit' | 'pause' | 'socket' | 'socket-of-host' | 'retry-budget' | 'back-off' | 'retry-after' | 'breaker';

/** Called when a wait begins. Returns the function to call at its end. */
export type OnWait = (reason: WaitReason) => () => void;

export interface FetchContext {
  readonly signal: AbortSignal;
  /** Aborts with `signal`, and when the run may no longer wait. Requests in flight go on. */
  readonly waitSignal?: AbortSignal;
  /** One id for all attempts of a request. */
  readonly traceId: string;
  /** Id of this attempt, set by the retry layer: `<traceId>/1`, `<traceId>/2`. */
  readonly attemptId?: string;
  /**
   * Set for all attempts but the first. A `retry` takes from the retry budget. An attempt after a wait for a refusal
   * (`pause`) or a `breaker` takes nothing from it, but counts as a retry in flight. The number of retries in flight is limited.
   */
  readonly again?: 'retry' | 'pause' | 'breaker' | undefined;
  readonly onWait?: OnWait;
  /** The end of this attempt by a deadline or by `signal`. Set by the timeout layer; layers inside of it use it instead of `signal`. */
  readonly expiry?: { onOver(act: (reason: unknown) => void): void };
  /** Set by the timeout layer. `value`: the status for the sign `headers`, the length of the received chunk for `bytes`. */
  readonly onActivity?: (sign: Sign, value?: number) => void;
}

export interface AttemptEnd {
  readonly request: FetchRequest;
  readonly attemptId: string;
  /** Times of the monotonic clock. Between `begunAtMs` and `sentAtMs` the attempt waits for a socket. */
  readonly begunAtMs: number;
  readonly sentAtMs: number;
  readonly endedAtMs: number;
  /** From `sentAtMs` to the headers of the answer; undefined without an answer. */
  readonly firstByteMs: number | undefined;
  /** The HTTP status of the answer; undefined without an answer. */
  readonly status: number | undefined;
  /** Undefined for an answered attempt. */
  readonly error: unknown;
}

export type Body =
  | { readonly kind: 'memory'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly path: string; readonly size: number };

/** A complete body. `sha256` is the hex digest of the received bytes. */
export interface FetchResponse {
  /** 412 and 501 only for other methods than GET. 200 stands for each 2xx. */
  readonly status: 200 | 404 | 412 | 501;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  readonly sha256: string;
}

/**
 * Resolves when the body is complete. Rejects with a CryptodlError, with the reason of the signal, or with the original error of
 * the disk or of a bug. 404, 412 and 501 are answers, not errors.
 */
export type Fetch = (request: FetchRequest, context: FetchContext) => Promise<FetchResponse>;

export type Layer = (next: Fetch) => Fetch;

export const bodySize = (body: Body): number => (body.kind === 'memory' ? body.bytes.length : body.size);

/** Host and port of an absolute URL. */
export const hostOf = (url: string): string => new URL(url).host;
