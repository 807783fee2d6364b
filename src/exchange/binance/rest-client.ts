/** A client for REST: sends requests through the layers of http/ and checks each JSON answer. */
import { CryptodlError } from '../../model/errors.js';
import type { Fetch, Priority } from '../../model/fetch.js';
import { fetchDocument } from '../../http/fetch-document.js';

export interface RestOptions {
  readonly fetch: Fetch;
  /** By the name of the host: `fapi`. */
  readonly urls: Readonly<Record<string, string>>;
  /** Address of a second spot host, used if the first one does not serve this location; undefined without a second one. */
  readonly otherSpotUrl: string | undefined;
  readonly priority: Priority;
  readonly signal: AbortSignal;
  readonly warn: (message: string) => void;
}

export interface RestRequest {
  readonly host: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string | number>>;
  readonly bucket: string;
  readonly weight: number;
}

/** `servedAtMs`: the time of the host in epoch milliseconds; NaN if the answer does not tell. */
type Read<T> = (content: unknown, servedAtMs: number) => T;

/** Every recorded page and `exchangeInfo` is smaller. */
const MAX_BYTES = 64 * 1024 * 1024;

export class RestClient {
  readonly #urls: Map<string, string>;
  /** Hosts that do not serve this location, with their error. They get no further request. */
  readonly #restricted = new Map<string, CryptodlError>();

  constructor(private readonly options: RestOptions) {
    this.#urls = new Map(Object.entries(options.urls));
  }

  /** Requests and parses an answer. If `read` throws a retryable error, the request is retried. */
  async get<T>(request: RestRequest, read: Read<T>): Promise<T> {
    const base = this.#urls.get(request.host) ?? '';
    const known = this.#restricted.get(base);
    if (known !== undefined) throw known;
    try {
      return await this.#request(base, request, read);
    } catch (error) {
      if (!(error instanceof CryptodlError) || error.code !== 'location-restricted') throw error;
      const { otherSpotUrl } = this.options;
      if (request.host !== 'spot' || otherSpotUrl === undefined || base === otherSpotUrl) {
        const hinted = error.with({ hint: RESTRICTED_HINT });
        this.#restricted.set(base, hinted);
        throw hinted;
      }
      if (this.#urls.get(request.host) === base)
        this.options.warn(`${error.message}: requests go to ${otherSpotUrl} instead`);
      this.#urls.set(request.host, otherSpotUrl);
      return this.get(request, read);
    }
  }

  #request<T>(base: string, request: RestRequest, read: Read<T>): Promise<T> {
    const query = Object.entries(request.query).map(
      ([name, value]) => `${name}=${encodeURIComponent(value)}`,
    );
    const url = `${base}${request.path}${query.length === 0 ? '' : `?${query.join('&')}`}`;
    const { bucket, weight } = request;
    return fetchDocument(
      this.options,
      { url, bucket, weight, priority: this.options.priority, maxBytes: MAX_BYTES },
      (bytes, headers) => read(parsed(bytes, request.path), Date.parse(headers['date'] ?? '')),
      () =>
        new CryptodlError('http-refused', `${new URL(base).host} has no ${request.path}`, {
          hint: `check --${request.host}-url`,
        }),
    );
  }
}

const RESTRICTED_HINT =
  'cryptodl vision and cryptodl list use the archive, another host. It has funding rates and metrics too, a day or a month later';

function parsed(bytes: Buffer, path: string): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown;
  } catch (error) {
    const start = JSON.stringify(bytes.subarray(0, 40).toString('utf8'));
    throw new CryptodlError(
      'answer-malformed',
      `${path} did not answer in JSON: the answer starts with ${start}`,
      { cause: error },
    );
  }
}
