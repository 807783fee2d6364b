/** Who gets the next permit, where permits are scarce. */
export type Priority = 'high' | 'normal' | 'low';

/** One HTTP GET, from the layers' point of view. */
export interface FetchRequest {
  /** Absolute, every path segment percent-encoded. */
  readonly url: string;
  /** Quota bucket: what the server counts together. */
  readonly bucket: string;
  /** Permits that it takes; 1 when nothing is said. */
  readonly weight?: number;
  readonly priority?: Priority;
  /** Bodies larger than `spoolAboveBytes` go to this path instead of memory. */
  readonly spoolPath?: string;
  readonly spoolAboveBytes?: number;
  /** Hard cap; a larger body is an error. */
  readonly maxBytes?: number;
  /** Ask every cache on the way to revalidate. */
  readonly bypassCache?: boolean;
  /** ETag of what is held, with its quotes: a 304 says that it is still so. */
  readonly heldEtag?: string;
  /** What the body must be; checked on every attempt. */
  readonly expect?: Expectation;
  /** What an earlier attempt left at `spoolPath`: only the rest is asked for, if the object is still the same. */
  readonly partial?: PartialBody;
}

/** The beginning of a body, in a file. */
export interface PartialBody {
  readonly bytes: number;
  /** Strong ETag of what it is the beginning of, with its quotes. */
  readonly etag: string;
}

export interface Expectation {
  /** The body must start like a zip. */
  readonly zip: boolean;
  /** Throws what is wrong with an answer; also asked about a 304 or 404. */
  readonly check?: (response: FetchResponse) => void;
  /** Size from the listing: decides when no digest is known. */
  readonly bytes?: number;
  /** MD5 in hex, from an ETag: it decides. */
  readonly md5?: string;
  /** MD5 in hex, from the listing's ETag: it tells what is wrong when another digest differs. */
  readonly listedMd5?: string;
  /** Asks for the published SHA-256, past caches when told so; undefined when none is published. */
  readonly sha256?: (bypassCache: boolean) => Promise<string | undefined>;
}

/** `paused` and `resumed`: our own disk is the slow side meanwhile. */
export type Sign = 'sent' | 'headers' | 'bytes' | 'paused' | 'resumed';

/**
 * What a request that is not on the wire waits for. `permit`: a limit of ours · `pause`: a limit of the host, which refused
 * (429, 418) · `socket` and `socket-of-host`: --pool-limit and --pool-limit-per-host · `retry-after`: the host said for how
 * long · `breaker`: the host is left alone.
 */
export type Wait =
  'permit' | 'pause' | 'socket' | 'socket-of-host' | 'retry-budget' | 'back-off' | 'retry-after' | 'breaker';

/** Told when a wait begins; returns the function to call when it is over. */
export type OnWait = (what: Wait) => () => void;

export interface FetchContext {
  readonly signal: AbortSignal;
  /** Aborts with `signal`, and when nothing is waited for any more: what is on the wire, or has its permit, still goes on. */
  readonly waitSignal?: AbortSignal;
  /** One id for all attempts of a request. */
  readonly traceId: string;
  /** Of this attempt, set by the retry layer: `<traceId>/1`, `<traceId>/2`. */
  readonly attemptId?: string;
  /**
   * Not the first attempt: a `retry` costs the host one; after a wait for a limit or an open breaker (`waited`) it costs
   * nothing, but many are let go together, and only a few at once may leave.
   */
  readonly again?: 'retry' | 'waited' | undefined;
  readonly onWait?: OnWait;
  /** Set by the timeout layer: told of every sign of life on the wire, and of pauses that are ours. */
  readonly onActivity?: (what: Sign, bytes?: number) => void;
}

/** How one attempt on the wire went. */
export interface AttemptEnd {
  readonly request: FetchRequest;
  readonly attemptId: string;
  /** On the monotonic clock, like all moments here. Until `sentAt` it waits for a socket. */
  readonly begunAt: number;
  readonly sentAt: number;
  readonly endedAt: number;
  /** From the sending to the first byte of the answer; undefined when none came. */
  readonly firstByteMs: number | undefined;
  /** Undefined: it was answered. */
  readonly error: unknown;
}

export type Body =
  | { readonly kind: 'memory'; readonly bytes: Buffer }
  | { readonly kind: 'file'; readonly path: string; readonly size: number };

/** A complete body: `sha256` and `md5` are hex digests of what arrived. */
export interface FetchResponse {
  /** 304 only where `heldEtag` was given. */
  readonly status: 200 | 304 | 404;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  readonly sha256: string;
  readonly md5?: string;
}

/**
 * Resolves when the body is complete; rejects with a CryptodlError. 304 and 404 are answers, not errors.
 */
export type Fetch = (request: FetchRequest, context: FetchContext) => Promise<FetchResponse>;

export type Layer = (next: Fetch) => Fetch;

export function bodySize(body: Body): number {
  return body.kind === 'memory' ? body.bytes.length : body.size;
}

const HOSTS = new Map<string, string>();

/** Host and port of an absolute URL: looked into once per origin, because several layers ask for every attempt. */
export function hostOf(url: string): string {
  const end = url.indexOf('/', url.indexOf('//') + 2);
  const origin = end < 0 ? url : url.slice(0, end);
  const known = HOSTS.get(origin);
  if (known !== undefined) return known;
  const { host } = new URL(url);
  HOSTS.set(origin, host);
  return host;
}
