/** A lake's folder in a bucket: list, get, put, head and remove objects. */
import { byKey } from '../source/keys.js';
import type { FetchResponse } from '../http/fetch.js';
import { CryptodlError } from '../model/errors.js';
import { isPlainKey } from '../model/lake-address.js';
import type { LakeAddress } from '../model/lake-address.js';
import { bytesText } from '../model/units.js';
import { parseListing } from '../source/s3-listing.js';
import type { ListingPage } from '../source/source.js';
import { ageMsOf, changedElsewhere, Conditions } from './conditions.js';
import type { BucketObject, PutCondition } from './conditions.js';
import type { MultipartSizes } from './multipart.js';
import { putObject } from './put-object.js';
import { errorName, NO_LIST } from './refusals.js';
import { etagOf, SHA256_HEADER, textOf } from './requests.js';
import type { S3Request, S3Requests } from './requests.js';

/** Keys are relative to the folder of the lake, with `/`. */
export interface Bucket {
  /** `s3://bucket/prefix`, for messages. */
  readonly address: string;
  /** False after the server has refused conditional writes. They are compared then, which leaves time for another writer. */
  readonly hasConditions: boolean;
  /** The objects whose keys begin with `prefix`. Keys that cannot be paths of files are left out, with one warning. */
  list(prefix: string): AsyncGenerator<BucketObject>;
  /**
   * Writes the whole object to a file. Undefined: there is none. Rejects with `body-damaged` if its bytes are not those of the digest that
   * this program stored with it, unless the caller `compares` them itself and a second attempt brings the same bytes. Rejects with
   * `lake-refused` if it is larger than `maxBytes`.
   */
  get(
    key: string,
    path: string,
    options?: { readonly compares?: boolean; readonly maxBytes?: number | undefined },
  ): Promise<BucketObject | undefined>;
  /**
   * Stores a file and compares its size in the bucket. Rejects with `lake-conflict` if the condition does not hold; the same bytes
   * from another writer are no conflict.
   */
  put(key: string, path: string, condition?: PutCondition): Promise<{ readonly etag: string }>;
  head(key: string): Promise<BucketObject | undefined>;
  /**
   * An absent object is no error. `etag`: only this version. Rejects with `lake-conflict` for another version, if the server has a condition
   * for this.
   */
  remove(key: string, etag?: string): Promise<void>;
  close(): Promise<void>;
}

export interface BucketOptions {
  readonly address: LakeAddress;
  readonly requests: S3Requests;
  readonly warn: (message: string) => void;
  readonly multipart: MultipartSizes;
}

export class S3Bucket implements Bucket {
  readonly address: string;
  readonly #options: BucketOptions;
  readonly #conditions: Conditions;
  #hasWarned = false;

  constructor(options: BucketOptions) {
    this.#options = options;
    this.address = options.address.text;
    this.#conditions = new Conditions(this.address, options.warn);
  }

  get hasConditions(): boolean {
    return this.#conditions.isSupported;
  }

  async *list(prefix: string): AsyncGenerator<BucketObject> {
    const base = this.#options.address.prefix;
    const progress = new PageProgress();
    for (let token: string | undefined = ''; token !== undefined;) {
      const query: Record<string, string> = {
        'list-type': '2',
        'encoding-type': 'url',
        prefix: base + prefix,
        ...(token === '' ? {} : { 'continuation-token': token }),
      };
      const { page, date } = await this.#page(query);
      const { objects, truncated, continuationToken } = page;
      for (const object of objects) {
        if (!object.key.startsWith(base + prefix))
          throw new CryptodlError(
            'listing-malformed',
            `${this.address}: the listing of ${prefix} has an object outside of it: ${object.key.slice(0, 200)}`,
          );
        const key = object.key.slice(base.length);
        if (isPlainKey(key)) yield { ...object, key, ageMs: ageMsOf(object.lastModified, date) };
        else this.#warnOf(key);
      }
      const continues = progress.continues(objects.map((object) => object.key));
      if (truncated && (continuationToken === undefined || !continues))
        throw new CryptodlError(
          'listing-malformed',
          `${this.address}: a listing does not say how it continues, or has no end`,
        );
      token = truncated ? continuationToken : undefined;
    }
  }

  async get(
    key: string,
    path: string,
    {
      compares = false,
      maxBytes,
    }: { readonly compares?: boolean; readonly maxBytes?: number | undefined } = {},
  ): Promise<BucketObject | undefined> {
    let wrong: string | undefined;
    const request = this.#options.requests.receive({
      method: 'GET',
      key: this.#keyOf(key),
      spoolPath: path,
      ...(maxBytes === undefined ? {} : { maxBytes }),
      check: ({ status, headers, sha256 }) => {
        const stored = headers[SHA256_HEADER];
        if (status !== 200 || stored === undefined || stored === sha256) return;
        // The bytes were not changed on their way: the object has them.
        if (compares && wrong === sha256) return;
        wrong = sha256;
        throw new CryptodlError(
          'body-damaged',
          `${this.address}/${key}: SHA-256 is ${sha256}, the bucket says ${stored}`,
          {
            hint: 'if another attempt does not help, the object was changed in the bucket; cryptodl verify --fix moves damaged data files into the quarantine',
          },
        );
      },
    });
    const response = await request.catch(async (error: unknown) => {
      throw (await this.#tooLarge(key, maxBytes, error)) ?? error;
    });
    const size = response.body.kind === 'file' ? response.body.size : response.body.bytes.length;
    return response.status === 200 ? objectOf(key, response, size) : undefined;
  }

  /** The reason that a GET failed, if it is the size of the object. */
  async #tooLarge(
    key: string,
    maxBytes: number | undefined,
    error: unknown,
  ): Promise<CryptodlError | undefined> {
    if (maxBytes === undefined || !(error instanceof CryptodlError) || error.code !== 'length-mismatch')
      return undefined;
    const { bytes = 0 } = (await this.head(key)) ?? {};
    if (bytes <= maxBytes) return undefined;
    return new CryptodlError(
      'lake-refused',
      `${this.address}/${key} has ${bytesText(bytes)}: files of this kind have at most ${bytesText(maxBytes)}`,
      { hint: 'no run of cryptodl makes such a file: move it to another place' },
    );
  }

  async head(key: string): Promise<BucketObject | undefined> {
    const response = await this.#send({ method: 'HEAD', key: this.#keyOf(key) });
    if (response.status !== 200) return undefined;
    const length = response.headers['content-length'] ?? '';
    if (!/^\d{1,15}$/.test(length))
      throw new CryptodlError(
        'http-protocol',
        `${this.address}/${key}: the answer to HEAD has no Content-Length`,
      );
    return objectOf(key, response, Number(length));
  }

  async remove(key: string, etag?: string): Promise<void> {
    const request: S3Request = { method: 'DELETE', key: this.#keyOf(key) };
    const headers = etag === undefined ? undefined : this.#conditions.headers({ kind: 'same', etag });
    if (headers !== undefined) {
      const { status } = await this.#options.requests.send({ ...request, headers });
      if (status === 412) throw changedElsewhere(`${this.address}/${key}`, await this.head(key));
      // Some servers have conditions for puts only.
      if (status !== 501) return;
    }
    await this.#send(request);
  }

  put(key: string, path: string, condition?: PutCondition): Promise<{ readonly etag: string }> {
    const { requests, multipart } = this.#options;
    const head = (): Promise<BucketObject | undefined> => this.head(key);
    const target = { key: this.#keyOf(key), name: `${this.address}/${key}`, head };
    return putObject({ requests, multipart, conditions: this.#conditions }, target, path, condition);
  }

  close(): Promise<void> {
    return this.#options.requests.close();
  }

  /** `date`: the time of the answer by the clock of the server. */
  async #page(
    query: Readonly<Record<string, string>>,
  ): Promise<{ readonly page: ListingPage; readonly date: string | undefined }> {
    let page: ListingPage | undefined;
    const { headers } = await this.#send({
      method: 'GET',
      key: '',
      query,
      check: ({ status, body }) => {
        if (status === 200 && body.kind === 'memory') page = parseListing(body.bytes);
      },
    });
    if (page === undefined) throw this.#options.requests.refused(NO_LIST);
    return { page, date: headers['date'] };
  }

  /** A request that has no condition. Any other refusal than 404 is an error. */
  async #send(request: S3Request): Promise<FetchResponse> {
    const response = await this.#options.requests.send(request);
    if (response.status === 200 || response.status === 404) return response;
    throw this.#options.requests.refused(errorName(textOf(response)) ?? String(response.status));
  }

  #keyOf(key: string): string {
    if (!isPlainKey(key)) throw new CryptodlError('bug', `no key of a file: ${key}`);
    return this.#options.address.prefix + key;
  }

  #warnOf(key: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.warn(
      `${this.address}: objects whose keys cannot be paths of files are ignored, for example ${key}`,
    );
  }
}

function objectOf(key: string, response: FetchResponse, bytes: number): BucketObject {
  const sha256 = response.headers[SHA256_HEADER];
  const lastModified = response.headers['last-modified'] ?? '';
  return {
    key,
    bytes,
    etag: etagOf(response),
    lastModified,
    ageMs: ageMsOf(lastModified, response.headers['date']),
    ...(sha256 === undefined ? {} : { sha256 }),
  };
}

/** A server may send pages without names, for example because objects were removed. */
const MOST_IDLE_PAGES = 20;

/** Notices a list that continues without end. The pages of S3 are in the order of UTF-8 bytes. */
class PageProgress {
  #last = '';
  #idlePages = 0;

  /** Takes the names of the next page. Returns false after many pages without a name beyond those of earlier pages. */
  continues(names: readonly string[]): boolean {
    this.#idlePages += 1;
    for (const name of names) {
      if (byKey(name, this.#last) <= 0) continue;
      this.#last = name;
      this.#idlePages = 0;
    }
    return this.#idlePages <= MOST_IDLE_PAGES;
  }
}
