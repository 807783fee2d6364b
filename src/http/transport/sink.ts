/** Takes the bytes of a body into memory, or a large body into a spool file, and hashes them. */
import { createHash, hash, type Hash } from 'node:crypto';
import { open, type FileHandle } from 'node:fs/promises';
import { writeAllChunks } from '../../files/disk.js';
import { hostError, type CryptodlError } from '../../model/errors.js';
import type { FetchRequest, FetchResponse, PartialBody } from '../../model/fetch.js';

const WRITE_BYTES = 1024 * 1024;
/** One call is cheaper than an object with updates. A larger body is hashed while it arrives, so that its end does not block the event loop. */
const HASHED_AT_ONCE_BYTES = 256 * 1024;
/** Larger bodies go to the spool path, if there is one. */
export const BODY_MEMORY_BYTES = 8 * 1024 * 1024;

type SinkOptions = Pick<FetchRequest, 'spoolPath' | 'spoolAboveBytes'>;

/** A complete body. `sha256`: its digest in hexadecimal. */
export type ReceivedBody = Pick<FetchResponse, 'body' | 'sha256'>;

export class Sink {
  size = 0;
  /** The path of the spool file; empty for none. */
  readonly #path: string;
  readonly #spoolAboveBytes: number;
  /** The digest of a body that is too large to be hashed at once, when it is complete. */
  #sha256: Hash | undefined;
  #chunks: Buffer[] = [];
  #pending = 0;
  #written = 0;
  #file: FileHandle | undefined;
  #writing: Promise<FileHandle> | undefined;

  constructor({ spoolPath = '', spoolAboveBytes = BODY_MEMORY_BYTES }: SinkOptions) {
    this.#path = spoolPath;
    this.#spoolAboveBytes = spoolAboveBytes;
  }

  /**
   * Continues after the first `bytes` of the spool file. They are hashed from the disk, so that the digest covers the whole
   * file. Undefined if the file is shorter or cannot be read.
   */
  static async resume(options: SinkOptions, bytes: number): Promise<Sink | undefined> {
    const sink = new Sink(options);
    try {
      sink.#file = await open(sink.#path, 'r+');
      const range = { start: 0, end: bytes - 1, autoClose: false, highWaterMark: WRITE_BYTES };
      for await (const chunk of sink.#file.createReadStream(range) as AsyncIterable<Buffer>) {
        sink.size += chunk.length;
        sink.#hash(chunk);
      }
      if (sink.size === bytes) {
        await sink.#file.truncate(bytes);
        sink.#written = bytes;
        return sink;
      }
    } catch {
      // The body is fetched from its beginning.
    }
    await sink.#file?.close().catch(() => undefined);
    return undefined;
  }

  /** Takes one chunk. A caller that waits for a returned promise before the next chunk bounds the memory. It rejects on disk errors. */
  write(chunk: Buffer): Promise<unknown> | undefined {
    this.size += chunk.length;
    this.#sha256?.update(chunk);
    this.#chunks.push(chunk);
    this.#pending += chunk.length;
    if (this.#sha256 === undefined && this.size > HASHED_AT_ONCE_BYTES)
      for (const held of this.#chunks) this.#hash(held);
    const isSpooled = this.#path !== '' && this.size > this.#spoolAboveBytes;
    if (!isSpooled || this.#pending < WRITE_BYTES) return undefined;
    this.#writing = this.#writing?.then(() => this.#flush()) ?? this.#flush();
    return this.#writing;
  }

  /** The bytes that are in memory, as text. */
  get text(): string {
    return Buffer.concat(this.#chunks).toString('latin1');
  }

  /** The complete body: at once if it is in memory, otherwise after the last write. */
  end(): ReceivedBody | Promise<ReceivedBody> {
    if (this.#writing !== undefined || this.#file !== undefined) return this.#endFile();
    const [only, ...others] = this.#chunks;
    const bytes = only !== undefined && others.length === 0 ? only : Buffer.concat(this.#chunks);
    return {
      body: { kind: 'memory', bytes },
      sha256: this.#sha256?.digest('hex') ?? hash('sha256', bytes),
    };
  }

  async #endFile(): Promise<ReceivedBody> {
    await this.#writing;
    const digest = this.#sha256;
    if (digest === undefined) throw new RangeError('the spool file has no digest');
    const file = await this.#flush();
    await file.close();
    return { body: { kind: 'file', path: this.#path, size: this.size }, sha256: digest.digest('hex') };
  }

  /** Closes the file. Resolves with the number of its bytes, for the next attempt; 0 without a file or after a disk error. */
  async discard(): Promise<number> {
    try {
      await this.#writing;
      if (this.#file === undefined) return 0;
      await this.#flush();
      return this.size;
    } catch {
      return 0;
    } finally {
      await this.#file?.close();
    }
  }

  #hash(chunk: Buffer): void {
    this.#sha256 ??= createHash('sha256');
    this.#sha256.update(chunk);
  }

  async #flush(): Promise<FileHandle> {
    const chunks = this.#chunks;
    const from = this.#written;
    this.#chunks = [];
    this.#written += this.#pending;
    this.#pending = 0;
    this.#file ??= await open(this.#path, 'w');
    await writeAllChunks(this.#file, chunks, from);
    return this.#file;
  }
}

// The request for the rest of a body: `Range` with `If-Range`, so that the server sends a changed object from its beginning.
// Source: RFC 9110, sections 13.1.5, 14.2 and 14.4.

type Headers = Readonly<Record<string, string>>;

/** The strong ETag, with its quotes; undefined for a weak or absent one. Equal weak ETags do not mean equal bytes. */
export function strongEtag(headers: Headers): string | undefined {
  return /^"[^"]+"$/.exec(headers['etag'] ?? '')?.[0];
}

/** The error for a 206 that does not continue `partial`; undefined if it does. */
export function refuseRange(url: string, partial: PartialBody, headers: Headers): CryptodlError | undefined {
  const { host } = new URL(url);
  const refuse = (problem: string): CryptodlError => hostError('http-protocol', host, problem);
  const range = headers['content-range'] ?? '';
  const { first, last, total } =
    /^bytes (?<first>\d+)-(?<last>\d+)\/(?<total>\d+)$/.exec(range)?.groups ?? {};
  if (Number(first) !== partial.bytes || Number(last) + 1 !== Number(total))
    return refuse(
      `answered 206 with Content-Range "${range}" to a request for the rest from byte ${partial.bytes} on`,
    );
  const etag = strongEtag(headers);
  if (etag !== partial.etag)
    return refuse(`answered 206 for ${etag ?? 'no ETag'} to a request for ${partial.etag}`);
  return undefined;
}
