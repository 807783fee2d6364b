/** Signed requests to one bucket, through the same layers as all other requests. */
import { createHash, randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import type { Expectation, FetchRequest, FetchResponse, SentBody } from '../http/fetch.js';
import type { ExchangeHosts } from '../http/exchange-hosts.js';
import { backoffOf, createStack } from '../http/stack.js';
import type { RequestCounts } from '../http/request-counts.js';
import type { LoadObserver, RequestTimes, Stack, StackOptions } from '../http/stack.js';
import type { Clock } from '../model/clock.js';
import { CryptodlError, isNoAnswer } from '../model/errors.js';
import type { LakeAddress } from '../model/lake-address.js';
import type { Observer } from '../model/observer.js';
import { proxiesOf } from '../options/environment.js';
import type { Surroundings } from '../options/environment.js';
import type { Options } from '../options/flags.js';
import type { CredentialSource } from './credentials.js';
import { Outages } from './outages.js';
import { errorName, hintAfter, readRefusals } from './refusals.js';
import { Secrets } from './secrets.js';
import { DIGEST_HEADER, sign } from './sign.js';

export interface S3Options {
  readonly address: LakeAddress;
  readonly endpoint: string | undefined;
  readonly region: string;
  readonly credentials: CredentialSource;
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly signal: AbortSignal;
  readonly counts: RequestCounts;
}

export interface S3Request {
  readonly method: NonNullable<FetchRequest['method']>;
  /** The whole key, with the prefix of the lake; empty for the bucket. */
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly sends?: SentBody;
  /** SHA-256 of the sent file in hex. */
  readonly sha256?: string;
  /** The answer goes to this file. */
  readonly spoolPath?: string;
  readonly maxBytes?: number;
  /** Throws an error for a wrong answer. The request is then sent again if the error is retryable. */
  readonly check?: Expectation['check'];
}

/** Requests per second below the limits of AWS: 3,500 writes and 5,500 reads of a prefix (S3 user guide, "Optimizing performance"). */
const REQUESTS_PER_SECOND = 2000;
const BUCKET = 's3';
/** A request waits so long for a bucket that has answered before, besides --retries. */
const LONGEST_OUTAGE_MS = 2 * 60_000;
/** Requests at once for which there are sockets. */
const MOST_AT_ONCE = 32;
/** Bodies of answers other than objects: pages of a listing, and errors. */
const ANSWER_MAX_BYTES = 16 * 1024 * 1024;

export class S3Requests {
  readonly #options: S3Options;
  readonly #stack: Stack;
  readonly #outages: Outages;
  readonly #secrets = new Secrets();
  #region: string;
  /** Increases when an answer changes the region or the credentials. */
  #changes = 0;

  constructor(options: S3Options) {
    this.#options = options;
    this.#region = options.region;
    this.#stack = createStack(this.#stackOptions());
    const { address, clock, signal, observer } = options;
    const { maxWaitMs, retryMaxDelayMs } = options.options;
    this.#outages = new Outages({
      clock,
      signal,
      address: address.text,
      longestMs: Math.min(LONGEST_OUTAGE_MS, maxWaitMs),
      firstDelayMs: retryMaxDelayMs,
      warn: (message) => {
        observer.warn(message);
      },
    });
  }

  get place(): S3Place {
    const { address, endpoint } = this.#options;
    return { bucket: address.bucket, endpoint, region: this.#region };
  }

  /**
   * Resolves with 200, 404, 412 or 501. Rejects with `lake-refused` or `lake-unreachable`, which end the run, or with another
   * typed error of the request.
   */
  send(request: S3Request): Promise<FetchResponse> {
    return this.#outages.outlast(() => this.#answered(request));
  }

  async #answered(request: S3Request): Promise<FetchResponse> {
    const changes = this.#changes;
    try {
      return await this.#once(request);
    } catch (error) {
      if (this.#changes === changes) throw this.#explained(error);
    }
    try {
      return await this.#once(request);
    } catch (error) {
      throw this.#explained(error);
    }
  }

  /** Fetches an object into a file. */
  async receive(request: S3Request & { readonly spoolPath: string }): Promise<FetchResponse> {
    const response = await this.send({ maxBytes: Number.MAX_SAFE_INTEGER, ...request });
    const { spoolPath: path } = request;
    if (response.status !== 200) await rm(path, { force: true });
    else if (response.body.kind === 'memory') await writeFile(path, response.body.bytes);
    return response;
  }

  close(): Promise<void> {
    return this.#stack.close();
  }

  async #once(request: S3Request): Promise<FetchResponse> {
    const { method, key, query = {}, headers = {}, sends, spoolPath, check } = request;
    const { maxBytes = ANSWER_MAX_BYTES, sha256 = sha256Of(sends) } = request;
    const response = await this.#stack.fetch(
      {
        url: requestUrl(this.place, key, query),
        method,
        bucket: BUCKET,
        headers: { ...headers, [DIGEST_HEADER]: sha256 },
        ...(sends === undefined ? {} : { sends }),
        ...(spoolPath === undefined ? { spoolAboveBytes: maxBytes } : { spoolPath }),
        maxBytes,
        ...(check === undefined ? {} : { expect: { check: this.#secrets.hiding(check) } }),
      },
      { signal: this.#options.signal, traceId: randomUUID() },
    );
    const name = response.status === 404 ? errorName(textOf(response)) : undefined;
    if (name === 'NoSuchBucket') throw this.refused(name);
    return response;
  }

  /** The error that ends the run after an answer with this code. */
  refused(name: string): CryptodlError {
    const { host } = new URL(bucketUrl(this.place));
    return new CryptodlError(
      'lake-refused',
      `${this.#options.address.text}: ${host} answered ${this.#secrets.hiddenIn(name)}`,
      {
        hint: hintAfter(name),
      },
    );
  }

  #explained(error: unknown): unknown {
    const { text } = this.#options.address;
    this.#secrets.hideIn(error);
    if (!(error instanceof CryptodlError)) return error;
    if (error.code === 'lake-refused' && !error.message.startsWith(`${text}: `))
      return new CryptodlError('lake-refused', `${text}: ${error.message}`, {
        cause: error,
        hint: error.hint,
      });
    if (!isNoAnswer(error) || error.code === 'wait-too-long') return error;
    const after = error.attempts > 1 ? ` after ${error.attempts} attempts` : '';
    return new CryptodlError('lake-unreachable', `${text} cannot be reached${after}: ${error.message}`, {
      cause: error,
      hint: 'check the network and --s3-endpoint, and try again; committed files are kept',
    });
  }

  #stackOptions(): StackOptions {
    const { options, credentials, surroundings, clock, observer, signal, counts } = this.#options;
    return {
      options: {
        ...options,
        mostInFlight: MOST_AT_ONCE,
        // These limits are those of an exchange.
        limits: [],
        requestIntervalMs: undefined,
        requestsPerMinute: undefined,
      },
      backoff: backoffOf(options),
      clock,
      observer,
      signal,
      hosts: this.#hosts(),
      sign: sign({
        credentials,
        clock,
        region: () => this.#region,
        secrets: this.#secrets,
        shown: `${this.#options.address.text} ${bucketUrl(this.place)}`,
      }),
      proxies: proxiesOf(options.proxy, surroundings),
      bans: { leftMs: () => Promise.resolve(0), record: () => undefined },
      concurrency: NO_LOAD,
      figures: counts,
      costs: counts.costs,
      times: NO_TIMES,
      stateFolder: undefined,
      isLate: () => false,
    };
  }

  #hosts(): ExchangeHosts {
    const url = bucketUrl(this.place);
    return {
      buckets: { [BUCKET]: { permitsPerSecond: REQUESTS_PER_SECOND, burst: REQUESTS_PER_SECOND } },
      archiveUrl: url,
      listingUrl: url,
      fallbackUrl: undefined,
      restUrls: {},
      knownUrls: [],
      bannedWith: (host) => [host],
      hint: 'check the network and --s3-endpoint',
      usedPermits: () => 0,
      readRefusal: readRefusals({
        onRegion: (region) => {
          this.#follow(region);
        },
        onExpired: () => {
          this.#options.credentials.forget();
          this.#changes += 1;
        },
      }),
    };
  }

  #follow(region: string): void {
    if (region === this.#region) return;
    const { address, observer } = this.#options;
    observer.warn(
      `the bucket ${address.bucket} is in the region ${region}, not in ${this.#region}: requests go there; give --s3-region ${region}`,
    );
    this.#region = region;
    this.#changes += 1;
  }
}

function sha256Of(sends: SentBody | undefined): string {
  if (sends?.kind === 'file') throw new CryptodlError('bug', 'a file is sent without its digest');
  return createHash('sha256')
    .update(sends?.bytes ?? '')
    .digest('hex');
}

/** The header in which an object keeps the SHA-256 of its bytes. The ETag is no digest after a multipart upload or with encryption. */
export const SHA256_HEADER = 'x-amz-meta-sha256';

/** Without its quotes; empty if the answer has none. */
export function etagOf({ headers }: FetchResponse): string {
  return (headers['etag'] ?? '').replaceAll('"', '');
}

export function textOf({ body }: FetchResponse): string {
  return body.kind === 'memory' ? body.bytes.toString('utf8') : '';
}

const NO_LOAD: LoadObserver = {
  limit: MOST_AT_ONCE,
  onBegun: () => undefined,
  onEnded: () => undefined,
  onBadContent: () => undefined,
  onWaiting: () => undefined,
};

const NO_TIMES: RequestTimes = { layer: (next) => next, onAttempt: () => undefined };

/** The server of a bucket. */
export interface S3Place {
  readonly bucket: string;
  /** The address of a server that has the bucket in the path; undefined for AWS. Without a slash at its end. */
  readonly endpoint: string | undefined;
  readonly region: string;
}

/** The base address of all objects of a bucket, without a slash at its end. */
export function bucketUrl({ bucket, endpoint, region }: S3Place): string {
  if (endpoint !== undefined) return `${endpoint}/${bucket}`;
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  // The certificate of AWS covers one label before `s3`.
  return bucket.includes('.')
    ? `https://s3.${region}.${domain}/${bucket}`
    : `https://${bucket}.s3.${region}.${domain}`;
}

/** The URL of an object, or of the bucket without a key. */
export function requestUrl(place: S3Place, key: string, query: Readonly<Record<string, string>>): string {
  const path = key.split('/').map(encoded).join('/');
  const words = Object.entries(query).map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  return `${bucketUrl(place)}/${path}${words.length === 0 ? '' : `?${words.join('&')}`}`;
}

/** Encodes all characters except those that are unreserved in RFC 3986, as the signature requires. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
