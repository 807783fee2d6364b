/** A lake's folder in a bucket: list, get, put, head and remove objects. */
import { createReadStream } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { fileFacts } from '../../files/file-facts.js';
import { bodySize, type FetchResponse } from '../../model/fetch.js';
import { CryptodlError } from '../../model/errors.js';
import { isPlainKey, parseLakeAddress, type LakeAddress } from '../../model/lake-address.js';
import { byKey } from '../../exchange/keys.js';
import { parseListing } from '../../exchange/s3-listing.js';
import type { ListingPage } from '../../exchange/exchange.js';
import { refuseError, S3Access, type ClientOptions } from './client.js';
import { statusOf, type Client, type Transfer } from './sdk.js';
import { SHA256_HEADER, ageMsOf, objectOf, type BucketObject } from './bucket-object.js';

export interface BucketOptions extends Omit<ClientOptions, 'address'> {
  /** `s3://bucket/prefix` */
  readonly address: string;
  /** The size of the parts in which larger files are stored, in bytes. */
  readonly partBytes?: number | undefined;
}

const MIB = 1024 * 1024;
/** The SDK keeps a part in memory until it is stored. */
const PART_BYTES = 16 * MIB;
const PARTS_AT_ONCE = 2;
/** S3 user guide, "Amazon S3 multipart upload limits". */
const MOST_PARTS = 10_000;
/** A put whose object has a wrong size is repeated once. */
const MOST_PUTS = 2;
/** A server may send pages without names, for example because objects were removed. */
const MOST_IDLE_PAGES = 20;

interface SentFile {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
  readonly note?: string | undefined;
}

/** An ETag that no object has. */
const NO_VERSION = '0'.repeat(32);

/** Keys are relative to the folder of the lake, with `/`. */
export class LakeBucket {
  /** `s3://bucket/prefix`, for messages. */
  readonly address: string;
  readonly #lake: LakeAddress;
  readonly #client: S3Access;
  readonly #partBytes: number;
  readonly #observer: BucketOptions['observer'];
  readonly #warned = new Set<string>();
  #isTried = false;
  /** False after the server has refused or ignored a conditional write. Each object is then compared before a put, and another writer may come in between. */
  hasConditions = true;

  /** Sends no request. Throws a usage error for an address that is not one of a bucket. */
  constructor({ partBytes = PART_BYTES, ...options }: BucketOptions) {
    this.#lake = parseLakeAddress(options.address, '--out');
    this.address = this.#lake.text;
    this.#client = new S3Access({ ...options, address: this.#lake });
    this.#partBytes = partBytes;
    this.#observer = options.observer;
  }

  /** The objects whose keys begin with `prefix`. Keys that cannot be paths of files are left out, with one warning. */
  async *list(prefix: string): AsyncGenerator<BucketObject> {
    const base = this.#lake.prefix;
    // The pages of S3 are in the order of UTF-8 bytes.
    let reached = '';
    let idlePages = 0;
    for (let token: string | undefined = ''; token !== undefined;) {
      const { page, date } = await this.#page(base + prefix, token);
      const { objects, truncated, continuationToken } = page;
      for (const object of objects) {
        if (!object.key.startsWith(base + prefix))
          throw this.#malformed(
            `the listing of ${prefix} has an object outside of it: ${object.key.slice(0, 200)}`,
          );
        const key = object.key.slice(base.length);
        if (isPlainKey(key)) yield { ...object, key, ageMs: ageMsOf(object.lastModified, date) };
        else
          this.#warnOnce('objects whose keys cannot be paths of files are ignored', `, for example ${key}`);
      }
      const last = objects.at(-1)?.key ?? '';
      idlePages = byKey(last, reached) > 0 ? 0 : idlePages + 1;
      if (idlePages === 0) reached = last;
      if (truncated && (continuationToken === undefined || idlePages > MOST_IDLE_PAGES))
        throw this.#malformed('a listing does not say how it continues, or has no end');
      token = truncated ? continuationToken : undefined;
    }
  }

  /**
   * Writes the whole object to a file. Undefined: there is none. Rejects with `body-damaged` if its bytes are not those of the digest that
   * this program stored with it, unless the caller `compares` them itself and a second attempt brings the same bytes; with `length-mismatch` if
   * it is larger than `maxBytes`.
   */
  async get(
    key: string,
    path: string,
    { compares = false, maxBytes }: Readonly<{ compares?: boolean; maxBytes?: number | undefined }> = {},
  ): Promise<BucketObject | undefined> {
    let wrong: string | undefined;
    const check: Transfer['check'] = ({ status, headers, sha256 }) => {
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
    };
    const transfer = { spoolPath: path, check, ...(maxBytes === undefined ? {} : { maxBytes }) };
    const target = this.#target(key);
    const answer = await this.#answer((client, options) => client.getObject(target, options), transfer).catch(
      (error: unknown) => {
        if (error instanceof CryptodlError && error.code === 'length-mismatch')
          throw error.with({ message: `${this.address}/${key}: ${error.message}` });
        throw error;
      },
    );
    const { status, body } = answer;
    if (status !== 200) await rm(path, { force: true });
    else if (body.kind === 'memory') await writeFile(path, body.bytes);
    return status === 200 ? objectOf(key, answer, bodySize(body)) : undefined;
  }

  async head(key: string): Promise<BucketObject | undefined> {
    const target = this.#target(key);
    const answer = await this.#answer((client, options) => client.headObject(target, options));
    if (answer.status !== 200) return undefined;
    const length = answer.headers['content-length'] ?? '';
    if (!/^\d{1,15}$/.test(length))
      throw new CryptodlError(
        'http-protocol',
        `${this.address}/${key}: the answer to HEAD has no Content-Length`,
      );
    return objectOf(key, answer, Number(length));
  }

  /**
   * An absent object is no error. `etag`: only this version. Rejects with `lake-conflict` for another version, if the server has a condition
   * for this.
   */
  async remove(key: string, etag?: string): Promise<void> {
    const target = this.#target(key);
    const condition = etag === undefined || !this.hasConditions ? {} : { IfMatch: `"${etag}"` };
    const remove = (params: typeof target): Promise<FetchResponse> =>
      this.#answer((client, options) => client.deleteObject(params, options));
    const { status } = await remove({ ...target, ...condition });
    if (status === 412) throw this.changedElsewhere(key, await this.head(key));
    // Some servers have conditions for puts only.
    if (status === 501) await remove(target);
  }

  /**
   * Stores a file and compares its size in the bucket. `replaces`: the ETag of the object that must be in its place; null: there must be
   * none. Rejects with `lake-conflict` otherwise; the same bytes from another writer are no conflict. `note`: a text of at most 1,000 bytes
   * that stands in the metadata of the object.
   */
  async put(
    key: string,
    path: string,
    replaces?: string | null,
    note?: string,
  ): Promise<{ readonly etag: string }> {
    const { bytes: size, sha256 } = await fileFacts(path);
    let before = replaces;
    for (let count = 1; ; count += 1) {
      const etag = await this.#put(key, { path, size, sha256, note }, before);
      const there = await this.head(key);
      const isOurs = there === undefined || there.etag === etag || there.sha256 === sha256;
      // Another object means that another writer has replaced ours since.
      if (!isOurs || there?.bytes === size) return { etag };
      if (count === MOST_PUTS)
        throw new CryptodlError(
          'length-mismatch',
          `${this.address}/${key}: ${there?.bytes ?? 'none'} of ${size} bytes are stored, although the server confirmed them`,
        );
      if (before !== undefined && there !== undefined) before = there.etag;
    }
  }

  /** Resolves with the ETag. Without conditional writes, the put is treated like one that was refused with 501: the object is compared here. */
  async #put(key: string, file: SentFile, replaces?: string | null): Promise<string> {
    const isCompared = replaces !== undefined && !this.hasConditions;
    const stored = isCompared ? 501 : await this.#store(key, file, replaces);
    if (typeof stored === 'string') {
      return replaces === undefined ? stored : ((await this.#tryConditions(key, file)) ?? stored);
    }
    if (stored === 501 && replaces !== undefined) this.#compareInstead();
    const there = await this.head(key);
    // The answer to a put may be lost, and its repetition then finds the object of the first, or no upload in parts any more.
    if (there?.sha256 === file.sha256 && there.bytes === file.size) return there.etag;
    if (replaces === undefined)
      throw new CryptodlError(
        'http-refused',
        `${this.address}/${key} was not stored: the server answered ${stored}`,
      );
    // Swift has no conditions for uploads in parts, but says 412.
    const isRefusal = stored !== 501 && file.size <= this.#partBytes;
    if (there?.etag !== (replaces ?? undefined) || isRefusal) throw this.changedElsewhere(key, there);
    return this.#put(key, file);
  }

  /**
   * Once: a server that ignores a condition stores the same bytes again, in place of a version that there never was, or of no object. Resolves
   * with the ETag of the object that it has stored.
   */
  async #tryConditions(key: string, file: SentFile): Promise<string | undefined> {
    if (this.#isTried || file.size > this.#partBytes) return undefined;
    this.#isTried = true;
    for (const replaces of [NO_VERSION, null]) {
      const stored = await this.#store(key, file, replaces);
      if (typeof stored !== 'string') continue;
      this.#compareInstead();
      return stored;
    }
    return undefined;
  }

  #compareInstead(): void {
    this.hasConditions = false;
    this.#warnOnce(
      'the server has no conditional writes: each object is compared before it is written; let only one run at a time write a series (--shard)',
    );
  }

  /** Resolves with the ETag, or with the status of a refusal. */
  async #store(
    key: string,
    { path, size, sha256, note }: SentFile,
    replaces?: string | null,
  ): Promise<string | number> {
    const partSize = Math.max(this.#partBytes, Math.ceil(size / MOST_PARTS / MIB) * MIB);
    const params = {
      ...this.#target(key),
      Metadata: { sha256, ...(note !== undefined && { note: Buffer.from(note).toString('base64') }) },
      ...(replaces === null && { IfNoneMatch: '*' }),
      ...(typeof replaces === 'string' && { IfMatch: `"${replaces}"` }),
    };
    try {
      const { ETag = '' } = await this.#client.call((client, { Upload }) =>
        new Upload({
          client,
          params: { ...params, Body: createReadStream(path) },
          partSize,
          queueSize: PARTS_AT_ONCE,
        }).done(),
      );
      return ETag.replaceAll('"', '');
    } catch (error) {
      const status = statusOf(error);
      if (status === undefined) throw error;
      return status;
    }
  }

  /** The error about an object that another writer has changed or removed. */
  changedElsewhere(key: string, there: BucketObject | undefined): CryptodlError {
    const state = there === undefined ? 'is not in the bucket any more' : 'was changed by another writer';
    const hint = 'try again; two runs that write the same series at the same time disturb each other';
    return new CryptodlError('lake-conflict', `${this.address}/${key} ${state}`, { hint });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** `date`: the time of the answer by the clock of the server. */
  async #page(Prefix: string, token: string) {
    let page: ListingPage | undefined;
    const { bucket } = this.#lake;
    const target = {
      Bucket: bucket,
      Prefix,
      EncodingType: 'url',
      ...(token === '' ? {} : { ContinuationToken: token }),
    } as const;
    const transfer: Transfer = {
      // The SDK takes a cut document for a complete one.
      check: (answer) => {
        refuseError(answer);
        if (answer.status === 200 && answer.body.kind === 'memory') page = this.#listed(answer.body.bytes);
      },
    };
    const { headers, status } = await this.#answer(
      (client, options) => client.listObjectsV2(target, options),
      transfer,
    );
    if (page !== undefined) return { page, date: headers['date'] };
    throw new CryptodlError(
      'lake-refused',
      `${this.address}: the server answered ${status} with something other than a list of objects`,
      { hint: 'check --s3-endpoint: it is the address of an S3 server, without the name of the bucket' },
    );
  }

  /** The answer to a command, also with 404, 412 or 501. */
  async #answer(
    act: (client: Client, transfer: Transfer) => Promise<unknown>,
    transfer: Transfer = {},
  ): Promise<FetchResponse> {
    let answer: FetchResponse | undefined;
    const onAnswer = (given: FetchResponse): void => {
      answer = given;
    };
    await this.#client
      .call((client) => act(client, { ...transfer, onAnswer }))
      .catch((error: unknown) => {
        if (statusOf(error) === undefined) throw error;
      });
    if (answer === undefined) throw new CryptodlError('bug', 'the SDK of AWS has sent no request');
    return answer;
  }

  #target(key: string): { readonly Bucket: string; readonly Key: string } {
    if (!isPlainKey(key)) throw new CryptodlError('bug', `no key of a file: ${key}`);
    const { bucket, prefix } = this.#lake;
    return { Bucket: bucket, Key: prefix + key };
  }

  #listed(document: Buffer): ListingPage {
    try {
      return parseListing(document);
    } catch (error) {
      throw error instanceof CryptodlError ? this.#malformed(error.message) : error;
    }
  }

  #malformed(message: string): CryptodlError {
    const hint = 'check --s3-endpoint, and try again; committed files are kept';
    return new CryptodlError('listing-malformed', `${this.address}: ${message}`, { hint });
  }

  #warnOnce(message: string, example = ''): void {
    if (!this.#warned.has(message)) this.#observer.warn(`${this.address}: ${message}${example}`);
    this.#warned.add(message);
  }
}
