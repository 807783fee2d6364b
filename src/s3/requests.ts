/** Sends the requests of the SDK of AWS through the same layers as all other requests. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FetchRequest, FetchResponse, Layer } from '../http/fetch.js';
import { createStack } from '../http/stack.js';
import type { RequestCounts } from '../http/request-counts.js';
import type { LoadObserver, Stack, StackOptions } from '../http/stack.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, isNoAnswer } from '../model/errors.js';
import type { LakeAddress } from '../model/lake-address.js';
import type { Observer } from '../model/observer.js';
import { durationText } from '../model/units.js';
import { proxiesOf } from '../options/environment.js';
import type { Surroundings } from '../options/environment.js';
import type { Options } from '../options/flags.js';
import { errorName, hideIn, HINTS, readRefusals } from './refusals.js';
import type { OnRefusal } from './refusals.js';

export interface RequestOptions {
  readonly address: LakeAddress;
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly signal: AbortSignal;
  readonly counts: RequestCounts;
}

/** The fields of a request of the SDK that count. */
export interface SdkRequest {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  /** Percent-encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
}

interface Signed {
  readonly secrets: Readonly<Record<string, string>>;
  readonly check: (answer: FetchResponse) => void;
}

/** What a caller gives to a request besides the command of the SDK. */
export interface Transfer {
  /** An option that the SDK knows. */
  readonly requestTimeout?: number;
  /** The answer goes to this file. */
  readonly spoolPath?: string;
  readonly maxBytes?: number;
  /** Throws an error for a wrong answer. The request is then sent again if the error is retryable. */
  readonly check?: (answer: FetchResponse) => void;
  readonly onAnswer?: (answer: FetchResponse) => void;
}

/** Requests per second below the limits of AWS: 3,500 writes and 5,500 reads of a prefix (S3 user guide, "Optimizing performance"). */
const REQUESTS_PER_SECOND = 2000;
const BUCKET = 's3';
/** A request waits so long for a bucket that has answered before, besides --retries: its server may restart, and its network may fail for a while. */
const LONGEST_OUTAGE_MS = 2 * 60_000;
const LONGEST_DELAY_MS = 15_000;
/** Requests at once for which there are sockets. */
const MOST_AT_ONCE = 32;
/** Bodies of answers other than objects: pages of a listing, and errors. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;
const HINT = 'check the network and --s3-endpoint';

/** A handler of requests for the SDK, which signs them. Retries, limits, proxies and timeouts are those of the layers. */
export class S3Requests {
  readonly #options: RequestOptions;
  readonly #stack: Stack;
  /** The headers with credentials, by the id of the request. Only the innermost layer adds them, so that no observer sees them. */
  readonly #signed = new Map<string, Signed>();
  #hasAnswered = false;
  #hasWarned = false;

  constructor(options: RequestOptions, onRefusal: OnRefusal) {
    this.#options = options;
    this.#stack = createStack(this.#stackOptions(onRefusal));
  }

  /**
   * Resolves with 200, 404, 412 or 501. Rejects with `lake-refused` or `lake-unreachable`, which end the run, or with another
   * typed error of the request. The body of a GET is only for `onAnswer`.
   */
  async handle(request: SdkRequest, transfer: Transfer = {}) {
    const id = randomUUID();
    const {
      authorization = '',
      'x-amz-security-token': token,
      'user-agent': _,
      ...headers
    } = request.headers;
    const secrets = { authorization, ...(token === undefined ? {} : { 'x-amz-security-token': token }) };
    this.#signed.set(id, { secrets, check: transfer.check ?? refuseError });
    try {
      const fetched = requestOf({ ...request, headers }, transfer);
      const answer = await this.#outlast(() => this.#answered(fetched, id));
      transfer.onAnswer?.(answer);
      const isGiven = request.method === 'GET' && answer.status === 200;
      const body = isGiven || answer.body.kind === 'file' ? Readable.from([]) : answer.body.bytes;
      return { response: { statusCode: answer.status, headers: { ...answer.headers }, body } };
    } catch (error) {
      throw hideIn(error, token);
    } finally {
      this.#signed.delete(id);
    }
  }

  close(): Promise<void> {
    return this.#stack.close();
  }

  async #answered(request: FetchRequest, traceId: string): Promise<FetchResponse> {
    const { address, signal } = this.#options;
    try {
      const answer = await this.#stack.fetch(request, { signal, traceId });
      const name = answer.status === 404 ? errorName(answer.body) : undefined;
      if (name !== 'NoSuchBucket') return answer;
      const hint = HINTS.get(name);
      throw new CryptodlError('lake-refused', `${new URL(request.url).host} answered ${name}`, { hint });
    } catch (error) {
      if (!(error instanceof CryptodlError)) throw error;
      if (error.code === 'lake-refused') {
        error.message = `${address.text}: ${error.message}`;
        throw error;
      }
      if (!isNoAnswer(error) || error.code === 'wait-too-long') throw error;
      const after = error.attempts > 1 ? ` after ${error.attempts} attempts` : '';
      throw new CryptodlError(
        'lake-unreachable',
        `${address.text} cannot be reached${after}: ${error.message}`,
        { cause: error, hint: `${HINT}, and try again; committed files are kept` },
      );
    }
  }

  /** Repeats a request that ends with `lake-unreachable`. A bucket that has never answered is not waited for, because its address may be wrong. */
  async #outlast(request: () => Promise<FetchResponse>): Promise<FetchResponse> {
    const { address, clock, observer, signal, options } = this.#options;
    const longestMs = Math.min(LONGEST_OUTAGE_MS, options.maxWaitMs);
    const until = clock.monotonic() + longestMs;
    for (let delayMs = options.retryMaxDelayMs; ; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
      try {
        const answer = await request();
        this.#hasAnswered = true;
        this.#hasWarned = false;
        return answer;
      } catch (error) {
        const isOutage = error instanceof CryptodlError && error.code === 'lake-unreachable';
        if (!isOutage || !this.#hasAnswered || clock.monotonic() + delayMs > until) throw error;
        if (!this.#hasWarned)
          observer.warn(
            `${address.text} does not answer: requests are repeated for up to ${durationText(longestMs)}`,
          );
        this.#hasWarned = true;
        await clock.sleep(delayMs / 2 + (clock.random() * delayMs) / 2, signal);
      }
    }
  }

  #stackOptions(onRefusal: OnRefusal): StackOptions {
    const { options, surroundings, counts, ...more } = this.#options;
    const url = options.s3Endpoint ?? 'https://s3.amazonaws.com';
    return {
      ...more,
      options: {
        ...options,
        mostInFlight: MOST_AT_ONCE,
        // These limits are those of an exchange.
        limits: [],
        requestIntervalMs: undefined,
        requestsPerMinute: undefined,
      },
      hosts: {
        buckets: { [BUCKET]: { permitsPerSecond: REQUESTS_PER_SECOND, burst: REQUESTS_PER_SECOND } },
        archiveUrl: url,
        listingUrl: url,
        fallbackUrl: undefined,
        restUrls: {},
        knownUrls: [],
        bannedWith: (host) => [host],
        hint: HINT,
        usedPermits: () => 0,
        readRefusal: readRefusals(onRefusal),
      },
      sign: this.#sign,
      proxies: proxiesOf(options.proxy, surroundings),
      bans: { leftMs: () => Promise.resolve(0), record: () => undefined },
      concurrency: NO_LOAD,
      figures: counts,
      followers: [counts],
      stateFolder: undefined,
      isLate: () => false,
    };
  }

  readonly #sign: Layer = (next) => async (request, context) => {
    const { secrets = {}, check } = this.#signed.get(context.traceId) ?? {};
    try {
      const answer = await next({ ...request, headers: { ...request.headers, ...secrets } }, context);
      check?.(answer);
      return answer;
    } catch (error) {
      // A server may answer with what it was sent.
      throw hideIn(error, secrets['x-amz-security-token']);
    }
  };
}

const NO_LOAD: LoadObserver = {
  limit: MOST_AT_ONCE,
  onBegun: () => undefined,
  onEnded: () => undefined,
  onBadContent: () => undefined,
  onWaiting: () => undefined,
};

function requestOf(request: SdkRequest, { spoolPath, maxBytes }: Transfer): FetchRequest {
  const { method, protocol, hostname, port, path, query = {}, headers, body } = request;
  const words = Object.entries(query).map(
    ([name, value]) => `${encoded(name)}=${encoded(String(value ?? ''))}`,
  );
  const host = port === undefined ? hostname : `${hostname}:${port}`;
  const most = maxBytes ?? (spoolPath === undefined ? ANSWER_MAX_BYTES : Number.MAX_SAFE_INTEGER);
  return {
    url: `${protocol}//${host}${path}${words.length === 0 ? '' : `?${words.join('&')}`}`,
    method: method as NonNullable<FetchRequest['method']>,
    bucket: BUCKET,
    headers,
    ...(body === undefined ? {} : { sends: Buffer.from(body as Uint8Array) }),
    ...(spoolPath === undefined ? { spoolAboveBytes: most } : { spoolPath }),
    maxBytes: most,
  };
}

/** S3 may send an error document with status 200 while it puts parts together: it is an error of the server. */
function refuseError({ status, body }: FetchResponse): void {
  const error = status === 200 ? errorName(body) : undefined;
  if (error === undefined) return;
  throw new CryptodlError('http-server-error', `the server answered ${error} with status 200`);
}

/** Encodes all characters except those that are unreserved in RFC 3986, as the signature requires. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
